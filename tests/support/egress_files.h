// The files of the egress target, read back: what they allow, decided without the emitters' code.
// A line that none of these readers knows ends the program, so that nothing can be slipped in.
//
//   SquidFile(text).allows({.host = name, .port = 443, .addresses = {address}})
#pragma once

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/text.h"
#include "core/address_blocks.h"
#include "core/host.h"
#include "text/yaml.h"

namespace capgate::support {

struct EgressFlow {
  core::HostPattern host;
  std::uint16_t port = 0;
  std::vector<core::HostPattern> addresses;  // what the host resolves to
  std::string method = "CONNECT";
};

namespace detail {

inline std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) out.emplace_back(word);
  }
  return out;
}

inline bool is_in_block(std::string_view written, const core::HostPattern& address) {
  const std::size_t slash = written.find('/');
  const auto host = core::parse_host(written.substr(0, slash));
  CAPGATE_ASSERT(host.has_value());
  const bool ipv6 = host->kind == core::HostPattern::Kind::ipv6;
  core::AddressBlock block{.ipv6 = ipv6, .prefix = host->address, .bits = ipv6 ? 128U : 32U};
  if (slash != std::string_view::npos) {
    block.bits = static_cast<unsigned>(*parse_decimal(written.substr(slash + 1)));
  }
  const bool other = address.kind == core::HostPattern::Kind::ipv6;
  return core::covers(block,
                      {.ipv6 = other, .prefix = address.address, .bits = other ? 128U : 32U});
}

}  // namespace detail

class SquidFile {
 public:
  explicit SquidFile(std::string_view text) {
    CAPGATE_ASSERT(text.ends_with("\nhttp_access deny all\n"));
    for (const std::string_view line : split(text.substr(0, text.size() - 1), '\n')) read(line);
  }

  [[nodiscard]] std::size_t rules() const {
    return static_cast<std::size_t>(
        std::ranges::count(access_, "allow", [](const auto& words) { return words.front(); }));
  }

  [[nodiscard]] bool allows(const EgressFlow& flow) const {
    for (const auto& words : access_) {
      const bool all = std::ranges::all_of(words.begin() + 1, words.end(), [&](const auto& word) {
        return word.starts_with('!') ? !holds(word.substr(1), flow) : holds(word, flow);
      });
      if (all) return words.front() == "allow";
    }
    return false;
  }

 private:
  struct Acl {
    std::string type;
    std::vector<std::string> values;
  };

  void read(std::string_view line) {
    static const std::vector<std::string> settings = {"http_port",
                                                      "visible_hostname",
                                                      "cache",
                                                      "cache_mem",
                                                      "maximum_object_size",
                                                      "access_log",
                                                      "cache_log",
                                                      "cache_store_log",
                                                      "pid_filename",
                                                      "netdb_filename",
                                                      "coredump_dir",
                                                      "pinger_enable",
                                                      "client_db",
                                                      "icp_port",
                                                      "htcp_port",
                                                      "snmp_port",
                                                      "global_internal_static",
                                                      "via",
                                                      "forwarded_for",
                                                      "httpd_suppress_version_string",
                                                      "host_verify_strict",
                                                      "always_direct",
                                                      "server_persistent_connections",
                                                      "dns_defnames",
                                                      "negative_dns_ttl",
                                                      "shutdown_lifetime"};
    if (line.starts_with('#')) return;
    std::vector<std::string> words = detail::words_of(line);
    CAPGATE_ASSERT(words.size() >= 2);
    if (words[0] == "acl") {
      CAPGATE_ASSERT(words.size() >= 4 && !acls_.contains(words[1]));
      acls_[words[1]] = {words[2], {words.begin() + 3, words.end()}};
    } else if (words[0] == "http_access") {
      access_.emplace_back(words.begin() + 1, words.end());
    } else {
      CAPGATE_ASSERT(std::ranges::find(settings, words[0]) != settings.end());
    }
  }

  [[nodiscard]] bool holds(const std::string& name, const EgressFlow& flow) const {
    if (name == "all") return true;
    if (name == "manager") return false;
    const auto found = acls_.find(name);
    CAPGATE_ASSERT(found != acls_.end());
    const auto& [type, values] = found->second;
    const auto any = [&, &all = values](auto test) { return std::ranges::any_of(all, test); };
    if (type == "method") return any([&](const auto& value) { return value == flow.method; });
    if (type == "proto") return flow.method != "CONNECT";
    if (type == "port")
      return any([&](const auto& value) { return value == std::to_string(flow.port); });
    if (type == "dst") {
      return any([&](const std::string& value) {
        return std::ranges::any_of(flow.addresses, [&](const core::HostPattern& address) {
          return detail::is_in_block(value, address);
        });
      });
    }
    const std::string host = print(flow.host);
    CAPGATE_ASSERT(values.front() == "-n");  // else squid would look the address up
    return std::ranges::any_of(values.begin() + 1, values.end(), [&](const std::string& value) {
      if (type == "dstdom_regex") return std::regex_search(host, std::regex(value));
      CAPGATE_ASSERT(type == "dstdomain");
      return value.starts_with('.') ? host == value.substr(1) || host.ends_with(value)
                                    : host == value;
    });
  }

  std::map<std::string, Acl> acls_;
  std::vector<std::vector<std::string>> access_;
};

class NftFile {
 public:
  explicit NftFile(std::string_view text) {
    const std::size_t begin = text.find("<<'RULES'\n");
    const std::size_t end = text.find("\nRULES\n");
    CAPGATE_ASSERT(begin < end && text.find("\nRULES\n", end + 1) == std::string_view::npos);
    std::string_view chain;
    for (const std::string_view line : split(text.substr(begin, end - begin), '\n')) {
      if (line.starts_with("  chain ")) chain = line;
      if (line.starts_with("    elements = { ")) {
        const std::string_view list = line.substr(17, line.size() - 19);
        for (const std::string& word : detail::words_of(list)) {
          private_.push_back(word.ends_with(',') ? word.substr(0, word.size() - 1) : word);
        }
      }
      const bool is_rule =
          line.starts_with("    tcp dport ") || line.starts_with("    meta l4proto tcp ");
      if (chain == "  chain output {" && is_rule) rules_.push_back(detail::words_of(line));
    }
  }

  [[nodiscard]] std::size_t rules() const { return rules_.size(); }

  [[nodiscard]] bool allows(const core::HostPattern& address, std::uint16_t port) const {
    const std::string_view family = address.kind == core::HostPattern::Kind::ipv6 ? "ip6" : "ip";
    return std::ranges::any_of(rules_, [&](const std::vector<std::string>& rule) {
      CAPGATE_ASSERT(rule.back() == "accept" && rule[4] == "daddr");
      if (rule[0] == "tcp" && rule[2] != std::to_string(port)) return false;
      if (rule[3] != family) return false;
      if (rule[5] != "!=") return rule.size() == 7 && rule[5] == address.text;
      return std::ranges::none_of(
          private_, [&](const std::string& block) { return detail::is_in_block(block, address); });
    });
  }

 private:
  std::vector<std::vector<std::string>> rules_;
  std::vector<std::string> private_;
};

// The authorities that the first filter of an Envoy lets pass.
class EnvoyFile {
 public:
  explicit EnvoyFile(std::string text) {
    const auto document = text::parse_yaml(std::move(text));
    CAPGATE_ASSERT(document.has_value());
    find_policies(document->root());
    CAPGATE_ASSERT(filters_.size() == 2 && filters_[0].size() == filters_[1].size());
  }

  [[nodiscard]] std::size_t rules() const { return filters_[0].size(); }

  [[nodiscard]] bool allows(std::string_view authority) const {
    return std::ranges::any_of(filters_[0], [&](const std::vector<Condition>& conditions) {
      return std::ranges::all_of(conditions, [&](const Condition& condition) {
        const std::regex pattern(condition.pattern, std::regex::icase);
        return std::regex_match(std::string(authority), pattern) != condition.negated;
      });
    });
  }

 private:
  struct Condition {
    std::string pattern;
    bool negated = false;
  };

  void find_policies(text::Value value) {
    if (value.is(text::Kind::array)) {
      for (const text::Value element : value.elements()) find_policies(element);
    }
    if (!value.is(text::Kind::object)) return;
    if (const auto policies = value.find("policies")) {
      filters_.emplace_back();
      for (const text::Member policy : policies->members()) {
        filters_.back().emplace_back();
        collect(policy.value, false);
      }
      return;
    }
    for (const text::Member member : value.members()) find_policies(member.value);
  }

  void collect(text::Value value, bool negated) {
    if (value.is(text::Kind::array)) {
      for (const text::Value element : value.elements()) collect(element, negated);
    }
    if (!value.is(text::Kind::object)) return;
    const auto header = value.find("header");
    if (header && header->find("name")->text() == ":authority") {
      std::string pattern(header->find("string_match")->find("safe_regex")->find("regex")->text());
      CAPGATE_ASSERT(pattern.starts_with("(?i)"));
      filters_.back().back().push_back({pattern.substr(4), negated});
    }
    for (const text::Member member : value.members()) {
      collect(member.value, negated != (member.key.text() == "not_rule"));
    }
  }

  std::vector<std::vector<std::vector<Condition>>> filters_;
};

}  // namespace capgate::support
