#include "sandbox/policy_place.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "sandbox/holes.h"

namespace capgate::sandbox {
namespace {

using Kind = lower::PlanMount::Kind;

constexpr int most_links = 40;
constexpr std::string_view keep_apart =
    "keep it outside of what the server can write, or grant less";

bool is_same(const Identity& a, const Identity& b) {
  return a.device == b.device && a.inode == b.inode;
}

bool is_writing(const lower::PlanMount& mount) {
  const bool is_grant = mount.kind == Kind::bind || mount.kind == Kind::entries;
  return is_grant && mount.origins != nullptr &&
         (mount.detail == "write" || mount.detail == "create" || mount.detail == "delete");
}

// One component of a path: what it is called in which directory, and what it is, if it is there.
struct Step {
  Identity directory;
  std::string name;
  std::string path;
  std::optional<Identity> identity;
};
using Way = std::vector<Step>;  // from the root, without links but for a last one

// The places have most of their ways in common, so each component is looked at once.
class Ways {
 public:
  // Every way that is taken to the file: one for each link on it, and the one to the file itself,
  // or to the first component that is not there.
  std::vector<Way> to(const std::string& path) {
    std::vector<Way> ways;
    const std::optional<Identity> root = look("/");
    if (!root) return ways;
    std::deque<std::string> rest = parts_of(path);
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
      const std::optional<Identity> identity = look(at);
      way.push_back({.directory = way.empty() ? *root : way.back().identity.value_or(*root),
                     .name = name,
                     .path = at,
                     .identity = identity});
      if (!identity) break;
      if (identity->type != S_IFLNK) continue;
      ways.push_back(way);
      way.pop_back();
      const std::string target = read_link(AT_FDCWD, at);
      if (++links > most_links || target.empty()) break;
      if (target.starts_with('/')) way.clear();
      const std::deque<std::string> more = parts_of(target);
      rest.insert(rest.begin(), more.begin(), more.end());
    }
    ways.push_back(std::move(way));
    return ways;
  }

  std::optional<Identity> look(const std::string& path) {
    const auto [known, is_new] = seen_.try_emplace(path);
    if (is_new) {
      if (const auto identity = identify(path)) known->second = *identity;
    }
    return known->second;
  }

 private:
  static std::deque<std::string> parts_of(const std::string& path) {
    std::deque<std::string> out;
    for (const std::string_view part : EachPart(path, '/')) out.emplace_back(part);
    return out;
  }

  std::map<std::string, std::optional<Identity>> seen_;
};

// Something of the host that the server can write, and how it came to that.
struct Writable {
  std::vector<Way> ways;
  std::string words;  // "/srv is granted for writing by fs:write:/srv/**"
  bool is_grant = true;
};

struct Entries {
  Identity directory;
  std::vector<Way> ways;  // to it
  std::string pattern;
  std::string words;
};

// What the server can change on the host, and what stays hidden in it.
class Reach {
 public:
  Reach(const lower::Plan& plan, const Launcher& launcher) {
    const Holes holes(plan, launcher.environment);
    for (const lower::PlanMount& mount : plan.mounts) {
      const std::string target = holes.filled(mount.target);
      if (mount.kind == Kind::mask) add_mask(target);
      if (!is_writing(mount)) continue;
      const std::string capability = format("fs:{}:{}", mount.detail, target);
      if (mount.kind == Kind::entries) add_entries(target, capability);
      if (mount.kind == Kind::bind) add_grant(target, capability + (mount.directory ? "/**" : ""));
    }
    if (!launcher.state.empty()) {
      writable_.push_back({.ways = ways_.to(launcher.state),
                           .words = format("{} is its HOME", escape_for_terminal(launcher.state)),
                           .is_grant = false});
    }
  }

  [[nodiscard]] bool is_empty() const { return writable_.empty() && entries_.empty(); }

  // How the server could write what lies there; empty: it cannot.
  [[nodiscard]] std::string find(const std::string& path) {
    const std::vector<Way> ways = ways_.to(path);
    for (const Way& way : ways) {
      if (std::string words = find_above(way); !words.empty()) return words;
    }
    return ways.empty() ? "" : find_inside(ways.back());
  }

  // What would hide the place, were it there; empty: nothing.
  [[nodiscard]] std::string find_missing_mask(std::string_view path) const {
    const auto found = std::ranges::find_if(missing_masks_, [&](const std::string& mask) {
      return path == mask || (path.starts_with(mask) && path[mask.size()] == '/');
    });
    return found == missing_masks_.end() ? "" : *found;
  }

 private:
  void add_mask(const std::string& path) {
    if (const auto identity = ways_.look(path)) {
      masked_.push_back(*identity);
    } else {
      missing_masks_.push_back(path);
    }
  }
  void add_grant(const std::string& path, std::string_view capability) {
    writable_.push_back({.ways = ways_.to(path), .words = granted(path, capability)});
  }
  void add_entries(const std::string& pattern, std::string_view capability) {
    const std::string directory(parent_of(pattern));
    const auto identity = ways_.look(directory.empty() ? "/" : directory);
    if (!identity) return;
    entries_.push_back({.directory = *identity,
                        .ways = ways_.to(directory),
                        .pattern = pattern.substr(directory.size() + 1),
                        .words = granted(pattern, capability)});
  }
  static std::string granted(const std::string& path, std::string_view capability) {
    return format("{} is granted for writing by {}", escape_for_terminal(path),
                  escape_for_terminal(capability));
  }

  // The innermost of what is hidden and what is writable decides.
  [[nodiscard]] std::string find_above(const Way& way) const {
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      if (is_masked(*step)) return "";
      for (const Writable& each : writable_) {
        if (!each.ways.empty() && is_end_of(each.ways.back(), *step)) return each.words;
      }
      for (const Entries& each : entries_) {
        if (matches(each, *step)) return each.words;
      }
    }
    return "";
  }

  // What is granted inside of a place that is a directory. A HOME lies in no such place, but for
  // that of a server with an unlucky name.
  [[nodiscard]] std::string find_inside(const Way& place) const {
    const std::optional<Identity> end = place.empty() ? std::nullopt : place.back().identity;
    if (!end || !end->is_directory()) return "";
    const auto leads_in = [&](const Way& way) {
      return std::ranges::any_of(
          way, [&](const Step& step) { return step.identity && is_same(*step.identity, *end); });
    };
    for (const Writable& each : writable_) {
      if (each.is_grant && std::ranges::any_of(each.ways, leads_in)) return each.words;
    }
    for (const Entries& each : entries_) {
      if (std::ranges::any_of(each.ways, leads_in)) return each.words;
    }
    return "";
  }

  [[nodiscard]] bool is_masked(const Step& step) const {
    return step.identity && std::ranges::any_of(masked_, [&](const Identity& each) {
             return is_same(each, *step.identity);
           });
  }
  // A file that is granted and not there is made before the server starts.
  static bool is_end_of(const Way& way, const Step& step) {
    if (way.empty()) return false;
    const Step& end = way.back();
    if (end.identity && step.identity) return is_same(*end.identity, *step.identity);
    return !end.identity && !step.identity && is_same(end.directory, step.directory) &&
           end.name == step.name;
  }
  // A pattern stands for what is there now.
  static bool matches(const Entries& entries, const Step& step) {
    return step.identity && is_same(entries.directory, step.directory) &&
           ::fnmatch(entries.pattern.c_str(), step.name.c_str(), FNM_PERIOD) == 0;
  }

  Ways ways_;
  std::vector<Writable> writable_;
  std::vector<Entries> entries_;  // "/dir/*.md"
  std::vector<Identity> masked_;
  std::vector<std::string> missing_masks_;
};

std::string help_to_make(const std::vector<std::string>& directories) {
  return format("grant less; or make it once, for what is there stays hidden: mkdir -p {}",
                escape_for_terminal(join(directories, " ")));
}

}  // namespace

bool grants_writing(const lower::Plan& plan) {
  return std::ranges::any_of(plan.mounts, is_writing);
}

std::expected<void, Refusal> check_policy_places(const std::vector<PolicyPlace>& places,
                                                 const lower::Plan& plan,
                                                 const Launcher& launcher) {
  if (places.empty()) return {};
  Reach reach(plan, launcher);
  if (reach.is_empty()) return {};
  std::string first;
  std::vector<std::string> to_make;
  for (const PolicyPlace& place : places) {
    const std::string full = place.path.starts_with('/')
                                 ? place.path
                                 : format("{}/{}", launcher.caller.directory, place.path);
    const std::string words = reach.find(full);
    if (words.empty()) continue;
    std::string message = format("{} {}, and the server could write it: {}",
                                 escape_for_terminal(place.path), place.role, words);
    std::string mask = reach.find_missing_mask(full);
    if (mask.empty()) {
      return std::unexpected(
          Refusal{.message = std::move(message), .help = std::string(keep_apart)});
    }
    if (first.empty()) first = std::move(message);
    if (!contains(to_make, mask)) to_make.push_back(std::move(mask));
  }
  if (first.empty()) return {};
  return std::unexpected(Refusal{.message = std::move(first), .help = help_to_make(to_make)});
}

}  // namespace capgate::sandbox
