// What a command stands for on this host: the file that the kernel runs in the end, and everything
// that it needs to be seen inside.
//
//   const auto program = find_program("npx", {"-y", "pkg"}, caller);
//   program->file        /usr/bin/node
//   program->arguments   node /usr/bin/npx -y pkg      (`#!` and `env` are resolved here: a script
//                        cannot be run from a descriptor, and inside there is no env)
//   program->executables everything that must be executable: the interpreter and its loader
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/host_path.h"

namespace capgate::sandbox {

struct Program {
  std::string file;  // as it is named inside
  Identity identity;
  std::vector<std::string> arguments;

  // Absolute real paths.
  std::vector<std::string> executables;  // run by the kernel: programs, interpreters, loaders
  std::vector<std::string> readable;     // scripts
  std::vector<std::string> prefixes;     // directories of interpreters outside /usr
  std::vector<std::string> executable_directories;  // of helper programs, such as git's
  // Symbolic links on the way from names to files, with what they hold.
  std::vector<std::pair<std::string, std::string>> links;
  std::vector<std::string> notes;
};

// Where names are looked up and what they are relative to.
struct Caller {
  std::string path;  // $PATH
  std::string directory;
  std::string home;
};

// Whom a `#!` line may name. It is the text of whoever wrote the script: were it free to name any
// file, a server could have a directory of the caller's opened as that of its interpreter.
enum class Shebang : unsigned char {
  trusted_place,  // of the system, found through PATH (env), or beside the script itself
  any,            // as the kernel has it, for programs that run outside
};

// Not found is exit code 127, found but not executable 126, as env(1) has it.
[[nodiscard]] std::expected<Program, Refusal> find_program(
    const std::vector<std::string>& command, const Caller& caller,
    Shebang shebang = Shebang::trusted_place);

// For exec:spawn:NAME: the same for a program of the system, with its helper programs.
[[nodiscard]] std::expected<Program, Refusal> find_spawned(const std::string& name,
                                                           const Caller& caller);

}  // namespace capgate::sandbox
