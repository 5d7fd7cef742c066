#include "sandbox/policy_place.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "sandbox/holes.h"
#include "sandbox/ways.h"

namespace capgate::sandbox {
namespace {

using Kind = lower::PlanMount::Kind;

constexpr std::string_view keep_apart =
    "keep it outside of what the server can write, or grant less";
constexpr std::string_view name_another =
    "grant another file: what this one says runs outside of every sandbox";

bool is_writing(const lower::PlanMount& mount) {
  const bool is_grant = mount.kind == Kind::bind || mount.kind == Kind::entries;
  return is_grant && mount.origins != nullptr &&
         (mount.detail == "write" || mount.detail == "create" || mount.detail == "delete");
}

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

// How the server can change something on the way to a place.
struct Hit {
  std::string words;  // as above
  std::string at;     // what it can change, by the name that the grant's directory gives it
  bool exists = true;
  bool is_named = false;  // the grant is for this very file
  bool is_home = false;   // HOME of a profile, no grant
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
      if (const auto hit = find_above(way)) return hit->words;
    }
    return ways.empty() ? "" : find_inside(ways.back());
  }

  // Everything on the ways to a file that the server could change: the links, and the file.
  [[nodiscard]] std::vector<Hit> find_all(const std::string& path) {
    std::vector<Hit> out;
    for (const Way& way : ways_.to(path)) {
      if (auto hit = find_above(way)) out.push_back(*std::move(hit));
    }
    return out;
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
  [[nodiscard]] std::optional<Hit> find_above(const Way& way) const {
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      if (is_masked(*step)) return std::nullopt;
      const bool is_end = step == way.rbegin();
      for (const Writable& each : writable_) {
        if (each.ways.empty() || !is_end_of(each.ways.back(), *step)) continue;
        return Hit{.words = each.words,
                   .at = each.ways.back().back().path + after(way, step),
                   .exists = way.back().identity.has_value(),
                   .is_named = is_end && each.is_grant,
                   .is_home = !each.is_grant};
      }
      for (const Entries& each : entries_) {
        if (!matches(each, *step)) continue;
        return Hit{.words = each.words,
                   .at = step->path + after(way, step),
                   .exists = way.back().identity.has_value()};
      }
    }
    return std::nullopt;
  }

  // What follows a step of a way: "/a/b".
  static std::string after(const Way& way, Way::const_reverse_iterator step) {
    std::string out;
    for (auto next = step.base(); next != way.end(); ++next) out += format("/{}", next->name);
    return out + way.back().rest;
  }

  // What is granted inside of a place that is a directory. A HOME lies in no such place, but for
  // that of a server with an unlucky name.
  [[nodiscard]] std::string find_inside(const Way& place) const {
    const std::optional<Identity> end = place.empty() ? std::nullopt : place.back().identity;
    if (!end || !end->is_directory()) return "";
    const auto leads_in = [&](const Way& way) {
      return std::ranges::any_of(way, [&](const Step& step) {
        return step.identity && is_same_file(*step.identity, *end);
      });
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
             return is_same_file(each, *step.identity);
           });
  }
  // A file that is granted and not there is made before the server starts.
  static bool is_end_of(const Way& way, const Step& step) {
    if (way.empty()) return false;
    const Step& end = way.back();
    if (end.identity && step.identity) return is_same_file(*end.identity, *step.identity);
    return !end.identity && !step.identity && is_same_file(end.directory, step.directory) &&
           end.name == step.name;
  }
  // A pattern stands for what is there now.
  static bool matches(const Entries& entries, const Step& step) {
    return step.identity && is_same_file(entries.directory, step.directory) &&
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

std::string writable_words(const PolicyPlace& place, std::string_view words) {
  return format("{} {}, and the server could write it: {}", escape_for_terminal(place.path),
                place.role, words);
}

// What of a place a read-only mount keeps as it is; a refusal where no mount can.
std::expected<void, Refusal> keep_read_only(const PolicyPlace& place, const std::vector<Hit>& hits,
                                            KeptPlaces& kept) {
  for (const Hit& hit : hits) {
    if (hit.is_named && place.may_be_named != nullptr && place.may_be_named(place.path)) continue;
    if (hit.is_named || hit.is_home || (!hit.exists && !place.may_be_missing)) {
      return std::unexpected(
          Refusal{.message = writable_words(place, hit.words),
                  .help = std::string(hit.is_named ? name_another : keep_apart)});
    }
    std::vector<std::string>& list = hit.exists ? kept.read_only : kept.missing;
    if (!contains(list, hit.at)) list.push_back(hit.at);
  }
  return {};
}

// Places that must not be writable at all. Those that would be hidden, were they there, are told
// together.
class Apart {
 public:
  explicit Apart(Reach& reach) : reach_(reach) {}

  std::expected<void, Refusal> check(const PolicyPlace& place, const std::string& full) {
    const std::string words = reach_.find(full);
    if (words.empty()) return {};
    std::string message = writable_words(place, words);
    std::string mask = reach_.find_missing_mask(full);
    if (mask.empty()) {
      return std::unexpected(
          Refusal{.message = std::move(message), .help = std::string(keep_apart)});
    }
    if (first_.empty()) first_ = std::move(message);
    if (!contains(to_make_, mask)) to_make_.push_back(std::move(mask));
    return {};
  }

  [[nodiscard]] std::expected<void, Refusal> result() const {
    if (first_.empty()) return {};
    return std::unexpected(Refusal{.message = first_, .help = help_to_make(to_make_)});
  }

 private:
  Reach& reach_;
  std::string first_;
  std::vector<std::string> to_make_;
};

}  // namespace

bool grants_writing(const lower::Plan& plan) {
  return std::ranges::any_of(plan.mounts, is_writing);
}

std::expected<KeptPlaces, Refusal> check_policy_places(const std::vector<PolicyPlace>& places,
                                                       const lower::Plan& plan,
                                                       const Launcher& launcher) {
  KeptPlaces kept;
  if (places.empty()) return kept;
  Reach reach(plan, launcher);
  if (reach.is_empty()) return kept;
  Apart apart(reach);
  for (const PolicyPlace& place : places) {
    const std::string full = place.path.starts_with('/')
                                 ? place.path
                                 : format("{}/{}", launcher.caller.directory, place.path);
    auto checked = place.is_read_only ? keep_read_only(place, reach.find_all(full), kept)
                                      : apart.check(place, full);
    if (!checked) return std::unexpected(std::move(checked).error());
  }
  if (auto result = apart.result(); !result) return std::unexpected(std::move(result).error());
  return kept;
}

}  // namespace capgate::sandbox
