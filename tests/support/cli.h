// A whole command of capgate in this process, under the sanitizers of the test: words in, both
// texts and the exit code out. A test has its own directory, which is the working directory of
// its commands, and an environment with nothing but PATH and the variables that it names.
//
//   class Check : public support::CliTest {};
//
//   TEST_F(Check, AFindingIsExitCode5) {
//     file("m.json", server({"net:connect:*"}));
//     EXPECT_EQ(run({"check", "m.json"}).code, 5);
//     EXPECT_EQ(run({"check", "-"}, {.input = "{}"}).code, 4);
//   }
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit.h"
#include "support/files.h"
#include "support/json.h"
#include "support/temp_directory.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::support {

using Words = std::vector<std::string>;

// How a command ended. Streamed into a failed assertion it shows what the command printed.
struct Ran {
  int code = 0;
  std::string out;
  std::string err;

  [[nodiscard]] Json json() const { return Json::parse(out); }
  friend std::ostream& operator<<(std::ostream& stream, const Ran& ran) {
    return stream << "exit code " << ran.code << "\nstdout:\n"
                  << ran.out.substr(0, 4000) << "\nstderr:\n"
                  << ran.err.substr(0, 4000);
  }
};

// What the process of a command would inherit.
struct Inherited {
  std::string input = {};      // standard input, whole
  std::string directory = {};  // empty: the test's own
  std::vector<std::pair<std::string, std::string>> environment = {};
};

[[noreturn]] inline void give_up(const char* call) {
  std::perror(call);
  std::abort();
}

// These three set one property of this process and restore it at the end. Tests of one program
// run one after the other, so no other test sees the change.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::string& path)
      : before_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    if (before_.get() < 0 || ::chdir(path.c_str()) != 0) give_up("chdir");
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
  ~WorkingDirectory() {
    if (::fchdir(before_.get()) != 0) give_up("fchdir");
  }

 private:
  sys::Fd before_;
};

class StandardInput {
 public:
  explicit StandardInput(std::string_view text)
      : before_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const sys::Fd file(::memfd_create("stdin", MFD_CLOEXEC));
    if (file.get() < 0 || !sys::write_all(file.get(), text)) give_up("memfd_create");
    if (::lseek(file.get(), 0, SEEK_SET) != 0) give_up("lseek");
    if (::dup2(file.get(), STDIN_FILENO) != STDIN_FILENO) give_up("dup2");
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    if (before_.get() < 0) {  // it was closed
      ::close(STDIN_FILENO);
    } else if (::dup2(before_.get(), STDIN_FILENO) != STDIN_FILENO) {
      give_up("dup2");
    }
  }

 private:
  sys::Fd before_;
};

class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& variables)
      : before_(::environ) {
    lines_.emplace_back("PATH=/bin:/usr/bin");
    for (const auto& [name, value] : variables) lines_.push_back(name + "=" + value);
    for (std::string& line : lines_) pointers_.push_back(line.data());
    pointers_.push_back(nullptr);
    ::environ = pointers_.data();
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::environ = before_; }

 private:
  char** before_;
  std::vector<std::string> lines_;
  std::vector<char*> pointers_;
};

class CliTest : public testing::Test {
 protected:
  [[nodiscard]] Ran run(const Words& words, const Inherited& inherited = {}) const {
    const Environment environment(inherited.environment);
    const StandardInput input(inherited.input);
    const WorkingDirectory directory(inherited.directory.empty() ? directory_.path()
                                                                 : inherited.directory);
    cli::Output output;
    const int code = cli::run_cli(words, output);
    return {.code = code, .out = std::move(output.out), .err = std::move(output.err)};
  }

  // Paths in the test's directory. Parents are made.
  [[nodiscard]] std::string path(std::string_view name) const { return directory_.path(name); }
  std::string file(std::string_view name, std::string_view text) const {
    return directory_.file(name, text);
  }
  template <std::same_as<Json> Value>
  std::string file(std::string_view name, const Value& json) const {
    return directory_.file(name, json.dump());
  }
  [[nodiscard]] const test::TempDirectory& directory() const { return directory_; }

 private:
  const test::TempDirectory directory_;
};

// A manifest with one tool that has these capabilities.
[[nodiscard]] inline Json server(const Words& capabilities) {
  return Json::object(
      {{"name", "server"},
       {"version", "1.0.0"},
       {"tools", Json::array({Json::object({{"name", "tool"}, {"capabilities", capabilities}})})}});
}

[[nodiscard]] inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// For EXPECT_TRUE and EXPECT_FALSE; a failure shows both texts.
[[nodiscard]] inline testing::AssertionResult has(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != std::string_view::npos;
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "\"" << part << (found ? "\" is in:\n" : "\" is not in:\n") << text.substr(0, 4000);
}

[[nodiscard]] inline std::string replaced(std::string text, std::string_view old,
                                          std::string_view now) {
  const std::size_t at = text.find(old);
  if (at == std::string::npos) {
    ADD_FAILURE() << "there is no \"" << old << "\" to replace";
    return text;
  }
  return text.replace(at, old.size(), now);
}

// Compares with a file of the repository. CAPGATE_UPDATE_GOLDEN=1 rewrites it; the reviewer then
// reads the difference.
inline void expect_golden(std::string_view path, const std::string& text) {
  if (std::getenv("CAPGATE_UPDATE_GOLDEN") != nullptr && std::getenv("CI") == nullptr) {
    std::ofstream(std::string(source_directory()) + "/" + std::string(path), std::ios::binary)
        << text;
  }
  EXPECT_EQ(read_text(path), text) << "see " << path;
}

}  // namespace capgate::support
