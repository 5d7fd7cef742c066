// capgate secret: the words of the encrypted store. What they ask for is done by capgate-store, so
// that no value is ever in this process.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "sandbox/beside.h"

namespace capgate::cli {
namespace {

constexpr std::string_view verbs[] = {"set", "get", "list", "rm", "rotate"};
constexpr Option options[] = {
    {.name = "--server", .value = "NAME", .help = "of this server alone; else of any (\"*\")"},
    {.name = "--key", .value = "SOURCE", .help = "passphrase (usual), file:PATH or keyring:NAME"},
    {.name = "--reveal", .help = "get: also on a terminal"},
    json_option,
};

// What each verb takes beside itself, between spaces.
std::string_view options_of(std::string_view verb) {
  if (verb == "set") return " --server --key ";
  if (verb == "get") return " --server --reveal ";
  if (verb == "list") return " --server --json ";
  return verb == "rm" ? " --server " : " --key ";
}

bool takes_name(std::string_view verb) { return verb != "list" && verb != "rotate"; }

// Nothing that stands there is repeated: it may be a value.
std::expected<void, int> check_words(const Arguments& arguments, Output& output) {
  const std::string& verb = arguments.operands.front();
  const std::size_t wanted = takes_name(verb) ? 2 : 1;
  if (arguments.operands.size() < wanted) {
    return std::unexpected(usage_error(format("secret {} needs a NAME", verb),
                                       format("write capgate secret {} NAME", verb), output));
  }
  if (arguments.operands.size() > wanted && verb == "set") {
    return std::unexpected(usage_error(
        "a value does not stand on the command line: every program of this machine can read it "
        "there, and the shell keeps it",
        "pipe it, as in: pass show github | capgate secret set GITHUB_TOKEN; or leave it out, and "
        "type it",
        output));
  }
  if (arguments.operands.size() > wanted) {
    return std::unexpected(usage_error(format("secret {} has a word too many", verb),
                                       "see capgate secret --help", output));
  }
  for (const auto& [name, value] : arguments.options) {
    if (!options_of(verb).contains(format(" {} ", name))) {
      return std::unexpected(usage_error(format("{} does not go with {}", name, verb),
                                         "see capgate secret --help", output));
    }
  }
  return {};
}

// The store keeps the path, and is opened from everywhere.
std::string absolute_key(std::string_view key) {
  constexpr std::string_view prefix = "file:";
  if (!key.starts_with(prefix) || key.size() == prefix.size()) return std::string(key);
  std::error_code failed;
  const auto path = std::filesystem::absolute(key.substr(prefix.size()), failed);
  return failed ? std::string(key) : format("{}{}", prefix, path.string());
}

std::vector<std::string> words_for_store(const Arguments& arguments) {
  const std::string& verb = arguments.operands.front();
  std::vector<std::string> words{"capgate-store", verb};
  if (takes_name(verb)) words.insert(words.end(), {"--name", arguments.operands[1]});
  for (const auto& [name, value] : arguments.options) {
    words.emplace_back(name);
    if (name == "--server") words.push_back(value);
    if (name == "--key") words.push_back(absolute_key(value));
  }
  return words;
}

int run(const Arguments& arguments, Output& output) {
  if (const auto checked = check_words(arguments, output); !checked) return checked.error();
  const auto program =
      sandbox::find_beside({.name = "capgate-store", .needed_by = "capgate secret needs"});
  if (!program) {
    output.err += format("capgate: {}\nhelp: {}\n", program.error().message, program.error().help);
    return Exit::internal;
  }
  std::vector<std::string> words = words_for_store(arguments);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::syscall(SYS_execveat, program->get(), "", pointers.data(), environ, AT_EMPTY_PATH);
  output.err += format("capgate: capgate-store cannot be run: {}\n", std::strerror(errno));
  return Exit::internal;
}

}  // namespace

Command secret_command() {
  return {
      .name = "secret",
      .operands = "set|get|list|rm|rotate [NAME]",
      .summary = "Keep secrets encrypted, for store:NAME of run --secret.",
      .least_operands = 1,
      .most_operands = 100'000,
      .options = options,
      .details =
          "set      keep a value: from a pipe, or typed; never a word of the command line\n"
          "get      print it; the server's own goes before that of any server\n"
          "list     names, servers and dates, never a value\n"
          "rm       remove it\n"
          "rotate   encrypt everything with a new key; --key: kept by another source\n"
          "\n"
          "The first `set` makes the store, $XDG_DATA_HOME/capgate/secrets.json (~/.local/share\n"
          "/...), and --key says what opens it: a passphrase that is asked for on the terminal,\n"
          "a file of 32 bytes or more that is yours alone, or a key of the kernel.\n"
          "Exit: 0 ok, 2 usage, 3 no such secret, or the store or its key cannot be used,\n"
          "8 the store is damaged.",
      .examples =
          "  pass show github | capgate secret set GITHUB_TOKEN --server github\n"
          "  capgate secret set API_KEY --key file:$HOME/.capgate-key\n"
          "  capgate secret list --json\n"
          "  capgate secret get API_KEY | wc -c\n"
          "  capgate secret rotate --key passphrase",
      .run = run,
      .verbs = verbs,
      .may_hold_secrets = true};
}

}  // namespace capgate::cli
