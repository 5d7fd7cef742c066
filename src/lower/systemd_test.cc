#include "lower/systemd.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lower/safe_name.h"
#include "lower/systemd_words.h"
#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

lower::Options options(Strings command = {"/usr/bin/node", "server.js"}) {
  return {.command = std::move(command)};
}

// One of the artifact's files, by the end of its name.
std::string file(const Lowered& lowered, std::string_view suffix) {
  if (!lowered.ok()) return "";
  for (const File& one : lowered.artifact().files) {
    if (one.name.ends_with(suffix)) return one.contents;
  }
  return "";
}
std::string service(const Strings& capabilities, Options with = options()) {
  return file(Lowered("systemd", capabilities, std::move(with)), "@.service");
}
bool has_line(const std::string& text, std::string_view line) {
  return ("\n" + text).contains(format("\n{}\n", line));
}

// systemd's reading of one word, by the rules of its manual: quotes, backslashes, %%.
std::string read_word(std::string_view written) {
  EXPECT_TRUE(written.size() >= 2 && written.front() == '"' && written.back() == '"');
  std::string out;
  written = written.substr(1, written.size() - 2);
  for (std::size_t i = 0; i < written.size(); ++i) {
    EXPECT_NE(written[i], '"') << "the quote ends early";
    if (written[i] == '\\') ++i;
    out += written[i];
    if (written[i] == '%') EXPECT_EQ(written[++i], '%') << "a specifier";
  }
  return out;
}

RC_GTEST_PROP(SystemdWords, ComeBackAsTheyWere, (const std::string& text)) {
  RC_ASSERT(read_word(unit_word(text)) == text);
}

TEST(SystemdWords, NothingInACommandIsSyntax) {
  EXPECT_EQ(unit_command({"/a b", ";", "$HOME", "${X}", "50%", "a\"b\\c", "+x", "'q'"}),
            R"(:"/a b" ";" "$HOME" "${X}" "50%%" "a\"b\\c" "+x" "'q'")");
  EXPECT_EQ(unit_bind("/a:b", "/c"), R"("/a:b":"/c")");
  EXPECT_EQ(unit_prose("50% \xc3\xa9 \\"), "50%% ?? ?");
}

TEST(SafeName, IsShortAndPlain) {
  EXPECT_EQ(safe_name("@scope/Server--Git_Hub.", 40), "scope-server-git-hub");
  EXPECT_EQ(safe_name("%n;$(x)\"", 40), "n-x");
  EXPECT_EQ(safe_name("\xc3\xa9", 40).substr(0, 7), "server-");
  const std::string a = safe_name(std::string(80, 'a') + "1", 23);
  EXPECT_EQ(a.size(), 23U);
  EXPECT_NE(a, safe_name(std::string(80, 'a') + "2", 23));
}

TEST(Systemd, GrantsAreQuotedBinds) {
  const std::string unit = service({"fs:read:\"/a:b c\"", "fs:write:\"/w%n \\\"q\\\"\""});
  EXPECT_TRUE(has_line(unit, R"(BindReadOnlyPaths="/a:b c":"/a:b c")"));
  EXPECT_TRUE(has_line(unit, R"(BindPaths="/w%%n \"q\"":"/w%%n \"q\"")"));
  EXPECT_TRUE(has_line(unit, R"(NoExecPaths="/w%%n \"q\"")"));
}

// Each of these would put the host's root in the place of the empty one, without a word.
TEST(Systemd, NothingReplacesTheEmptyRoot) {
  const std::string unit = service({});
  EXPECT_TRUE(has_line(unit, "TemporaryFileSystem=/:ro"));
  for (const std::string_view line :
       {"ProtectSystem=strict", "ProtectSystem=full", "DynamicUser=yes", "NoExecPaths=/",
        "ReadOnlyPaths=/", "PrivateTmp=yes"}) {
    EXPECT_FALSE(has_line(unit, line)) << line;
  }
}

TEST(Systemd, TheNetworkIsTheBrokers) {
  const Lowered closed("systemd", {}, options());
  EXPECT_TRUE(has_line(file(closed, "@.service"), "PrivateNetwork=yes"));
  EXPECT_EQ(file(closed, "-egress.service"), "");
  const Lowered open("systemd", {"net:connect:a.example:443"}, options());
  const std::string unit = file(open, "@.service");
  EXPECT_TRUE(has_line(unit, "PrivateNetwork=yes"));
  EXPECT_TRUE(unit.contains(
      R"(ExecStart=:"/run/capgate/capgate-init" "forward" "--no-processes" "--" "/usr/bin/node")"));
  EXPECT_TRUE(file(open, "-egress.yaml").contains("connect: \"a.example:443\""));
  EXPECT_TRUE(file(open, "-egress.service").contains("Type=notify"));
}

TEST(Systemd, LimitsComeFromThePolicy) {
  const std::string unit = service({"limit:memory:512M", "limit:pids:32", "limit:files:64",
                                    "limit:cpu:150%", "limit:disk:1M", "limit:time:30s"});
  for (const std::string_view line :
       {"MemoryMax=536870912", "TasksMax=32", "LimitNOFILE=64", "CPUQuota=150%", "RuntimeMaxSec=30",
        "TemporaryFileSystem=/tmp:rw,mode=1777,nosuid,nodev,noexec,size=1048576"}) {
    EXPECT_TRUE(has_line(unit, line)) << line;
  }
  EXPECT_FALSE(service({}).contains("RuntimeMaxSec"));
}

TEST(Systemd, CredentialsInsideAGrantAreHidden) {
  Options with = options();
  with.home = "/home/alice";
  const std::string unit = service(
      {"fs:read:/home/alice/.local/share/**", "fs:read:/home/alice/.local/share/keyrings/x"}, with);
  EXPECT_TRUE(has_line(unit, R"(TemporaryFileSystem="/home/alice/.local/share/keyrings:ro")"));
  EXPECT_TRUE(has_line(unit, "ProtectHome=read-only"));
  const std::string whole = service({"fs:read:/home/alice/.local/share/**"}, with);
  EXPECT_TRUE(has_line(whole, R"(InaccessiblePaths="-/home/alice/.local/share/keyrings")"));
}

TEST(Systemd, OnlyDeclaredProgramsAreExecutable) {
  const std::string unit = service({"exec:spawn:git"});
  EXPECT_TRUE(has_line(unit, "NoExecPaths=/usr -/bin -/sbin"));
  EXPECT_TRUE(has_line(unit, "ExecPaths=\"/usr/bin/git\""));
  EXPECT_TRUE(has_line(unit, "ExecPaths=\"-/bin/git\""));
  EXPECT_FALSE(service({}).contains("git"));
}

TEST(Systemd, NoValueOfASecretIsNeeded) {
  const std::string unit = service({"env:inject:KEY", "env:read:LANGUAGE"});
  EXPECT_TRUE(unit.contains("EnvironmentFile=/etc/capgate/"));
  EXPECT_FALSE(unit.contains("EnvironmentFile=-")) << "a missing file must stop the server";
  EXPECT_TRUE(has_line(unit, "PassEnvironment=LANGUAGE"));
  EXPECT_FALSE(unit.contains("KEY="));
}

TEST(Systemd, AnInnerSandboxGetsItsNamespacesOnly) {
  EXPECT_TRUE(has_line(service({}), "RestrictNamespaces=yes"));
  EXPECT_TRUE(has_line(service({"exec:spawn:chromium?nestedSandbox=true"}),
                       "RestrictNamespaces=user pid net"));
}

TEST(Systemd, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"net:listen:8080", "fs:create:/x", "fs:read:/x/*", "env:inject:A?to=h.example:443",
        "net:connect:h.example:443?methods=GET", "ipc:connect:dbus:session"}) {
    EXPECT_EQ(Lowered("systemd", {capability}, options()).verdict(), "ADAPTER_UNSUPPORTED")
        << capability;
  }
  EXPECT_EQ(Lowered("systemd", {}, options({"node"})).verdict(), "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(Lowered("systemd", {}, options({"+/bin/sh"})).verdict(), "ADAPTER_UNSUPPORTED");
  Options other = options();
  other.user = "0:0";
  EXPECT_EQ(Lowered("systemd", {}, other).verdict(), "ADAPTER_UNSUPPORTED");
}

}  // namespace
}  // namespace capgate::lower
