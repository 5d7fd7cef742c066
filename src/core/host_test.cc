#include "core/host.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "support/endpoint_vectors.h"
#include "support/generators.h"

namespace capgate::core {
namespace {

using Kind = HostPattern::Kind;
using Verdict = support::EndpointVector::Verdict;

HostPattern host(std::string_view text) {
  const auto parsed = parse_host(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : HostPattern{};
}

// ---- The vector file -------------------------------------------------------------------------

TEST(Endpoint, MatchesAsTheVectorFileSays) {
  const auto vectors = support::endpoint_vectors();
  EXPECT_GE(vectors.size(), 120U);
  for (const auto& vector : vectors) {
    SCOPED_TRACE(vector.line);
    const auto rule = parse_endpoint(vector.rule);
    const auto destination = parse_endpoint(vector.destination);
    EXPECT_EQ(!rule, vector.verdict == Verdict::invalid_rule);
    EXPECT_EQ(!destination, vector.verdict == Verdict::invalid_destination);
    if (!rule || !destination) continue;
    EXPECT_EQ(matches(*rule, *destination), vector.verdict == Verdict::yes);
  }
}

TEST(Endpoint, EveryVectorPrintsAndParsesBack) {
  for (const auto& vector : support::endpoint_vectors()) {
    for (const std::string& text : {vector.rule, vector.destination}) {
      const auto endpoint = parse_endpoint(text);
      if (!endpoint) continue;
      const auto again = parse_endpoint(print(*endpoint));
      ASSERT_TRUE(again) << print(*endpoint);
      EXPECT_EQ(*again, *endpoint) << text;
      EXPECT_EQ(print(*again), print(*endpoint)) << text;
    }
  }
}

TEST(Endpoint, EveryRefusalOfTheVectorFilePointsInsideTheText) {
  for (const auto& vector : support::endpoint_vectors()) {
    const auto endpoint = parse_endpoint(vector.rule);
    if (endpoint) continue;
    SCOPED_TRACE(vector.line);
    EXPECT_LE(endpoint.error().where.begin, endpoint.error().where.end);
    EXPECT_LE(endpoint.error().where.end, vector.rule.size());
    EXPECT_FALSE(endpoint.error().message.empty());
    EXPECT_FALSE(endpoint.error().help.empty());
  }
}

// ---- Hosts -----------------------------------------------------------------------------------

TEST(Host, KnowsItsKind) {
  EXPECT_EQ(host("*").kind, Kind::any);
  EXPECT_EQ(host("*.example.com").kind, Kind::subdomains);
  EXPECT_EQ(host("*.example.com").text, "example.com");
  EXPECT_EQ(host("example.com").kind, Kind::name);
  EXPECT_EQ(host("8.8.8.8").kind, Kind::ipv4);
  EXPECT_EQ(host("2001:db8::1").kind, Kind::ipv6);
  EXPECT_EQ(host("[2001:db8::1]"), host("2001:DB8:0::1"));
}

TEST(Host, PrintsOneSpelling) {
  EXPECT_EQ(print(host("API.GitHub.COM.")), "api.github.com");
  EXPECT_EQ(print(host("*.GitHub.com")), "*.github.com");
  EXPECT_EQ(print(host("2001:DB8:0:0:0:0:0:1")), "[2001:db8::1]");
  EXPECT_EQ(print(*parse_endpoint("[::1]:80")), "[::1]:80");
  EXPECT_EQ(print(*parse_endpoint("*")), "*");
}

struct Refused {
  std::string_view text;
  Span where;
  Code code = Code::cap_net_host;
};

TEST(Endpoint, RefusesWithTheExactPlace) {
  constexpr Refused table[] = {
      {"", {0, 0}},
      {"a b.com", {1, 2}},
      {"a.com/x:443", {5, 6}},
      {"user@a.com:443", {4, 5}},
      {"api.*.com", {4, 5}},
      {"*.a*.com", {3, 4}},
      {"*.-a.com", {2, 4}},
      {"a.-b.com", {2, 4}},
      {"127.1:80", {0, 5}},
      {"[::g]:80", {0, 5}},
      {"a.com:443x", {6, 10}, Code::cap_net_port},
      {"[::1]:0", {6, 7}, Code::cap_net_port},
      {"a.com:", {6, 6}, Code::cap_net_port},
  };
  for (const Refused& row : table) {
    SCOPED_TRACE(row.text);
    const auto result = parse_endpoint(row.text);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, row.code);
    EXPECT_EQ(result.error().where.begin, row.where.begin);
    EXPECT_EQ(result.error().where.end, row.where.end);
  }
}

TEST(Host, D25RefusesWhatIsNoHost) {
  for (const std::string_view text :
       {"", "a b", "user@host", "https://a.com", "a.com/path", "a\nb", "a\tb", "*a", "a*", "**"}) {
    EXPECT_FALSE(parse_host(text)) << text;
  }
}

TEST(Port, D25TakesDigitsOnly) {
  EXPECT_EQ(*parse_port("1"), 1);
  EXPECT_EQ(*parse_port("65535"), 65535);
  for (const std::string_view text : {"", "0", "65536", "443abc", "80-90", "80,443", "1e3", "4 43",
                                      " 443", "443 ", "+443", "-1", "0443", "0x1bb", "*"}) {
    const auto port = parse_port(text);
    ASSERT_FALSE(port) << text;
    EXPECT_EQ(port.error().code, Code::cap_net_port);
  }
}

// ---- Private addresses -----------------------------------------------------------------------

struct Range {
  std::string_view before;  // the address just outside, or empty at the end of the space
  std::string_view first;
  std::string_view last;
  std::string_view after;
};

TEST(Host, D23PrivateIpv4RangesHaveExactEdges) {
  constexpr Range ranges[] = {
      {"", "0.0.0.0", "0.255.255.255", "1.0.0.0"},
      {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
      {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
      {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
      {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
      {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
      {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
      {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
      {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
      {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
      {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
      {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
      {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
      {"223.255.255.255", "224.0.0.0", "255.255.255.255", ""},
  };
  for (const Range& range : ranges) {
    EXPECT_TRUE(is_private_address(host(range.first))) << range.first;
    EXPECT_TRUE(is_private_address(host(range.last))) << range.last;
    if (!range.before.empty()) EXPECT_FALSE(is_private_address(host(range.before))) << range.before;
    if (!range.after.empty()) EXPECT_FALSE(is_private_address(host(range.after))) << range.after;
  }
}

TEST(Host, D23PrivateIpv6RangesHaveExactEdges) {
  constexpr std::string_view all = ":ffff:ffff:ffff:ffff:ffff:ffff";
  const auto last = [&](std::string_view head) { return std::string(head) + std::string(all); };
  const std::string deep = ":ffff:ffff:ffff:ffff:ffff";
  struct OwnedRange {
    std::string before, first, last, after;
  };
  const OwnedRange ranges[] = {
      // ::/8 with loopback, mapped and NAT64; 100::/8 follows it directly.
      {"", "::", last("ff:ffff"), ""},
      {"", "100::", last("1ff:ffff"), "200::"},
      {last("2000:ffff"), "2001::", last("2001:1ff"), "2001:200::"},
      {"2001:db7:ffff" + deep, "2001:db8::", "2001:db8:ffff" + deep, "2001:db9::"},
      {last("2001:ffff"), "2002::", last("2002:ffff"), "2003::"},
      {last("3ffe:ffff"), "3fff::", "3fff:fff:ffff" + deep, "3fff:1000::"},
      {last("5eff:ffff"), "5f00::", last("5f00:ffff"), "5f01::"},
      {last("fbff:ffff"), "fc00::", last("fdff:ffff"), "fe00::"},
      {last("fe7f:ffff"), "fe80::", last("febf:ffff"), ""},
      {"", "fec0::", last("feff:ffff"), ""},
      {"", "ff00::", last("ffff:ffff"), ""},
  };
  for (const OwnedRange& range : ranges) {
    EXPECT_TRUE(is_private_address(host(range.first))) << range.first;
    EXPECT_TRUE(is_private_address(host(range.last))) << range.last;
    if (!range.before.empty()) EXPECT_FALSE(is_private_address(host(range.before))) << range.before;
    if (!range.after.empty()) EXPECT_FALSE(is_private_address(host(range.after))) << range.after;
  }
  for (const std::string_view text : {"::1", "64:ff9b::808:808", "64:ff9b:1::1", "::808:808"}) {
    EXPECT_TRUE(is_private_address(host(text))) << text;
  }
  EXPECT_FALSE(is_private_address(host("2606:4700:4700::1111")));
}

TEST(Host, KnowsTheAddressesOfASite) {
  for (const std::string_view text : {"10.0.0.5", "172.16.0.1", "172.31.255.255", "192.168.1.1",
                                      "100.64.0.1", "fd00::1", "fc00::1"}) {
    EXPECT_TRUE(is_site_address(host(text))) << text;
  }
  for (const std::string_view text :
       {"8.8.8.8", "127.0.0.1", "169.254.169.254", "100.100.100.200", "172.32.0.1", "224.0.0.1",
        "::1", "fe80::1", "fd00:ec2::254", "2606:4700::1", "localhost", "*"}) {
    EXPECT_FALSE(is_site_address(host(text))) << text;
  }
}

TEST(Host, KnowsWhatANameMayLeadToInAPrivateNetwork) {
  for (const std::string_view text :
       {"10.0.0.0",    "10.255.255.255", "100.64.0.1", "172.16.0.1",      "192.168.1.1",
        "192.0.2.0",   "192.0.2.255",    "198.18.0.1", "198.19.255.255",  "198.51.100.7",
        "203.0.113.0", "203.0.113.255",  "240.0.0.1",  "255.255.255.254", "fc00::1",
        "fd00::1",     "2001:db8::1",    "2001:2::1",  "2001:2:0:ffff::", "3fff:fff::1"}) {
    EXPECT_TRUE(is_private_network_address(host(text))) << text;
    EXPECT_TRUE(is_private_address(host(text))) << text;
  }
  for (const std::string_view text : {"8.8.8.8",
                                      "0.0.0.0",
                                      "0.1.2.3",
                                      "127.0.0.1",
                                      "127.255.255.255",
                                      "169.254.0.1",
                                      "169.254.169.254",
                                      "100.100.100.200",
                                      "168.63.129.16",
                                      "192.0.0.1",
                                      "192.0.0.192",
                                      "192.88.99.1",
                                      "224.0.0.1",
                                      "239.255.255.255",
                                      "255.255.255.255",
                                      "192.0.3.0",
                                      "::",
                                      "::1",
                                      "::808:808",
                                      "64:ff9b::a00:1",
                                      "64:ff9b:1::a00:1",
                                      "100::1",
                                      "2001::1",
                                      "2001:3::1",
                                      "2001:2:1::1",
                                      "2002:a00:1::1",
                                      "3fff:1000::1",
                                      "5f00::1",
                                      "fe80::1",
                                      "fec0::1",
                                      "ff02::1",
                                      "fd00:ec2::254",
                                      "fd20:ce::254",
                                      "2606:4700::1",
                                      "localhost",
                                      "a.test",
                                      "*"}) {
    EXPECT_FALSE(is_private_network_address(host(text))) << text;
  }
}

TEST(Host, LocalhostIsTwoAddresses) {
  EXPECT_TRUE(is_localhost_address(host("127.0.0.1")));
  EXPECT_TRUE(is_localhost_address(host("::1")));
  for (const std::string_view text : {"127.0.0.2", "::2", "localhost", "8.8.8.8"}) {
    EXPECT_FALSE(is_localhost_address(host(text))) << text;
  }
}

TEST(Host, D23PrivacyIsDecidedOnAddressesNotOnText) {
  for (const std::string_view name : {"127.evil.test", "10.evil.com", "192.168.evil.com",
                                      "localhost.evil.com", "localhost.localdomain"}) {
    EXPECT_FALSE(is_private_address(host(name))) << name;
    EXPECT_FALSE(names_private_endpoint(host(name))) << name;
  }
  EXPECT_FALSE(is_private_address(host("*")));
  EXPECT_FALSE(names_private_endpoint(host("*")));
  EXPECT_TRUE(names_private_endpoint(host("localhost")));
  EXPECT_TRUE(names_private_endpoint(host("a.localhost")));
  EXPECT_TRUE(names_private_endpoint(host("169.254.169.254")));
  EXPECT_TRUE(names_private_endpoint(host("::1")));
}

// ---- Properties ------------------------------------------------------------------------------

// The obvious matcher, on the printed text.
bool slow_match(const Endpoint& rule, const Endpoint& destination) {
  if (rule.port && rule.port != destination.port) return false;
  const std::string left = print(rule.host);
  const std::string right = print(destination.host);
  if (left == right) return true;
  // "*.localhost" itself names nobody: a private endpoint is only ever covered by its own name.
  const bool is_local =
      right == "localhost" || (right.ends_with(".localhost") && !right.starts_with("*."));
  if (is_local || is_private_address(destination.host)) return false;
  if (left == "*") return true;
  const bool is_address = is_digit(right.back()) || right.back() == ']';
  return left.starts_with("*.") && !is_address && right.size() >= left.size() &&
         right.ends_with(left.substr(1));
}

RC_GTEST_PROP(Endpoint, MatchesLikeTheSlowMatcher, ()) {
  for (int i = 0; i < 50; ++i) {
    const auto rule = *support::endpoint();
    const auto destination = *support::endpoint();
    RC_ASSERT(matches(rule, destination) == slow_match(rule, destination));
  }
}

RC_GTEST_PROP(Endpoint, MatchingIsTransitive, ()) {
  for (int i = 0; i < 50; ++i) {
    const auto a = *support::endpoint();
    const auto b = *support::endpoint();
    const auto c = *support::endpoint();
    if (matches(a, b) && matches(b, c)) RC_ASSERT(matches(a, c));
  }
}

RC_GTEST_PROP(Endpoint, PrintsAndParsesBack, ()) {
  const auto endpoint = *support::endpoint();
  const auto again = parse_endpoint(print(endpoint));
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == endpoint);
}

RC_GTEST_PROP(Endpoint, AnyBytesGiveAnEndpointOrAPlaceInside, ()) {
  const std::string text = *support::text_over("a1*.:[]-xF0@\xc3 ");
  const auto endpoint = parse_endpoint(text);
  if (endpoint) {
    RC_ASSERT(*parse_endpoint(print(*endpoint)) == *endpoint);
  } else {
    RC_ASSERT(endpoint.error().where.begin <= endpoint.error().where.end);
    RC_ASSERT(endpoint.error().where.end <= text.size());
  }
}

}  // namespace
}  // namespace capgate::core
