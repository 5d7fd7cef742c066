#include "core/merge.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/built_in.h"
#include "core/merge_files.h"
#include "core/merge_net.h"

namespace capgate::core {
namespace {

template <typename T>
void add_origins(Granted<T>& into, const Granted<T>& from) {
  into.origins.insert(into.origins.end(), from.origins.begin(), from.origins.end());
}

// Sorts by `key` and folds neighbours of equal key with `combine(kept, other)`.
template <typename T, typename Key, typename Combine>
void fold(std::vector<Granted<T>>& grants, Key key, Combine combine) {
  std::ranges::sort(grants, [&](const Granted<T>& a, const Granted<T>& b) {
    const auto order = key(a.capability) <=> key(b.capability);
    return order != 0 ? order < 0 : a.origins < b.origins;
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < grants.size(); ++i) {
    if (key(grants[kept].capability) == key(grants[i].capability)) {
      combine(grants[kept], grants[i]);
      add_origins(grants[kept], grants[i]);
    } else if (++kept != i) {
      grants[kept] = std::move(grants[i]);
    }
  }
  if (!grants.empty()) grants.resize(kept + 1);
}

template <typename T>
void fold_equal(std::vector<Granted<T>>& grants) {
  fold(grants, std::identity(), [](auto&, const auto&) {});
}

class Merger {
 public:
  explicit Merger(const Manifest& manifest) : manifest_(manifest) {}

  Checked<Policy> merge(std::optional<std::uint32_t> tool) {
    sort_out(tool);
    merge_files(policy_.files, manifest_.home);
    merge_net(policy_.connect);
    fold_equal(policy_.listen);
    fold_equal(policy_.sockets);
    fold_equal(policy_.clocks);
    merge_programs();
    merge_variables();
    merge_limits();
    merge_assertions();
    check_public_only();
    if (!conflicts_.empty()) {
      sort_diagnostics(conflicts_);
      return std::unexpected(std::move(conflicts_));
    }
    for_each_list([](auto& grants) {
      for (auto& grant : grants) sort_and_deduplicate(grant.origins);
    });
    policy_.hash = policy_hash(policy_);
    return std::move(policy_);
  }

 private:
  template <typename Use>
  void for_each_list(Use use) {
    use(policy_.files);
    use(policy_.connect);
    use(policy_.listen);
    use(policy_.programs);
    use(policy_.variables);
    use(policy_.sockets);
    use(policy_.clocks);
    use(policy_.limits);
    use(policy_.assertions);
  }

  void sort_out(std::optional<std::uint32_t> tool) {
    for (std::uint32_t i = 0; i < manifest_.declared.size(); ++i) {
      const Declared& declared = manifest_.declared[i];
      if (tool && declared.tool != Declared::whole_server && declared.tool != *tool) continue;
      std::visit([&](const auto& capability) { list_for(capability).push_back({capability, {i}}); },
                 declared.capability);
    }
  }

  std::vector<Granted<FsCapability>>& list_for(const FsCapability&) { return policy_.files; }
  std::vector<Granted<NetConnect>>& list_for(const NetConnect&) { return policy_.connect; }
  std::vector<Granted<NetListen>>& list_for(const NetListen&) { return policy_.listen; }
  std::vector<Granted<ExecCapability>>& list_for(const ExecCapability&) { return policy_.programs; }
  std::vector<Granted<EnvCapability>>& list_for(const EnvCapability&) { return policy_.variables; }
  std::vector<Granted<IpcCapability>>& list_for(const IpcCapability&) { return policy_.sockets; }
  std::vector<Granted<ClockCapability>>& list_for(const ClockCapability&) { return policy_.clocks; }
  std::vector<Granted<LimitCapability>>& list_for(const LimitCapability&) { return policy_.limits; }
  std::vector<Granted<AssertCapability>>& list_for(const AssertCapability&) {
    return policy_.assertions;
  }

  void merge_programs() {
    fold(
        policy_.programs, [](const ExecCapability& c) { return std::string_view(c.program); },
        [](auto& kept, const auto& other) {
          kept.capability.nested_sandbox |= other.capability.nested_sandbox;
        });
  }

  void merge_variables() {
    fold(
        policy_.variables, [](const EnvCapability& c) { return std::string_view(c.name); },
        [&](auto& kept, const auto& other) { combine_variables(kept, other); });
    for (auto& grant : policy_.variables) sort_and_deduplicate(grant.capability.to);
  }

  // inject beats read. A value that one tool seals and another one holds would not be sealed.
  void combine_variables(Granted<EnvCapability>& kept, const Granted<EnvCapability>& other) {
    using enum EnvCapability::Action;
    if (other.capability.action == read) return;
    if (kept.capability.action == read) {
      kept.capability = other.capability;
      return;
    }
    EnvCapability& env = kept.capability;
    if (env.to.empty() != other.capability.to.empty()) {
      conflict(other, format("{} is sealed by one tool and held by another", env.name),
               "give all of them the same ?to=");
    } else if (env.as != other.capability.as) {
      conflict(other, format("{} stands in two places of a request", env.name),
               "give all of them the same &as=");
    } else {
      env.to.insert(env.to.end(), other.capability.to.begin(), other.capability.to.end());
    }
  }

  void merge_limits() {
    fold(
        policy_.limits, [](const LimitCapability& c) { return c.kind; },
        [](auto& kept, const auto& other) {
          kept.capability.value = std::max(kept.capability.value, other.capability.value);
        });
  }

  void merge_assertions() {
    fold(
        policy_.assertions, [](const AssertCapability& c) { return std::string_view(c.id); },
        [&](auto& kept, const auto& other) {
          if (kept.capability.text == other.capability.text) return;
          conflict(other, format("assertion {} has two texts", kept.capability.id),
                   "give it one text, or two ids");
        });
  }

  // Both places are told: either of the two may be the mistake.
  void check_public_only() {
    const auto assertion =
        std::ranges::find(policy_.assertions, block_private_id,
                          [](const auto& grant) { return std::string_view(grant.capability.id); });
    if (assertion == policy_.assertions.end()) return;
    std::vector<std::string> named;
    for (const auto& grant : policy_.connect) {
      const bool is_private = names_private_endpoint(grant.capability.endpoint.host);
      if (!is_private && !grant.capability.refinements.private_network) continue;
      named.push_back(print(Capability(grant.capability)));
      conflict(grant,
               format("{} {}, which assert:{} excludes", named.back(),
                      is_private ? "is private" : "leads to private addresses", block_private_id),
               "remove one of the two");
    }
    if (named.empty()) return;
    conflict(*assertion,
             format("assert:{} excludes what is declared: {}", block_private_id, join(named, ", ")),
             "remove one of the two");
  }

  template <typename T>
  void conflict(const Granted<T>& grant, std::string_view message, std::string_view help) {
    conflicts_.push_back({.code = Code::policy_conflict,
                          .where = manifest_.declared[grant.origins.front()].where,
                          .message = std::string(message),
                          .help = std::string(help)});
  }

  const Manifest& manifest_;
  Policy policy_;
  Diagnostics conflicts_;
};

}  // namespace

Checked<Policy> merge(const Manifest& manifest, std::optional<std::uint32_t> tool) {
  return Merger(manifest).merge(tool);
}

}  // namespace capgate::core
