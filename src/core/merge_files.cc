#include "core/merge_files.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "core/rights.h"
#include "core/sensitive.h"
#include "core/symbolic.h"

namespace capgate::core {
namespace {

using Grant = Granted<FsCapability>;
using Shape = PathPattern::Shape;

// Parents first, everything below a directory together; at one path the grant of the directory
// itself before those of its entries.
bool before_in_tree(const Grant& a, const Grant& b) {
  const PathPattern& left = a.capability.path;
  const PathPattern& right = b.capability.path;
  if (const auto order = compare_as_tree(left.base, right.base); order != 0) return order < 0;
  const bool left_entries = left.shape == Shape::entries;
  const bool right_entries = right.shape == Shape::entries;
  if (left_entries != right_entries) return right_entries;
  // "*" first, since it may cover the others.
  if (left.glob != right.glob) {
    return std::tuple(left.glob != "*", std::string_view(left.glob)) <
           std::tuple(right.glob != "*", std::string_view(right.glob));
  }
  return a.origins < b.origins;
}

bool same_target(const Grant& a, const Grant& b) {
  const PathPattern& left = a.capability.path;
  const PathPattern& right = b.capability.path;
  return left.base == right.base && left.glob == right.glob;
}

// /tmp is the sandbox's own: granting it says nothing about host paths below it.
bool holds_below(const Grant& grant) {
  return grant.capability.path.shape != Shape::entries && grant.capability.path.base != "/tmp";
}

void append(Origins& into, const Origins& from) {
  into.insert(into.end(), from.begin(), from.end());
}

class FileMerger {
 public:
  explicit FileMerger(std::string_view home) : home_(home) {}

  void add(Grant grant) {
    const PathPattern& path = grant.capability.path;
    while (!parents_.empty() &&
           !is_at_or_below(path.base, at(parents_.back()).capability.path.base)) {
      parents_.pop_back();
    }
    const FileRights own = rights_of(grant.capability.actions);
    const FileRights inherited =
        parents_.empty() ? FileRights{} : rights_of(at(parents_.back()).capability.actions);
    const bool held_back =
        !parents_.empty() &&
        (is_held_back(path.base, at(parents_.back()).capability.path.base, home_) ||
         may_be_held_back(path, home_));
    if (!parents_.empty() && inherited.covers(own) && !held_back) {
      append(at(parents_.back()).origins, grant.origins);
      return;
    }
    if (Grant* star = covering_star(grant, own)) {
      append(star->origins, grant.origins);
      return;
    }
    // What is held back is opened by its own grant, as far as that goes.
    const FileRights rights = held_back ? own : own | inherited;
    grant.capability.actions = actions_for(rights);
    grant.capability.unsafe =
        rights != FileRights{FileRights::read} && unsafe_write(path.base).has_value();
    out_.push_back(std::move(grant));
    if (holds_below(out_.back())) parents_.push_back(out_.size() - 1);
  }

  std::vector<Grant> take() && { return std::move(out_); }

 private:
  Grant& at(std::size_t index) { return out_[index]; }

  // "/d/*" sorts before every other glob of /d, so it is still at hand if it was kept.
  Grant* covering_star(const Grant& grant, FileRights own) {
    const PathPattern& path = grant.capability.path;
    if (path.shape != Shape::entries) return nullptr;
    if (path.glob == "*") {
      star_ = out_.size();
      return nullptr;
    }
    if (star_ >= out_.size() || has_stand_in(path.glob)) return nullptr;
    Grant& star = out_[star_];
    const bool covers =
        star.capability.path.base == path.base && rights_of(star.capability.actions).covers(own);
    return covers ? &star : nullptr;
  }

  std::string_view home_;
  std::vector<Grant> out_;
  std::vector<std::size_t> parents_;  // grants that hold at the current path, outermost first
  std::size_t star_ = SIZE_MAX;
};

// Several declarations of one path are one grant. A directory that must be one stays one.
void combine_same_targets(std::vector<Grant>& grants) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < grants.size(); ++i) {
    if (!same_target(grants[kept], grants[i])) {
      if (++kept != i) grants[kept] = std::move(grants[i]);
      continue;
    }
    FsCapability& into = grants[kept].capability;
    const FsCapability& from = grants[i].capability;
    into.actions = actions_for(rights_of(into.actions) | rights_of(from.actions));
    if (from.path.shape == Shape::tree) into.path.shape = Shape::tree;
    append(grants[kept].origins, grants[i].origins);
  }
  grants.resize(kept + 1);
}

}  // namespace

void merge_files(std::vector<Grant>& grants, std::string_view home) {
  if (grants.empty()) return;
  std::ranges::sort(grants, before_in_tree);
  combine_same_targets(grants);
  FileMerger merger(home);
  for (Grant& grant : grants) {
    merger.add(std::move(grant));
  }
  grants = std::move(merger).take();
  const auto by_bytes = [](const Grant& grant) {
    const PathPattern& path = grant.capability.path;
    return std::tie(path.base, path.glob);
  };
  // The order of a tree is almost always that of the bytes.
  if (!std::ranges::is_sorted(grants, {}, by_bytes)) std::ranges::sort(grants, {}, by_bytes);
}

}  // namespace capgate::core
