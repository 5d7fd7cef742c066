// Refinements of every kind, the values of limits, and what belongs to which grammar version.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/grammar.h"

namespace capgate::core {
namespace {

struct Row {
  std::string_view text;
  std::string_view printed;  // empty: refused
  Code code = Code::cap_refinement;
  Span where{};
};

void expect_row(const Row& row) {
  SCOPED_TRACE(row.text);
  const auto parsed = parse_capability(row.text, {});
  if (!row.printed.empty()) {
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(print(parsed->front()), row.printed);
    return;
  }
  ASSERT_FALSE(parsed) << print(parsed->front());
  EXPECT_EQ(code_name(parsed.error().code), code_name(row.code)) << parsed.error().message;
  if (row.where == Span{}) return;
  EXPECT_EQ(parsed.error().where.begin, row.where.begin);
  EXPECT_EQ(parsed.error().where.end, row.where.end);
}

TEST(Refinements, AreWrittenKeyEqualsValue) {
  constexpr Row table[] = {
      {"fs:read:/x?", "", Code::cap_refinement, {10, 11}},
      {"fs:read:/x?unsafe", "", Code::cap_refinement, {11, 17}},
      {"fs:read:/x?=true", "", Code::cap_refinement, {11, 11}},
      {"fs:read:/x?&", "", Code::cap_refinement, {11, 11}},
      {"fs:read:/x?unsafe=true&", "", Code::cap_refinement, {22, 23}},
      {"fs:read:/x?unsafe=true&unsafe=true", "", Code::cap_refinement, {23, 29}},
      {"fs:read:/x?unsafe=1", "", Code::cap_refinement, {18, 19}},
      {"fs:read:/x?unsafe=false", "", Code::cap_refinement, {18, 23}},
      {"fs:read:/x?unsafe=", "", Code::cap_refinement, {18, 18}},
      {"fs:read:/x?Unsafe=true", "", Code::cap_refinement, {11, 17}},
      {"fs:read:/x?unsafe=true?unsafe=true", ""},
      {"fs:read:/x?__proto__=1", ""},
      {"fs:read:/usr?unsafe=true", "fs:read:/usr?unsafe=true"},
      {"fs:read:/usr?unsafe=\"true\"", "fs:read:/usr?unsafe=true"},
  };
  for (const Row& row : table) expect_row(row);
}

TEST(Refinements, OfNet) {
  constexpr Row table[] = {
      {"net:connect:a:443?sni=any", "net:connect:a:443?sni=any"},
      {"net:connect:a:443?sni=strict", "net:connect:a:443?sni=strict"},
      {"net:connect:a:443?sni=match", "net:connect:a:443"},
      {"net:connect:a:443?sni=off", "", Code::cap_refinement, {22, 25}},
      {"net:connect:a:443?proto=tcp", "net:connect:a:443?proto=tcp"},
      {"net:connect:a:443?proto=tls", "net:connect:a:443?proto=tls"},
      {"net:connect:a:443?proto=http", "net:connect:a:443?proto=http"},
      {"net:connect:a:443?proto=detect", "net:connect:a:443"},
      {"net:connect:a:443?proto=udp", ""},
      {"net:connect:a:443?methods=POST,GET,POST", "net:connect:a:443?methods=GET,POST"},
      {"net:connect:a:443?methods=get", "", Code::cap_refinement, {26, 29}},
      {"net:connect:a:443?methods=GET,", ""},
      {"net:connect:a:443?methods=GET POST", ""},
      {"net:connect:a:443?paths=/user,/repos/**", "net:connect:a:443?paths=/repos/**,/user"},
      {"net:connect:a:443?paths=user", ""},
      {"net:connect:a:443?paths=/a%2fb", ""},
      {"net:connect:a:443?paths=/a b", ""},
      {"net:connect:a:443?paths=", ""},
      {"net:connect:a:443?sni=any&proto=tls&paths=/a&methods=GET",
       "net:connect:a:443?methods=GET&paths=/a&proto=tls&sni=any"},
      {"net:connect:a:443?private=true", "net:connect:a:443?private=true"},
      {"net:connect:*.A.com?private=true", "net:connect:*.a.com?private=true"},
      {"net:connect:a:443?sni=any&private=true&proto=tls&paths=/a",
       "net:connect:a:443?paths=/a&private=true&proto=tls&sni=any"},
      {"net:connect:a:443?private=false", "", Code::cap_refinement, {26, 31}},
      {"net:connect:a:443?private=true&private=true", "", Code::cap_refinement, {31, 38}},
      {"net:connect:*:443?private=true", "", Code::cap_refinement, {18, 25}},
      {"net:connect:10.0.0.5?private=true", "", Code::cap_refinement, {21, 28}},
      {"net:connect:[fd00::1]?private=true", "", Code::cap_refinement, {22, 29}},
      {"net:connect:localhost?private=true", "", Code::cap_refinement, {22, 29}},
      {"net:connect:a.localhost?private=true", ""},
      {"net:connect:*.localhost?private=true", ""},
      {"net:listen:80?private=true", "", Code::cap_refinement, {14, 21}},
      {"net:connect:*?blockPrivate=false", "", Code::cap_refinement, {14, 26}},
      {"net:connect:a?unsafe=true", ""},
      {"net:listen:80?sni=any", "", Code::cap_refinement, {14, 17}},
      {"net:listen:0", "", Code::cap_net_port},
      {"net:listen:*", "", Code::cap_net_port},
  };
  for (const Row& row : table) expect_row(row);
}

TEST(Refinements, OfEnvSealAValue) {
  constexpr Row table[] = {
      {"env:inject:T?to=api.a.com:443", "env:inject:T?to=api.a.com:443"},
      {"env:inject:T?to=B.com:443&to=a.com:443&to=b.com:443",
       "env:inject:T?to=a.com:443&to=b.com:443"},
      {"env:inject:T?to=localhost:8443", "env:inject:T?to=localhost:8443"},
      {"env:inject:T?to=[::1]:443", "", Code::cap_refinement, {16, 25}},
      {"env:inject:T?to=10.0.0.5:443", "", Code::cap_refinement, {16, 28}},
      {"env:inject:T?to=*.a.com:443", "", Code::cap_refinement, {16, 27}},
      {"env:inject:T?to=https://a.com", "", Code::cap_refinement, {16, 29}},
      {"env:inject:T?to=a.com:443&as=header:Authorization", "env:inject:T?to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=header:X-Api-Key",
       "env:inject:T?as=header:x-api-key&to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=basic", "env:inject:T?as=basic&to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=query", "env:inject:T?as=query&to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=path", "env:inject:T?as=path&to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=body", "env:inject:T?as=body&to=a.com:443"},
      {"env:inject:T?to=a.com", "", Code::cap_refinement, {16, 21}},
      {"env:inject:T?to=*:443", "", Code::cap_refinement, {16, 21}},
      {"env:inject:T?to=a.com:443x", "", Code::cap_net_port, {22, 26}},
      {"env:inject:T?to=127.1:443", "", Code::cap_net_host, {16, 21}},
      {"env:inject:T?to=", "", Code::cap_net_host},
      {"env:inject:T?to=a.com:443&as=cookie", "", Code::cap_refinement, {29, 35}},
      {"env:inject:T?to=a.com:443&as=header:Cookie", "env:inject:T?as=header:cookie&to=a.com:443"},
      {"env:inject:T?to=a.com:443&as=header:Host", "", Code::cap_refinement, {29, 40}},
      {"env:inject:T?to=a.com:443&as=header:Transfer-Encoding", "", Code::cap_refinement, {29, 53}},
      {"env:inject:T?to=a.com:443&as=header:te", "", Code::cap_refinement, {29, 38}},
      {"env:inject:T?to=a.com:443&as=header:", ""},
      {"env:inject:T?to=a.com:443&as=header:a b", ""},
      {"env:inject:T?to=a.com:443&as=header:a:b", ""},
      {"env:inject:T?to=a.com:443&as=body&as=body", "", Code::cap_refinement, {34, 36}},
      {"env:inject:T?as=body", "", Code::cap_refinement, {13, 15}},
      {"env:read:T?to=a.com:443", "", Code::cap_refinement, {11, 13}},
  };
  for (const Row& row : table) expect_row(row);
}

TEST(Refinements, NoneForClockAndLimit) {
  expect_row({"clock:tzdata?x=1", "", Code::cap_refinement, {13, 14}});
  expect_row({"limit:memory:1G?x=1", ""});
  expect_row({"ipc:connect:x11?unsafe=yes", ""});
}

TEST(Limits, HaveUnitsAndBounds) {
  constexpr Row table[] = {
      {"limit:memory:512M", "limit:memory:512M"},
      {"limit:memory:1024", "limit:memory:1K"},
      {"limit:memory:1000", "limit:memory:1000"},
      {"limit:memory:1048576K", "limit:memory:1G"},
      {"limit:memory:1048576G", "limit:memory:1048576G"},
      {"limit:memory:1048577G", "", Code::cap_limit_value},
      {"limit:memory:18446744073709551616", "", Code::cap_limit_value},
      {"limit:memory:18014398509481984K", "", Code::cap_limit_value},
      {"limit:memory:0", "", Code::cap_limit_value, {13, 14}},
      {"limit:memory:", "", Code::cap_limit_value, {13, 13}},
      {"limit:memory:M", "", Code::cap_limit_value},
      {"limit:memory:512MB", "", Code::cap_limit_value, {13, 18}},
      {"limit:memory:512m", "", Code::cap_limit_value},
      {"limit:memory:512 ", "", Code::cap_limit_value},
      {"limit:memory: 512", "", Code::cap_limit_value},
      {"limit:memory:1.5G", "", Code::cap_limit_value},
      {"limit:memory:-1", "", Code::cap_limit_value},
      {"limit:memory:010M", "", Code::cap_limit_value},
      {"limit:disk:2G", "limit:disk:2G"},
      {"limit:pids:256", "limit:pids:256"},
      {"limit:pids:4000000", "limit:pids:4000000"},
      {"limit:pids:4000001", "", Code::cap_limit_value},
      {"limit:pids:5 ", "", Code::cap_limit_value},
      {"limit:pids:1K", "", Code::cap_limit_value},
      {"limit:files:1000000", "limit:files:1000000"},
      {"limit:files:1000001", "", Code::cap_limit_value},
      {"limit:cpu:150%", "limit:cpu:150%"},
      {"limit:cpu:100000%", "limit:cpu:100000%"},
      {"limit:cpu:100001%", "", Code::cap_limit_value},
      {"limit:cpu:150", "", Code::cap_limit_value},
      {"limit:time:30s", "limit:time:30s"},
      {"limit:time:90s", "limit:time:90s"},
      {"limit:time:120s", "limit:time:2m"},
      {"limit:time:8760h", "limit:time:8760h"},
      {"limit:time:8761h", "", Code::cap_limit_value},
      {"limit:time:30", "", Code::cap_limit_value},
      {"limit:time:1d", "", Code::cap_limit_value},
      {"limit:ram:512M", "", Code::cap_limit_shape, {6, 9}},
      {"limit::512M", "", Code::cap_limit_shape, {6, 6}},
      {"limit:Memory:512M", "", Code::cap_limit_shape},
  };
  for (const Row& row : table) expect_row(row);
}

// ---- Grammar versions ------------------------------------------------------------------------

TEST(GrammarVersion, KnowsWhatTheEarlierLanguageDidNotHave) {
  for (const std::string_view text :
       {"net:listen:80", "limit:pids:5", "net:connect:*.a.com:443", "net:connect:[::1]:443",
        "net:connect:a:443?sni=any", "net:connect:a:443?private=true", "env:inject:T?to=a.com:443",
        "env:inject:PATH?unsafe=true", "fs:write:/usr?unsafe=true", "ipc:connect:self",
        "ipc:connect:netlink-route", "ipc:connect:dbus:session", "ipc:connect:unix:/run/a.sock",
        "ipc:connect:\"unix:/run/docker.sock\"?unsafe=true"}) {
    const auto parsed = parse_capability(text, {});
    ASSERT_TRUE(parsed) << text;
    EXPECT_TRUE(feature_beyond_0_0(text, parsed->front())) << text;
  }
  const Bindings bindings = {{.name = "R", .values = {"/w"}}};
  const auto parsed = parse_capability("fs:read:${R}/**", bindings);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(feature_beyond_0_0("fs:read:${R}/**", parsed->front()));
}

TEST(GrammarVersion, KeepsTheDocumentedStringsOfTheEarlierLanguage) {
  for (const std::string_view text :
       {"fs:read,write:/workspace/**", "fs:read:\"/a:b\"", "net:connect:*", "net:connect:a.com:443",
        "net:connect:\"::1\":443", "exec:spawn:chromium?nestedSandbox=true", "env:inject:T",
        "env:read:T", "ipc:connect:x11", "ipc:connect:\"dbus:session\"",
        "ipc:connect:\"unix:/run/a.sock\"", "clock:tzdata", "assert:x:a:b:c", "assert:x:${A}"}) {
    const auto parsed = parse_capability(text, {});
    ASSERT_TRUE(parsed) << text;
    EXPECT_FALSE(feature_beyond_0_0(text, parsed->front())) << text;
  }
}

}  // namespace
}  // namespace capgate::core
