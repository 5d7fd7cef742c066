#include "egress/policy.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>

#include "support/flow_vectors.h"
#include "support/generators.h"

namespace capgate::egress {
namespace {

constexpr std::string_view example =
    R"({"server":"github","sandbox":"5f2c9a11","policyHash":"sha256:00",)"
    R"("rules":[{"capability":"net:connect:api.github.com:443","at":"github.json:12:7"}],)"
    R"("seals":[{"capability":"env:inject:TOKEN?to=api.github.com:443","placeholder":"ghp_x",)"
    R"("at":"github.json:13:7"}],"roots":{"file":"","directory":""},"publicOnly":false,"lacking":["net:connect:b.test:80"],)"
    R"("proxyCredential":"00ff",)"
    R"("limits":{"connections":512,"perSecond":100,"requestsPerSecond":1000,"idleSeconds":900,"headBytes":65536,)"
    R"("helloSeconds":15,"dialSeconds":20,"bytes":0}})";

std::string with(std::string_view from, std::string_view to) {
  std::string text(example);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Policy, IsReadAsWritten) {
  const auto policy = read_policy(example);
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->server, "github");
  EXPECT_EQ(policy->sandbox, "5f2c9a11");
  EXPECT_EQ(policy->hash, "sha256:00");
  ASSERT_EQ(policy->rules.size(), 1U);
  EXPECT_EQ(policy->rules[0].text, "net:connect:api.github.com:443");
  EXPECT_EQ(policy->rules[0].position, "github.json:12:7");
  EXPECT_EQ(policy->rules[0].connect.endpoint, *core::parse_endpoint("api.github.com:443"));
  ASSERT_EQ(policy->seals.size(), 1U);
  EXPECT_EQ(policy->seals[0].env.name, "TOKEN");
  EXPECT_EQ(policy->seals[0].placeholder, "ghp_x");
  EXPECT_TRUE(is_sealed(*policy, *core::parse_host("api.github.com"), 443));
  EXPECT_FALSE(is_sealed(*policy, *core::parse_host("api.github.com"), 80));
  EXPECT_FALSE(is_sealed(*policy, *core::parse_host("github.com"), 443));
  EXPECT_FALSE(policy->public_only);
  ASSERT_EQ(policy->lacking.size(), 1U);
  EXPECT_EQ(policy->lacking[0].endpoint, *core::parse_endpoint("b.test:80"));
  EXPECT_FALSE(read_policy(with("net:connect:b.test:80", "exec:spawn:git")));
  EXPECT_FALSE(read_policy(with("\"net:connect:b.test:80\"", "80")));
  EXPECT_EQ(policy->proxy_credential, "00ff");
  EXPECT_EQ(policy->limits.connections, 512U);
  EXPECT_EQ(policy->limits.dial_seconds, 20U);
  EXPECT_EQ(print_policy(*policy), example);
  EXPECT_TRUE(read_policy(with("\"publicOnly\":false", "\"publicOnly\":true"))->public_only);
}

TEST(Policy, DefaultsAreAPolicyToo) {
  const auto policy = read_policy(print_policy(Policy{}));
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->rules.empty());
  EXPECT_EQ(policy->limits.per_second, EgressLimits{}.per_second);
}

TEST(Policy, IsRefusedUnlessItIsExactlyOne) {
  const std::string wrong[] = {
      "",
      "[]",
      "null",
      std::string(example) + "x",
      with("\"server\"", "\"sever\""),
      with("\"server\":\"github\",", ""),
      with("\"server\":\"github\"", "\"server\":1"),
      with("\"server\":\"github\"", "\"server\":\"a\",\"server\":\"b\""),
      with("\"publicOnly\":false,", ""),
      with("?to=api.github.com:443", ""),
      with("env:inject:TOKEN", "env:inject:token"),
      with("\"ghp_x\"", "\"\""),
      with("\"placeholder\"", "\"stand-in\""),
      with("\"publicOnly\":false", "\"publicOnly\":0"),
      with("\"publicOnly\":false", "\"publicOnly\":\"true\""),
      with("net:connect:api.github.com:443", "net:connect:api.github.com:0"),
      with("net:connect:api.github.com:443", "net:connect:${HOST}:443"),
      with("net:connect:api.github.com:443", "net:connect:a.test:443?later=1"),
      with("net:connect:api.github.com:443", "net:listen:443"),
      with("net:connect:api.github.com:443", "fs:read:/etc"),
      with(",\"at\":\"github.json:12:7\"", ""),
      with("\"at\":\"github.json:12:7\"", "\"at\":12"),
      with("\"at\":\"github.json:12:7\"", "\"at\":\"\",\"for\":\"\""),
      with("[{", "[[],{"),
      with("\"connections\":512", "\"connections\":0"),
      with("\"connections\":512", "\"connections\":-1"),
      with("\"connections\":512", "\"connections\":5e2"),
      with("\"connections\":512", "\"connections\":512.0"),
      with("\"connections\":512", "\"connections\":4294967296"),
      with("\"connections\":512", "\"connections\":\"512\""),
      with("\"connections\":512", "\"connections\":null"),
      with("\"connections\":512,", ""),
      with("\"bytes\":0", "\"bytes\":18446744073709551616"),
      with("\"bytes\":0", "\"bytes\":0,\"more\":1"),
      with(",\"bytes\":0", ""),
  };
  for (const std::string& text : wrong) EXPECT_FALSE(read_policy(text)) << text;
}

bool same(const Policy& a, const Policy& b) { return print_policy(a) == print_policy(b); }

RC_GTEST_PROP(Policy, PrintsAndReadsBack, ()) {
  const auto number = [] { return *rc::gen::inRange<std::uint32_t>(1, UINT32_MAX); };
  Policy policy{.server = *support::text_over("ab\"\\\n"),
                .sandbox = *support::text_over("0123abc"),
                .hash = *support::text_over("sha256:")};
  policy.public_only = support::flip();
  policy.limits = {.connections = number(), .per_second = number(), .bytes = number()};
  policy.limits.bytes <<= *rc::gen::inRange(0, 32);
  for (int left = *rc::gen::inRange(0, 5); left > 0; --left) {
    const core::NetConnect connect = support::net_connect(*support::endpoint());
    policy.rules.push_back({.connect = connect,
                            .text = print(core::Capability(connect)),
                            .position = *support::text_over("m.json:12 \"")});
  }
  const auto again = read_policy(print_policy(policy));
  RC_ASSERT(again.has_value());
  RC_ASSERT(same(*again, policy));
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    RC_ASSERT(again->rules[i].connect == policy.rules[i].connect);
  }
}

}  // namespace
}  // namespace capgate::egress
