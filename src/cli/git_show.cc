#include "cli/git_show.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "clients/tool.h"
#include "text/document.h"

namespace capgate::cli {
namespace {

template <typename T>
using Shown = std::expected<T, GitProblem>;

constexpr std::size_t largest_header = 4096;  // of what cat-file --batch prints
constexpr std::size_t largest_index = std::size_t{256} << 20U;
constexpr int most_links = 40;  // as the kernel

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

std::unexpected<GitProblem> failed(std::string words) {
  return std::unexpected(GitProblem{.words = std::move(words)});
}

std::unexpected<GitProblem> no_file(std::string words) {
  return std::unexpected(GitProblem{.words = std::move(words), .is_no_file = true});
}

Shown<std::string> run_git(const std::vector<std::string>& command, std::size_t most,
                           std::string input = {}) {
  const std::string git = find_git();
  if (git.empty()) return failed("git is not in PATH");
  std::vector<std::string> words = {
      git,  "--no-pager",          "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
      "-c", "protocol.allow=never"};
  words.insert(words.end(), command.begin(), command.end());
  auto ended = clients::run_tool({.words = std::move(words),
                                  .environment = git_environment(),
                                  .directory = ".",
                                  .limit = std::chrono::seconds(30),
                                  .input = std::move(input),
                                  .most_output = most});
  if (!ended) return failed(ended.error().message);
  if (ended->status == 0) return std::move(ended->out);
  std::string_view said = trim(ended->err);
  said = said.substr(0, said.find('\n'));
  if (said.starts_with("fatal: ")) said.remove_prefix(7);
  return failed(said.empty() ? format("git failed with status {}", ended->status)
                             : format("git: {}", escape_for_terminal(said)));
}

// cat-file prints the blob as it is: no textconv, no filters.
Shown<std::string> show_blob(const std::string& object) {
  return run_git({"cat-file", "blob", object}, text::largest_document + 1);
}

// ---- of a revision ------------------------------------------------------------------------------

// What cat-file says instead of an object: "symlink 11", and a line with the path.
std::string words_of_refusal(std::string_view kind, std::string_view rest) {
  if (kind == "symlink") {
    const std::string_view target = rest.substr(0, rest.find('\n'));
    return format("it is a link that leads out of the repository: {}", escape_for_terminal(target));
  }
  if (kind == "dangling") return "it is a link to nothing";
  if (kind == "loop") return "its links lead in a circle";
  return "a part of its path is no directory";
}

Shown<std::string> show_committed(const std::string& object) {
  const bool has_newline = object.contains('\n');
  std::vector<std::string> words = {"cat-file", "--batch", "--follow-symlinks"};
  if (has_newline) words.emplace_back("-z");
  auto printed = run_git(words, largest_header + text::largest_document + 1,
                         object + (has_newline ? '\0' : '\n'));
  if (!printed) return printed;
  const std::size_t line = printed->find('\n');
  if (line == std::string::npos) return failed("git said nothing");
  const std::string_view header = std::string_view(*printed).substr(0, line);
  const std::string_view rest = std::string_view(*printed).substr(line + 1);
  const std::string_view first = header.substr(0, header.find(' '));
  for (const std::string_view kind : {"symlink", "dangling", "loop", "notdir"}) {
    if (first == kind) return no_file(words_of_refusal(kind, rest));
  }
  std::string_view said = header.substr(std::min(first.size() + 1, header.size()));
  const bool is_object = first.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  const std::string_view type = said.substr(0, said.find(' '));
  said.remove_prefix(std::min(type.size() + 1, said.size()));
  const auto size = parse_decimal(said);
  if (!is_object || !size || object.starts_with(header)) {  // "missing": git's words are better
    auto text = show_blob(object);
    return text ? failed("git has no such object") : text;
  }
  if (type != "blob") return no_file("it is no file");
  const std::size_t wanted = std::min<std::size_t>(*size, text::largest_document + 1);
  if (rest.size() < wanted) return failed("git ended early");
  return std::string(rest.substr(0, wanted));
}

// ---- as staged ----------------------------------------------------------------------------------

struct Staged {
  bool is_link = false;
  std::string id;
};
using Index = std::map<std::string, Staged, std::less<>>;

// "100644 ID 0\tpath", each with a NUL at its end. Submodules are not read.
Index parse_index(std::string_view listed) {
  Index out;
  for (const std::string_view entry : EachPart(listed, '\0')) {
    const std::size_t tab = entry.find('\t');
    if (tab == std::string_view::npos) continue;
    const std::string_view facts = entry.substr(0, tab);
    const std::size_t id = facts.find(' ');
    if (!facts.ends_with(" 0") || facts.starts_with("160000")) continue;
    out.emplace(entry.substr(tab + 1),
                Staged{.is_link = facts.starts_with("120000"),
                       .id = std::string(facts.substr(id + 1, facts.size() - id - 3))});
  }
  return out;
}

Shown<Index> list_index(const std::string& pathspec) {
  auto listed =
      run_git({"ls-files", "--stage", "-z", "--full-name", "--", pathspec}, largest_index);
  if (!listed) return std::unexpected(std::move(listed).error());
  if (listed->size() >= largest_index) return failed("the index is too large");
  return parse_index(*listed);
}

void prepend(std::string_view path, std::vector<std::string>& reversed) {
  std::vector<std::string> parts;
  for (const std::string_view part : EachPart(path, '/')) parts.emplace_back(part);
  reversed.insert(reversed.end(), parts.rbegin(), parts.rend());
}

// As the file system walks: a link is replaced by what it says, ".." leads up from there.
Shown<std::string> walk_index(const Index& index, std::string_view path) {
  std::vector<std::string> ahead;  // the next part is the last
  std::vector<std::string> behind;
  prepend(path, ahead);
  for (int links = 0; !ahead.empty();) {
    const std::string part = std::exchange(ahead.back(), {});
    ahead.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (behind.empty()) return no_file("it leads out of the repository");
      behind.pop_back();
      continue;
    }
    behind.push_back(part);
    const auto found = index.find(join(behind, "/"));
    if (found == index.end() || !found->second.is_link) continue;
    if (++links > most_links) return no_file(words_of_refusal("loop", {}));
    const auto target = show_blob(found->second.id);
    if (!target) return target;
    if (target->starts_with('/')) return no_file(words_of_refusal("symlink", *target));
    behind.pop_back();
    prepend(*target, ahead);
  }
  return join(behind, "/");
}

Shown<std::string> show_staged(std::string path) {
  if (path.starts_with("./") || path.starts_with("../")) {
    auto prefix = run_git({"rev-parse", "--show-prefix"}, largest_header);
    if (!prefix) return prefix;
    path = format("{}{}", prefix->substr(0, prefix->size() - 1), path);
    if (path.starts_with("./")) path.erase(0, 2);
  }
  auto index = list_index(format(":(top,literal){}", path));
  if (!index) {  // ".." that leads out, for example
    index = list_index(":(top)");
    if (!index) return std::unexpected(std::move(index).error());
  }
  auto found = index->find(path);
  if (found == index->end() || found->second.is_link) {
    index = list_index(":(top)");
    if (!index) return std::unexpected(std::move(index).error());
    const auto walked = walk_index(*index, path);
    if (!walked) return walked;
    const bool is_same = *walked == path;
    found = index->find(*walked);
    if (found == index->end() && !is_same) return no_file(words_of_refusal("dangling", {}));
  }
  return show_blob(found == index->end() ? format(":{}", path) : found->second.id);
}

}  // namespace

std::expected<std::string, GitProblem> git_show(const std::string& object) {
  if (!object.starts_with(':')) return show_committed(object);
  std::string path = object.substr(1);
  if (path.starts_with("0:")) path.erase(0, 2);
  const bool is_stage = path.size() > 1 && path[0] >= '1' && path[0] <= '3' && path[1] == ':';
  return is_stage || path.starts_with('/') ? show_blob(object) : show_staged(std::move(path));
}

}  // namespace capgate::cli
