// compile MANIFEST [TARGET]: what `capgate compile --target TARGET MANIFEST` does, with libcapgate.
#include <capgate/capgate.h>

#include <fstream>
#include <iostream>
#include <sstream>

namespace {

int show(const capgate::Errors& errors) {
  for (const capgate::Diagnostic& error : errors) {
    std::cerr << error.file << ':' << error.line << ':' << error.column << ": " << error.code
              << ": " << error.message << "\nhelp: " << error.help << '\n';
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();

  const auto manifest = capgate::parse(text.str(), {.name = argv[1]});
  if (!manifest) return show(manifest.error());
  const auto policy = capgate::compile(*manifest);
  if (!policy) return show(policy.error());
  const auto artifact = capgate::lower(*policy, argc > 2 ? argv[2] : "bwrap");
  if (!artifact) return show(artifact.error());
  std::cout << artifact->json();
  return 0;
}
