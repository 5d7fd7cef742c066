#include "core/merge_net.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/symbolic.h"

namespace capgate::core {
namespace {

using Grant = Granted<NetConnect>;

class Index {
 public:
  explicit Index(std::vector<Grant>& grants)
      : grants_(grants), has_private_(std::ranges::any_of(grants, [](const Grant& grant) {
          return grant.capability.refinements.private_network;
        })) {}

  // The widest other rule that covers `grant`, looked for from the widest down.
  Grant* find_cover(const Grant& grant) {
    const Endpoint& endpoint = grant.capability.endpoint;
    const HostPattern& host = endpoint.host;
    if (!may_be_private(host)) {
      if (Grant* found = find_host(HostPattern::Kind::any, "*", grant)) return found;
      if (host.kind == HostPattern::Kind::name || host.kind == HostPattern::Kind::subdomains) {
        if (Grant* found = find_suffix(grant)) return found;
      }
    }
    return find_port(host, grant);
  }

 private:
  Grant* find_suffix(const Grant& grant) {
    const std::string_view name = grant.capability.endpoint.host.text;
    for (std::size_t dot = name.rfind('.');; dot = name.rfind('.', dot - 1)) {
      const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
      if (begin == 0) return nullptr;  // the name itself is not below itself
      if (Grant* found = find_host(HostPattern::Kind::subdomains, name.substr(begin), grant)) {
        return found;
      }
      if (dot == 0) return nullptr;
    }
  }

  // Most names that are looked for are not there, so that is found out first, without a copy.
  Grant* find_host(HostPattern::Kind kind, std::string_view text, const Grant& grant) {
    const auto key = [](const Grant& rule) {
      const HostPattern& host = rule.capability.endpoint.host;
      return std::pair(host.kind, std::string_view(host.text));
    };
    const bool known = std::ranges::binary_search(grants_, std::pair(kind, text), {}, key);
    return known ? find_port({.kind = kind, .text = std::string(text)}, grant) : nullptr;
  }

  Grant* find_port(const HostPattern& host, const Grant& grant) {
    if (Grant* found = find_endpoint({.host = host, .port = std::nullopt}, grant)) return found;
    if (!grant.capability.endpoint.port) return nullptr;
    return find_endpoint({.host = host, .port = grant.capability.endpoint.port}, grant);
  }

  // Methods and paths only narrow and private=true only widens; sni and proto change what is
  // checked, so they must agree. So the rule without methods and paths can cover, or the one that
  // is refined alike, each with private=true or as this one has it.
  Grant* find_endpoint(const Endpoint& endpoint, const Grant& grant) {
    const NetRefinements& own = grant.capability.refinements;
    NetConnect wanted{.endpoint = endpoint, .refinements = {.sni = own.sni, .proto = own.proto}};
    if (Grant* found = find_as_private(wanted, grant)) return found;
    wanted.refinements = own;
    return find_as_private(wanted, grant);
  }

  Grant* find_as_private(NetConnect& wanted, const Grant& grant) {
    wanted.refinements.private_network = true;
    if (has_private_) {
      if (Grant* found = find(wanted, grant)) return found;
    }
    if (grant.capability.refinements.private_network) return nullptr;
    wanted.refinements.private_network = false;
    return find(wanted, grant);
  }

  Grant* find(const NetConnect& wanted, const Grant& grant) {
    const auto it = std::ranges::lower_bound(grants_, wanted, {}, &Grant::capability);
    const bool found = it != grants_.end() && it->capability == wanted && &*it != &grant;
    return found ? &*it : nullptr;
  }

  std::vector<Grant>& grants_;
  bool has_private_;  // else half of the searches are spared
};

void remove_equal(std::vector<Grant>& grants) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < grants.size(); ++i) {
    if (grants[kept].capability == grants[i].capability) {
      Origins& into = grants[kept].origins;
      into.insert(into.end(), grants[i].origins.begin(), grants[i].origins.end());
    } else if (++kept != i) {
      grants[kept] = std::move(grants[i]);
    }
  }
  grants.resize(kept + 1);
}

}  // namespace

void merge_net(std::vector<Grant>& grants) {
  if (grants.empty()) return;
  std::ranges::sort(grants, {},
                    [](const Grant& grant) { return std::tie(grant.capability, grant.origins); });
  remove_equal(grants);
  if (grants.size() == 1) return;

  Index index(grants);
  std::vector<Grant*> cover(grants.size());
  for (std::size_t i = 0; i < grants.size(); ++i) {
    cover[i] = index.find_cover(grants[i]);
  }
  for (std::size_t i = 0; i < grants.size(); ++i) {
    // A cover may itself be covered (by methods or a port): its origins go all the way up.
    Grant* top = cover[i];
    while (top != nullptr && cover[static_cast<std::size_t>(top - grants.data())] != nullptr) {
      top = cover[static_cast<std::size_t>(top - grants.data())];
    }
    if (top == nullptr) continue;
    top->origins.insert(top->origins.end(), grants[i].origins.begin(), grants[i].origins.end());
  }
  std::vector<Grant> kept;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (cover[i] == nullptr) kept.push_back(std::move(grants[i]));
  }
  grants = std::move(kept);
}

}  // namespace capgate::core
