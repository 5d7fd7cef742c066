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

// Not found is exit code 127, found but not executable 126, as env(1) has it.
[[nodiscard]] std::expected<Program, Refusal> find_program(const std::vector<std::string>& command,
                                                           const Caller& caller);

// For exec:spawn:NAME: the same for a program of the system, with its helper programs.
[[nodiscard]] std::expected<Program, Refusal> find_spawned(const std::string& name,
                                                           const Caller& caller);

}  // namespace capgate::sandbox
