#include "core/diff.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "core/built_in.h"
#include "core/holdings.h"
#include "core/merge.h"
#include "core/seal.h"

namespace capgate::core {
namespace {

using Kind = GrantChange::Kind;
using Presence = ToolChange::Presence;

// Beyond this many questions about serverCapabilities and single tools, a change is reported for
// every tool without asking whether each of them had it already.
constexpr std::size_t most_questions = 1'000'000;

// A policy with its index. Stays where it is made: the index points into the policy.
struct Part {
  Part(Policy made, std::string_view of) : policy(std::move(made)), home(of), held(policy, home) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  Part(Part&&) = delete;
  Part& operator=(Part&&) = delete;
  ~Part() = default;

  Policy policy;
  std::string home;
  Holdings held;
};
using OwnedPart = std::unique_ptr<const Part>;

// What one owner declares, by itself: serverCapabilities or a tool. The whole can be merged, so
// this can be, too.
OwnedPart part_of(const Manifest& manifest, const Origins& declared) {
  Manifest own;
  own.home = manifest.home;
  for (const std::uint32_t index : declared) own.declared.push_back(manifest.declared[index]);
  Policy policy = merge(own).value_or(Policy{});
  const auto rename = [&](auto& grants) {
    for (auto& grant : grants) {
      for (std::uint32_t& origin : grant.origins) origin = declared[origin];
    }
  };
  rename(policy.files);
  rename(policy.connect);
  rename(policy.listen);
  rename(policy.programs);
  rename(policy.variables);
  rename(policy.sockets);
  rename(policy.clocks);
  rename(policy.limits);
  rename(policy.assertions);
  return std::make_unique<const Part>(std::move(policy), manifest.home);
}

struct ToolPart {
  std::string name;
  OwnedPart own;
};

// One manifest, cut up.
struct Side {
  const Manifest* manifest = nullptr;
  std::unique_ptr<const Manifest> sealed;  // what `manifest` is then
  OwnedPart whole;
  OwnedPart server;             // serverCapabilities alone
  std::vector<ToolPart> tools;  // sorted by name
};

Checked<Side> cut_up(const Manifest& manifest) {
  Side out;
  out.manifest = &manifest;
  out.whole = std::make_unique<const Part>(TRY(merge(manifest)), manifest.home);
  std::vector<Origins> declared(manifest.tools.size() + 1);
  for (std::uint32_t i = 0; i < manifest.declared.size(); ++i) {
    const std::uint32_t tool = manifest.declared[i].tool;
    declared[tool == Declared::whole_server ? manifest.tools.size() : tool].push_back(i);
  }
  out.server = part_of(manifest, declared.back());
  for (std::size_t i = 0; i < manifest.tools.size(); ++i) {
    out.tools.push_back({.name = manifest.tools[i].name, .own = part_of(manifest, declared[i])});
  }
  std::ranges::sort(out.tools, {}, &ToolPart::name);
  return out;
}

bool is_bound(const Capability& capability) {
  return std::holds_alternative<LimitCapability>(capability) ||
         std::holds_alternative<AssertCapability>(capability);
}

// Calls `use(capability, origins)` for each grant of `part` that `held` does not cover.
template <typename Use>
void for_each_beyond(const Part& part, Layers held, Use use) {
  for_each_grant(part.policy, [&](const Capability& grant, const Origins& origins) {
    if (!is_bound(grant) && !covers(held, grant)) use(grant, origins);
  });
}

GrantChange widened(const Capability& after, const Origins& origins, Layers before) {
  return {
      .kind = Kind::widened, .before = related(before, after), .after = after, .origins = origins};
}

GrantChange narrowed(const Capability& before, const Origins& origins, Layers after) {
  return {.kind = Kind::narrowed,
          .before = before,
          .after = related(after, before),
          .origins = origins};
}

// Of the declarations that a grant comes from those that ask for more than `held`: who only reads
// is not why a directory may now be written. All of them where none does.
Origins origins_beyond(const Manifest& manifest, const Origins& origins, Layers held) {
  Origins out;
  std::ranges::copy_if(origins, std::back_inserter(out), [&](std::uint32_t index) {
    return !covers(held, manifest.declared[index].capability);
  });
  return out.empty() ? origins : out;
}

// ---- Limits and assertions ----

// The two sides of one owner with what holds for it: a tool's own part and serverCapabilities.
struct Owner {
  const Part* before = nullptr;
  const Part* after = nullptr;
  Layers held_before;
  Layers held_after;
};

// Calls `use(before, after)` for each bound that the owner states on either side.
template <typename T, typename Key, typename Use>
void for_each_bound(const std::vector<Granted<T>>& before, const std::vector<Granted<T>>& after,
                    Key key, Use use) {
  auto old = before.begin();
  auto now = after.begin();
  while (old != before.end() || now != after.end()) {
    const bool only_old =
        now == after.end() || (old != before.end() && key(old->capability) < key(now->capability));
    const bool only_now =
        old == before.end() || (now != after.end() && key(now->capability) < key(old->capability));
    use(only_now ? nullptr : &*old, only_old ? nullptr : &*now);
    if (!only_now) ++old;
    if (!only_old) ++now;
  }
}

// What a bound is now, and where that is declared: here, or else where it was.
template <typename T>
GrantChange bound_change(Kind kind, const Granted<T>* before, const Granted<T>* after) {
  GrantChange change{.kind = kind, .before = {}, .after = {}, .origins = {}};
  if (before != nullptr) change.before = before->capability;
  if (after != nullptr) change.after = after->capability;
  const bool from_after = change.side() == GrantChange::Side::after;
  change.origins = from_after ? after->origins : before->origins;
  return change;
}

// The largest that is stated, with its place.
const Granted<LimitCapability>* stated_limit(Layers held, LimitCapability::Kind kind) {
  const Granted<LimitCapability>* largest = nullptr;
  for (const Holdings* layer : held) {
    for (const auto& own : layer->policy().limits) {
      if (own.capability.kind != kind) continue;
      if (largest == nullptr || largest->capability.value < own.capability.value) largest = &own;
    }
  }
  return largest;
}

// No limit at all is the most.
bool lets_more(Layers before, Layers after, LimitCapability::Kind kind) {
  const auto old = limit_kept(before, kind);
  const auto now = limit_kept(after, kind);
  return old && (!now || now->value > old->value);
}

void add_limits(const Owner& owner, std::vector<GrantChange>& out) {
  const auto key = [](const LimitCapability& limit) { return limit.kind; };
  const auto compare = [&](const Granted<LimitCapability>* old,
                           const Granted<LimitCapability>* now) {
    const auto kind = (old != nullptr ? old : now)->capability.kind;
    if (limit_kept(owner.held_before, kind) == limit_kept(owner.held_after, kind)) return;
    const bool is_more = lets_more(owner.held_before, owner.held_after, kind);
    out.push_back(bound_change(is_more ? Kind::widened : Kind::narrowed,
                               stated_limit(owner.held_before, kind),
                               stated_limit(owner.held_after, kind)));
  };
  for_each_bound(owner.before->policy.limits, owner.after->policy.limits, key, compare);
}

// The text of an assertion that capgate keeps itself says nothing.
bool is_same_promise(const AssertCapability* a, const AssertCapability* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->id == b->id && (a->text == b->text || !built_in_validator(a->id).empty());
}

void add_assertions(const Owner& owner, std::vector<GrantChange>& out) {
  const auto key = [](const AssertCapability& assertion) { return std::string_view(assertion.id); };
  const auto compare = [&](const Granted<AssertCapability>* old,
                           const Granted<AssertCapability>* now) {
    const std::string_view id = (old != nullptr ? old : now)->capability.id;
    const AssertCapability* before = assertion_of(owner.held_before, id);
    if (is_same_promise(before, assertion_of(owner.held_after, id))) return;
    out.push_back(bound_change(before != nullptr ? Kind::widened : Kind::narrowed, old, now));
  };
  for_each_bound(owner.before->policy.assertions, owner.after->policy.assertions, key, compare);
}

// ---- Tools ----

// What widened first, otherwise in the order of the language.
std::vector<GrantChange> by_kind(std::vector<GrantChange> changes) {
  std::vector<GrantChange> out;
  for (const Kind kind : {Kind::widened, Kind::narrowed, Kind::moved}) {
    for (GrantChange& change : changes) {
      if (change.kind == kind) out.push_back(std::move(change));
    }
  }
  return out;
}

class Comparison {
 public:
  Comparison(const Side& before, const Side& after) : before_(before), after_(after) {}

  ManifestDiff compare() {
    compare_whole();
    compare_every_tool();
    auto old = before_.tools.begin();
    auto now = after_.tools.begin();
    while (old != before_.tools.end() || now != after_.tools.end()) {
      if (now == after_.tools.end() || (old != before_.tools.end() && old->name < now->name)) {
        remove_tool(*old++);
      } else if (old == before_.tools.end() || now->name < old->name) {
        add_tool(*now++);
      } else {
        compare_tool(*old++, *now++);
      }
    }
    return std::move(out_);
  }

 private:
  using Two = std::array<const Holdings*, 2>;
  using One = std::array<const Holdings*, 1>;

  void compare_whole() {
    const One old{&before_.whole->held};
    const One now{&after_.whole->held};
    add_grants(old, now, out_.server);
    const Owner owner{before_.whole.get(), after_.whole.get(), old, now};
    add_limits(owner, out_.server);
    add_assertions(owner, out_.server);
    settle_origins(out_.server, old, now);
    out_.server = by_kind(std::move(out_.server));
  }

  void add_grants(const One& old, const One& now, std::vector<GrantChange>& out) const {
    for_each_beyond(*after_.whole, old, [&](const Capability& grant, const Origins& origins) {
      out.push_back(widened(grant, origins, old));
    });
    for_each_beyond(*before_.whole, now, [&](const Capability& grant, const Origins& origins) {
      out.push_back(narrowed(grant, origins, now));
    });
  }

  // What each change comes from: see origins_beyond.
  void settle_origins(std::vector<GrantChange>& changes, Layers before, Layers after) const {
    for (GrantChange& change : changes) {
      if (change.kind == Kind::widened && change.side() == GrantChange::Side::after) {
        change.origins = origins_beyond(*after_.manifest, change.origins, before);
      } else if (change.kind == Kind::narrowed && change.side() == GrantChange::Side::before) {
        change.origins = origins_beyond(*before_.manifest, change.origins, after);
      }
    }
  }

  // What the server as a whole could do before only reached another tool.
  void settle(std::vector<GrantChange>& changes) const {
    const One old{&before_.whole->held};
    const One now{&after_.whole->held};
    for (GrantChange& change : changes) {
      if (change.kind != Kind::widened) continue;
      if (!is_bound(change.subject())) {
        if (covers(old, change.subject())) change.kind = Kind::moved;
      } else if (const auto* limit = std::get_if<LimitCapability>(&change.subject())) {
        if (!lets_more(old, now, limit->kind)) change.kind = Kind::moved;
      } else if (const auto* promise = std::get_if<AssertCapability>(&change.subject())) {
        const AssertCapability* after = assertion_of(now, promise->id);
        if (is_same_promise(assertion_of(old, promise->id), after)) change.kind = Kind::moved;
      }
    }
  }

  void keep(ToolChange change) {
    settle(change.changes);
    change.changes = by_kind(std::move(change.changes));
    if (change.changes.empty() &&
        (change.presence == Presence::both || change.presence == Presence::every)) {
      return;
    }
    out_.tools.push_back(std::move(change));
  }

  // serverCapabilities. A grant that merely moved up from each single tool is no change.
  void compare_every_tool() {
    const One old{&before_.server->held};
    const One now{&after_.server->held};
    ToolChange change{.tool = {}, .presence = Presence::every, .changes = {}};
    for_each_beyond(*after_.server, old, [&](const Capability& grant, const Origins& origins) {
      if (!has_every_tool(before_, after_, grant)) {
        change.changes.push_back(widened(grant, origins, old));
      }
    });
    for_each_beyond(*before_.server, now, [&](const Capability& grant, const Origins& origins) {
      if (!has_every_tool(after_, before_, grant)) {
        change.changes.push_back(narrowed(grant, origins, now));
      }
    });
    const Owner owner{before_.server.get(), after_.server.get(), old, now};
    add_limits(owner, change.changes);
    add_assertions(owner, change.changes);
    settle_origins(change.changes, old, now);
    keep(std::move(change));
  }

  // True if each tool of `of` is in `in` and has the grant there.
  bool has_every_tool(const Side& in, const Side& of, const Capability& grant) {
    if (of.tools.empty()) return false;
    for (const ToolPart& tool : of.tools) {
      if (++questions_ > most_questions) return false;
      const auto same = std::ranges::lower_bound(in.tools, tool.name, {}, &ToolPart::name);
      if (same == in.tools.end() || same->name != tool.name) return false;
      const Two held{&in.server->held, &same->own->held};
      if (!covers(held, grant)) return false;
    }
    return true;
  }

  void compare_tool(const ToolPart& old, const ToolPart& now) {
    const Two held_before{&old.own->held, &before_.server->held};
    const Two held_after{&now.own->held, &after_.server->held};
    const One server_before{&before_.server->held};
    const One server_after{&after_.server->held};
    ToolChange change{.tool = std::string(now.name), .presence = Presence::both, .changes = {}};
    for_each_beyond(*now.own, held_before, [&](const Capability& grant, const Origins& origins) {
      if (covers(server_after, grant)) return;  // said of every tool
      change.changes.push_back(widened(grant, origins, held_before));
    });
    for_each_beyond(*old.own, held_after, [&](const Capability& grant, const Origins& origins) {
      if (covers(server_before, grant)) return;
      change.changes.push_back(narrowed(grant, origins, held_after));
    });
    const Owner owner{old.own.get(), now.own.get(), held_before, held_after};
    add_limits(owner, change.changes);
    add_assertions(owner, change.changes);
    settle_origins(change.changes, held_before, held_after);
    keep(std::move(change));
  }

  // Of a tool that is new or gone only the grants are told: bounds are those of the whole server.
  void add_tool(const ToolPart& tool) {
    const One server{&after_.server->held};
    ToolChange change{.tool = std::string(tool.name), .presence = Presence::added, .changes = {}};
    for_each_beyond(*tool.own, server, [&](const Capability& grant, const Origins& origins) {
      change.changes.push_back(
          {.kind = Kind::widened, .before = {}, .after = grant, .origins = origins});
    });
    settle_origins(change.changes, server, server);
    keep(std::move(change));
  }

  void remove_tool(const ToolPart& tool) {
    const One server{&before_.server->held};
    ToolChange change{.tool = std::string(tool.name), .presence = Presence::removed, .changes = {}};
    for_each_beyond(*tool.own, server, [&](const Capability& grant, const Origins& origins) {
      change.changes.push_back(
          {.kind = Kind::narrowed, .before = grant, .after = {}, .origins = origins});
    });
    settle_origins(change.changes, server, server);
    keep(std::move(change));
  }

  const Side& before_;
  const Side& after_;
  std::size_t questions_ = 0;
  ManifestDiff out_;
};

// "seal": true of the manifest is part of what it says.
Checked<Side> prepare(const Manifest& manifest) {
  if (!manifest.seal) return cut_up(manifest);
  auto sealed = std::make_unique<Manifest>(manifest);
  Diagnostics mistakes = seal_variables(*sealed);
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes));
  Side out = TRY(cut_up(*sealed));
  out.sealed = std::move(sealed);
  return out;
}

bool has_kind(const std::vector<GrantChange>& changes, Kind kind) {
  return std::ranges::find(changes, kind, &GrantChange::kind) != changes.end();
}

}  // namespace

GrantChange::Side GrantChange::side() const {
  if (kind == Kind::narrowed) return before ? Side::before : Side::after;
  return after ? Side::after : Side::before;
}

const Capability& GrantChange::subject() const { return side() == Side::after ? *after : *before; }

bool ManifestDiff::is_wider() const { return has_kind(server, Kind::widened); }

bool ManifestDiff::has_moved() const {
  return std::ranges::any_of(
      tools, [](const ToolChange& tool) { return has_kind(tool.changes, Kind::moved); });
}

bool ManifestDiff::is_empty() const { return server.empty() && tools.empty(); }

std::expected<ManifestDiff, DiffError> diff(const Manifest& before, const Manifest& after) {
  auto old = prepare(before);
  if (!old) {
    return std::unexpected(
        DiffError{.side = GrantChange::Side::before, .mistakes = std::move(old).error()});
  }
  auto now = prepare(after);
  if (!now) {
    return std::unexpected(
        DiffError{.side = GrantChange::Side::after, .mistakes = std::move(now).error()});
  }
  return Comparison(*old, *now).compare();
}

}  // namespace capgate::core
