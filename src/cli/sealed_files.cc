#include "cli/sealed_files.h"

#include <unistd.h>

#include "base/digest.h"
#include "base/format.h"
#include "cli/caller.h"

namespace capgate::cli {
namespace {

std::string contents(const SealedFile& file) {
  std::string out = file.profile;
  out += '\0';
  return out + file.target;
}

std::string note_of(const SealedFile& file) {
  return format("{}/sealed/{}", state_base(), sha256_hex(contents(file)));
}

}  // namespace

bool was_sealed(const SealedFile& file) { return ::access(note_of(file).c_str(), F_OK) == 0; }

std::expected<void, clients::FileProblem> note_sealed(const SealedFile& file) {
  if (was_sealed(file)) return {};
  return clients::create_file(note_of(file), contents(file));
}

void forget_sealed(const SealedFile& file) { (void)::unlink(note_of(file).c_str()); }

}  // namespace capgate::cli
