#include "sandbox/policy_place.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/holes.h"

namespace capgate::sandbox {
namespace {

using Kind = lower::PlanMount::Kind;

constexpr int most_links = 40;

bool is_same(const Identity& a, const Identity& b) {
  return a.device == b.device && a.inode == b.inode;
}

// One component of a path: what it is called in which directory, and what it is.
struct Step {
  Identity directory;
  std::string name;
  std::string path;
  Identity identity;
};
using Way = std::vector<Step>;  // from the root, without links but for a last one

// Every way that is taken to the file: one for each link on it, and the one to the file itself, or
// to the last directory that is there.
std::vector<Way> ways_to(const std::string& path) {
  std::vector<Way> ways;
  const auto root = identify("/");
  if (!root) return ways;
  std::deque<std::string> rest;
  for (const std::string_view part : EachPart(path, '/')) rest.emplace_back(part);
  Way way;
  int links = 0;
  while (!rest.empty()) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (!way.empty()) way.pop_back();
      continue;
    }
    const std::string at = format("{}/{}", way.empty() ? "" : way.back().path, name);
    const auto identity = identify(at);
    if (!identity) break;
    way.push_back({.directory = way.empty() ? *root : way.back().identity,
                   .name = name,
                   .path = at,
                   .identity = *identity});
    if (identity->type != S_IFLNK) continue;
    ways.push_back(way);
    way.pop_back();
    const std::string target = read_link(AT_FDCWD, at);
    if (++links > most_links || target.empty()) break;
    if (target.starts_with('/')) way.clear();
    std::deque<std::string> more;
    for (const std::string_view part : EachPart(target, '/')) more.emplace_back(part);
    rest.insert(rest.begin(), more.begin(), more.end());
  }
  ways.push_back(std::move(way));
  return ways;
}

// What the server can change on the host, and what stays hidden in it.
class Reach {
 public:
  Reach(const lower::Plan& plan, const Launcher& launcher) {
    const Holes holes(plan, launcher.environment);
    for (const lower::PlanMount& mount : plan.mounts) {
      const std::string target = holes.filled(mount.target);
      if (mount.kind == Kind::mask) add(masked_, target);
      if (mount.origins == nullptr || !is_writing(mount.detail)) continue;
      if (mount.kind == Kind::bind) add(writable_, target);
      if (mount.kind == Kind::entries) add_entries(target);
    }
    if (!launcher.state.empty()) add(writable_, launcher.state);
  }

  [[nodiscard]] bool is_empty() const { return writable_.empty() && entries_.empty(); }

  // The innermost of what is hidden and what is writable decides.
  [[nodiscard]] const Step* find_writable(const Way& way) const {
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      if (has(masked_, step->identity)) return nullptr;
      if (has(writable_, step->identity) || matches_entries(*step)) return &*step;
    }
    return nullptr;
  }

 private:
  static bool is_writing(std::string_view rights) {
    return rights == "write" || rights == "create" || rights == "delete";
  }
  static void add(std::vector<Identity>& to, const std::string& path) {
    if (const auto identity = identify(path)) to.push_back(*identity);
  }
  static bool has(const std::vector<Identity>& all, const Identity& one) {
    return std::ranges::any_of(all, [&](const Identity& each) { return is_same(each, one); });
  }
  void add_entries(const std::string& pattern) {
    const std::string directory(parent_of(pattern));
    const auto identity = identify(directory.empty() ? "/" : directory);
    if (identity) entries_.emplace_back(*identity, pattern.substr(directory.size() + 1));
  }
  [[nodiscard]] bool matches_entries(const Step& step) const {
    return std::ranges::any_of(entries_, [&](const auto& entry) {
      return is_same(entry.first, step.directory) &&
             ::fnmatch(entry.second.c_str(), step.name.c_str(), FNM_PERIOD) == 0;
    });
  }

  std::vector<Identity> writable_;
  std::vector<Identity> masked_;
  std::vector<std::pair<Identity, std::string>> entries_;  // "/dir/*.md"
};

}  // namespace

std::expected<void, Refusal> check_policy_places(const std::vector<std::string>& files,
                                                 const lower::Plan& plan,
                                                 const Launcher& launcher) {
  if (files.empty()) return {};
  const Reach reach(plan, launcher);
  if (reach.is_empty()) return {};
  for (const std::string& file : files) {
    const std::string full =
        file.starts_with('/') ? file : format("{}/{}", launcher.caller.directory, file);
    for (const Way& way : ways_to(full)) {
      const Step* step = reach.find_writable(way);
      if (step == nullptr) continue;
      return std::unexpected(Refusal{
          .message =
              format("{} decides what the server may do, and the server could write it: {} is "
                     "granted for writing",
                     escape_for_terminal(file), escape_for_terminal(step->path)),
          .help = "keep it outside of what the server can write, or grant less"});
    }
  }
  return {};
}

}  // namespace capgate::sandbox
