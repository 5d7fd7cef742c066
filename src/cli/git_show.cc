#include "cli/git_show.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "clients/tool.h"

namespace capgate::cli {
namespace {

constexpr std::size_t largest = std::size_t{1} << 20U;

// PATH without what depends on the directory, which may be the repository.
std::string find_git() {
  const char* path = std::getenv("PATH");
  for (const std::string_view place : EachPart(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    if (!place.starts_with('/')) continue;
    const std::string file = format("{}/git", place);
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

// Of the caller's environment only what says where things are: which repository (git sets that for
// its hooks), and whose settings (safe.directory is there).
std::vector<std::string> git_environment() {
  constexpr const char* kept[] = {"PATH",          "HOME",           "XDG_CONFIG_HOME", "GIT_DIR",
                                  "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR",  "SUDO_UID"};
  std::vector<std::string> out = {
      "LC_ALL=C",
      "GIT_ALLOW_PROTOCOL=none",  // a missing object of a partial clone is not fetched:
      "GIT_NO_LAZY_FETCH=1",      // that would run what the repository's settings name
      "GIT_NO_REPLACE_OBJECTS=1",
      "GIT_OPTIONAL_LOCKS=0",
      "GIT_TERMINAL_PROMPT=0",
  };
  for (const char* name : kept) {
    const char* value = std::getenv(name);
    if (value != nullptr) out.push_back(format("{}={}", name, value));
  }
  return out;
}

}  // namespace

std::expected<std::string, std::string> git_show(const std::string& object) {
  const std::string git = find_git();
  if (git.empty()) return std::unexpected("git is not in PATH");
  // cat-file prints the blob as it is: no textconv, no filters.
  const auto ended = clients::run_tool(
      {.words = {git, "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
                 "-c", "protocol.allow=never", "cat-file", "blob", object},
       .environment = git_environment(),
       .directory = ".",
       .limit = std::chrono::seconds(30)});
  if (!ended) return std::unexpected(ended.error().message);
  if (ended->status != 0) {
    std::string_view words = trim(ended->err);
    words = words.substr(0, words.find('\n'));
    if (words.starts_with("fatal: ")) words.remove_prefix(7);
    return std::unexpected(words.empty() ? format("git failed with status {}", ended->status)
                                         : format("git: {}", escape_for_terminal(words)));
  }
  if (ended->out.size() >= largest) return std::unexpected("it is larger than 1 MiB");
  return ended->out;
}

}  // namespace capgate::cli
