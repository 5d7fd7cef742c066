// What is a capability and what is not: the accept/reject table, refinements, quotes, limits.
// Variables are in variables_test.cc, round trips in capability_test.cc.
#include "core/grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/scope.h"

namespace capgate::core {
namespace {

using namespace std::string_literals;

struct Accepted {
  std::string text;
  std::string printed;
};

struct Refused {
  std::string text;
  Code code;
  Span where{};  // of the string; left empty where only the code is of interest
};

void expect_accepted(const Accepted& row) {
  SCOPED_TRACE(row.text);
  const auto parsed = parse_capability(row.text, {});
  if (!parsed) {
    ADD_FAILURE() << code_name(parsed.error().code) << ": " << parsed.error().message;
    return;
  }
  ASSERT_EQ(parsed->size(), 1U);
  EXPECT_EQ(print(parsed->front()), row.printed);
  const auto allowed = check_scope(parsed->front(), "");
  EXPECT_TRUE(allowed) << allowed.error().message;
}

// Refused by the parser or by the check of its scope; the latter has no place in the string.
void expect_refused(const Refused& row) {
  SCOPED_TRACE(row.text);
  const auto parsed = parse_capability(row.text, {});
  const Diagnostic mistake = parsed ? [&] {
    const auto allowed = check_scope(parsed->front(), "");
    return allowed ? Diagnostic{.message = "accepted"} : allowed.error();
  }()
                                    : parsed.error();
  EXPECT_EQ(code_name(mistake.code), code_name(row.code)) << mistake.message;
  EXPECT_NE(mistake.message, "accepted");
  EXPECT_FALSE(mistake.help.empty());
  EXPECT_LE(mistake.where.begin, mistake.where.end);
  EXPECT_LE(mistake.where.end, row.text.size());
  if (row.where == Span{}) return;
  EXPECT_EQ(mistake.where.begin, row.where.begin);
  EXPECT_EQ(mistake.where.end, row.where.end);
}

// ---- The table of reference/capability-language.md, section 2.4 ------------------------------

TEST(Grammar, AcceptsWhatTheReferenceTableRequires) {
  const Accepted table[] = {
      {"fs:read:/workspace/**", "fs:read:/workspace/**"},
      {"fs:read, write,read:/x", "fs:read,write:/x"},
      {"fs:read:\"/a:b\"", "fs:read:\"/a:b\""},
      {"fs:read:/a//b", "fs:read:/a/b"},
      {"net:connect:api.github.com:443", "net:connect:api.github.com:443"},
      {"net:connect:API.GitHub.com:443", "net:connect:api.github.com:443"},
      {"net:connect:*", "net:connect:*"},
      {"net:connect:*.github.com:443", "net:connect:*.github.com:443"},
      {"net:connect:[::1]:443", "net:connect:[::1]:443"},
      {"net:connect:\"::1\":443", "net:connect:[::1]:443"},
      {"net:connect:10.evil.com:443", "net:connect:10.evil.com:443"},
      {"net:listen:8080", "net:listen:8080"},
      {"exec:spawn:git", "exec:spawn:git"},
      {"exec:spawn:chromium?nestedSandbox=true", "exec:spawn:chromium?nestedSandbox=true"},
      {"env:inject:GITHUB_PAT", "env:inject:GITHUB_PAT"},
      {"env:inject:LD_PRELOAD?unsafe=true", "env:inject:LD_PRELOAD?unsafe=true"},
      {"env:read:PATH?unsafe=true", "env:read:PATH?unsafe=true"},
      {"ipc:connect:dbus:session", "ipc:connect:dbus:session"},
      {"ipc:connect:\"dbus:session\"", "ipc:connect:dbus:session"},
      {"ipc:connect:\"unix:/run/docker.sock\"?unsafe=true",
       "ipc:connect:\"unix:/run/docker.sock\"?unsafe=true"},
      {"fs:write:/usr?unsafe=true", "fs:write:/usr?unsafe=true"},
      {"clock:tzdata", "clock:tzdata"},
      {"assert:x:a:b:c", "assert:x:\"a:b:c\""},
      {"assert:x:is it ok? yes", "assert:x:\"is it ok? yes\""},
  };
  for (const Accepted& row : table) expect_accepted(row);
}

TEST(Grammar, RefusesWhatTheReferenceTableRequires) {
  const Refused table[] = {
      {"fs:READ:/x", Code::cap_action_unknown, {3, 7}},
      {"fs:read,:/x", Code::cap_action_unknown, {8, 8}},
      {"fs::/x", Code::cap_actions_empty, {3, 3}},
      {"fs:read", Code::cap_fs_shape, {3, 7}},
      {"fs", Code::cap_malformed, {0, 2}},
      {"FS:read:/x", Code::cap_unknown_kind, {0, 2}},
      {"gpu:access:nvidia0", Code::cap_unknown_kind, {0, 3}},
      {"fs:read:~/x", Code::cap_fs_relative, {8, 11}},
      {"fs:read:$HOME/x", Code::cap_fs_relative, {8, 15}},
      {"fs:read:./x", Code::cap_fs_relative, {8, 11}},
      {"fs:read:/a:b", Code::cap_fs_shape, {3, 12}},
      {"fs:read:\"/a:b", Code::cap_malformed, {8, 13}},
      {"fs:read:/a/../etc", Code::cap_fs_path, {11, 13}},
      {"fs:read:/x\0"s, Code::cap_fs_path, {10, 11}},
      {"fs:read:/x\n", Code::cap_fs_path, {10, 11}},
      {"fs:read:/x ", Code::cap_fs_path, {10, 11}},
      {"fs:read:/src/**/*.ts", Code::cap_fs_glob, {13, 15}},
      {"fs:read:/a/{b,c}", Code::cap_fs_glob, {11, 12}},
      {"fs:read:/", Code::cap_scope_refused},
      {"fs:read:/**", Code::cap_scope_refused},
      {"fs:read:/proc", Code::cap_scope_refused},
      {"fs:write:/usr", Code::cap_needs_unsafe},
      {"fs:read:/x?a=b", Code::cap_refinement, {11, 12}},
      {"fs:read:/x?nestedSandbox=true", Code::cap_refinement, {11, 24}},
      {"net:connect:x:0", Code::cap_net_port, {14, 15}},
      {"net:connect:x:65536", Code::cap_net_port, {14, 19}},
      {"net:connect:x:abc", Code::cap_net_port, {14, 17}},
      {"net:connect:x:", Code::cap_net_port, {14, 14}},
      {"net:connect:x:*", Code::cap_net_port, {14, 15}},
      {"net:connect:x:443abc", Code::cap_net_port, {14, 20}},
      {"net:connect:x:80-90", Code::cap_net_port, {14, 19}},
      {"net:connect:x:80,443", Code::cap_net_port, {14, 20}},
      {"net:connect:x:1e3", Code::cap_net_port, {14, 17}},
      {"net:connect:", Code::cap_net_host, {12, 12}},
      {"net:connect::443", Code::cap_net_host, {12, 12}},
      {"net:connect:2130706433:80", Code::cap_net_host, {12, 22}},
      {"net:connect:0x7f.1", Code::cap_net_host, {12, 18}},
      {"net:connect:0177.0.0.1", Code::cap_net_host, {12, 22}},
      {"net:connect:127.1", Code::cap_net_host, {12, 17}},
      {"net:connect:https://api.github.com", Code::cap_net_port, {18, 34}},
      {"net:connect:api.github.com/path:443", Code::cap_net_host, {26, 27}},
      {"net:connect:user@host:443", Code::cap_net_host, {16, 17}},
      {"net:connect:a b.com:443", Code::cap_net_host, {13, 14}},
      {"net:connect:a.com\nhttp_access allow all:443", Code::cap_net_host, {17, 18}},
      {"exec:spawn:/usr/bin/git", Code::cap_exec_path, {11, 23}},
      {"exec:spawn:*", Code::cap_exec_name, {11, 12}},
      {"exec:spawn:", Code::cap_exec_name, {11, 11}},
      {"exec:spawn:$(id)", Code::cap_exec_name, {11, 16}},
      {"exec:spawn:git status", Code::cap_exec_name, {11, 21}},
      {"env:inject:github_pat", Code::cap_env_name, {11, 21}},
      {"env:inject:1ABC", Code::cap_env_name, {11, 15}},
      {"env:inject:A-B", Code::cap_env_name, {11, 14}},
      {"env:inject:", Code::cap_env_name, {11, 11}},
      {"env:inject:LD_PRELOAD", Code::cap_needs_unsafe},
      {"env:inject:PATH", Code::cap_needs_unsafe},
      {"ipc:connect:\"unix:/run/docker.sock\"", Code::cap_needs_unsafe},
      {"ipc:connect:\"unix:/\"", Code::cap_ipc_endpoint, {13, 19}},
      {"ipc:connect:\"unix:\"", Code::cap_ipc_endpoint, {13, 18}},
      {"ipc:connect:\"unix:relative\"", Code::cap_ipc_endpoint, {13, 26}},
      {"ipc:connect:foo", Code::cap_ipc_endpoint, {12, 15}},
      {"clock:TZDATA", Code::cap_clock_source, {6, 12}},
      {"clock:tzdata:x", Code::cap_clock_shape, {6, 14}},
  };
  for (const Refused& row : table) expect_refused(row);
}

// ---- Cutting, quotes, escapes ----------------------------------------------------------------

TEST(Grammar, QuotesKeepAFieldTogether) {
  const Accepted table[] = {
      {R"(fs:read:"/a?b")", R"(fs:read:"/a?b")"},
      {R"(fs:read:"/a\"b")", R"(fs:read:"/a\"b")"},
      {R"(fs:read:"/a\\b")", R"(fs:read:"/a\\b")"},
      {R"(fs:read:/a\b)", R"(fs:read:"/a\\b")"},
      {R"(fs:read:"/plain")", "fs:read:/plain"},
      {R"(fs:read:"/a b")", "fs:read:/a b"},
      {R"(fs:"read,write":/x)", "fs:read,write:/x"},
      {R"(net:connect:"api.github.com":443)", "net:connect:api.github.com:443"},
      {R"(net:connect:a.com:443?paths="/a,/b")", "net:connect:a.com:443?paths=/a,/b"},
      {R"(ipc:connect:"unix:/run/a:b.sock")", R"(ipc:connect:"unix:/run/a:b.sock")"},
      {R"(ipc:connect:unix:/run/a.sock)", R"(ipc:connect:"unix:/run/a.sock")"},
      {"fs:read:/\xc3\xa9", "fs:read:/\xc3\xa9"},
      {R"(assert:x:"a \"b\" \\c")", R"(assert:x:"a \"b\" \\c")"},
      {R"(assert:x:say "hi")", R"(assert:x:"say \"hi\"")"},
      {R"(assert:x:back\slash)", R"(assert:x:"back\\slash")"},
      {"assert:x:${NOT_A_VARIABLE}", R"(assert:x:"${NOT_A_VARIABLE}")"},
      {"assert:x", "assert:x"},
      {"assert:x:", "assert:x"},
      {R"(assert:x:"")", "assert:x"},
      {"assert:x:x", "assert:x"},
      {"assert:a.b_c-d/e: spaced ", R"(assert:a.b_c-d/e:" spaced ")"},
  };
  for (const Accepted& row : table) expect_accepted(row);
}

TEST(Grammar, D25QuotesAreClosedAndWholeFields) {
  const Refused table[] = {
      {R"(fs:read:"/a)", Code::cap_malformed, {8, 11}},
      {R"(fs:read:")", Code::cap_malformed, {8, 9}},
      {R"(fs:read:"/a\")", Code::cap_malformed, {8, 13}},
      {R"(fs:read:"/a"b)", Code::cap_malformed, {12, 13}},
      {R"(fs:read:/a"b")", Code::cap_malformed, {10, 11}},
      {R"(fs:r"ead":/a)", Code::cap_malformed, {4, 5}},
      {R"(fs:read:"/a\n")", Code::cap_malformed, {11, 13}},
      {R"(fs:read:"/a\")", Code::cap_malformed},
      {R"("fs":read:/a)", Code::cap_unknown_kind, {0, 4}},
      {R"(net:connect:a:443?paths="/a)", Code::cap_malformed, {24, 27}},
      {R"(assert:x:"a)", Code::cap_malformed, {9, 11}},
      {R"(assert:x:")", Code::cap_malformed, {9, 10}},
      {R"(assert:x:"a" b)", Code::cap_malformed, {9, 14}},
      {R"(assert:x:"a\")", Code::cap_malformed},
      {R"(assert:x:"a\n")", Code::cap_malformed, {11, 13}},
      // Read as one quoted text it would have a bare quote in it; read as plain text it would not
      // lose its first and last character.
      {R"(assert:x:"a" and "b")", Code::cap_malformed},
  };
  for (const Refused& row : table) expect_refused(row);
}

TEST(Grammar, RefusesTheWrongNumberOfFields) {
  const Refused table[] = {
      {"", Code::cap_malformed},
      {":", Code::cap_unknown_kind},
      {"::", Code::cap_unknown_kind},
      {"fs:", Code::cap_fs_shape},
      {"fs:read:/a:b:c:d:e", Code::cap_fs_shape},
      {"net:connect", Code::cap_net_shape, {4, 11}},
      {"net:connect:::1:443", Code::cap_net_shape, {4, 19}},
      {"net:connect:a:1:2", Code::cap_net_shape, {4, 17}},
      {"net:connect:::1", Code::cap_net_shape},
      {"net:listen", Code::cap_net_shape},
      {"net:listen:a:80", Code::cap_net_shape, {4, 15}},
      {"net:connect,listen:80", Code::cap_net_shape, {4, 18}},
      {"exec:spawn", Code::cap_exec_shape},
      {"exec:spawn:a:b", Code::cap_exec_shape},
      {"env:inject", Code::cap_env_shape},
      {"env:inject:A:B", Code::cap_env_shape},
      {"ipc:connect", Code::cap_ipc_shape},
      {"ipc:connect:unix:/a:b", Code::cap_ipc_shape},
      {"clock:", Code::cap_clock_source},
      {"limit:memory", Code::cap_limit_shape},
      {"limit:memory:1:2", Code::cap_limit_shape},
      {"assert:", Code::cap_assert_shape},
      {"assert::text", Code::cap_assert_shape, {7, 7}},
      {"assert:a b:text", Code::cap_assert_shape, {7, 10}},
      {"assert:x:a\nb", Code::cap_assert_shape, {9, 12}},
      {"assert:x:a\0b"s, Code::cap_assert_shape},
  };
  for (const Refused& row : table) expect_refused(row);
}

TEST(Grammar, EachKindHasItsActions) {
  const Refused table[] = {
      {"fs:execute:/x", Code::cap_action_unknown, {3, 10}},
      {"fs:read,execute:/x", Code::cap_action_unknown, {8, 15}},
      {"fs:,read:/x", Code::cap_action_unknown, {3, 3}},
      {"fs: :/x", Code::cap_action_unknown, {3, 4}},
      {"net::x", Code::cap_actions_empty},
      {"net:read:x", Code::cap_action_unknown},
      {"exec::git", Code::cap_actions_empty},
      {"exec:read:git", Code::cap_action_unknown},
      {"env::X", Code::cap_actions_empty},
      {"env:write:X", Code::cap_action_unknown},
      {"ipc::x11", Code::cap_actions_empty},
      {"ipc:listen:x11", Code::cap_action_unknown},
  };
  for (const Refused& row : table) expect_refused(row);
  expect_accepted({"fs:delete,create,write,read:/x", "fs:read,create,write,delete:/x"});
  expect_accepted({"env:read,inject:X", "env:inject:X"});
  expect_accepted({"net:connect,connect:x", "net:connect:x"});
}

// ---- Endpoints, programs, variables ----------------------------------------------------------

TEST(Grammar, D9NamesSocketsByAbsolutePath) {
  expect_accepted({"ipc:connect:\"unix:/run//a/./b.sock\"", "ipc:connect:\"unix:/run/a/b.sock\""});
  for (const std::string text :
       {"unix:/", "unix:", "unix:relative", "unix:/a/../b", "unix:/a/*", "unix:/a/**", "unix:/a\n",
        "unix", "dbus", "dbus:", "X11", "", "unix://"}) {
    expect_refused({"ipc:connect:\"" + text + "\"", Code::cap_ipc_endpoint});
  }
  expect_refused({"ipc:connect:\"unix:/var/run/docker.sock\"", Code::cap_needs_unsafe});
  expect_refused({"ipc:connect:\"unix:/run/app.sock\"?unsafe=true", Code::cap_refinement});
}

TEST(Grammar, D10ProgramsAreNamedOneByOne) {
  for (const std::string name : {"git", "g++", "python3.11", "a_b-c", "7z"}) {
    expect_accepted({"exec:spawn:" + name, "exec:spawn:" + name});
  }
  for (const std::string name : {"*", "", "$(id)", "git status", "git;rm", "-rf", ".", "..", ".git",
                                 "a*", "g\n", "g\xc3\xa9", "`id`", "[", "_x"}) {
    expect_refused({"exec:spawn:" + name, Code::cap_exec_name});
  }
  expect_accepted({"exec:spawn:" + std::string(255, 'a'), "exec:spawn:" + std::string(255, 'a')});
  expect_refused({"exec:spawn:" + std::string(256, 'a'), Code::cap_exec_name});
  expect_refused({"exec:spawn:../git", Code::cap_exec_path});
}

TEST(Grammar, D13NestedSandboxIsForExecOnly) {
  for (const std::string text : {"fs:read:/x", "net:connect:a", "net:listen:80", "env:read:A",
                                 "ipc:connect:x11", "clock:system", "limit:pids:5"}) {
    expect_refused({text + "?nestedSandbox=true", Code::cap_refinement});
  }
  for (const std::string value : {"1", "yes", "false", "TRUE", ""}) {
    expect_refused({"exec:spawn:node?nestedSandbox=" + value, Code::cap_refinement});
  }
  // In an assertion it is text, and nothing else.
  expect_accepted({"assert:x:a?nestedSandbox=true", "assert:x:\"a?nestedSandbox=true\""});
}

TEST(Grammar, D11ReadAndInjectAreDifferent) {
  const auto read = parse_capability("env:read:A", {});
  const auto inject = parse_capability("env:inject:A", {});
  ASSERT_TRUE(read && inject);
  EXPECT_NE(read->front(), inject->front());
  for (const std::string name :
       {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV"}) {
    expect_refused({"env:inject:" + name, Code::cap_needs_unsafe});
    expect_refused({"env:read:" + name, Code::cap_needs_unsafe});
  }
  expect_refused({"env:inject:TOKEN?unsafe=true", Code::cap_refinement});
}

}  // namespace
}  // namespace capgate::core
