#include "lower/apparmor.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

std::string profile(const Strings& capabilities, Options options = {}) {
  const Lowered apparmor("apparmor", capabilities, std::move(options));
  EXPECT_EQ(apparmor.verdict(), "ok");
  return apparmor.artifact().files.front().contents;
}

bool has(const std::string& profile, std::string_view rule) {
  return profile.find(format("\n  {},\n", rule)) != std::string::npos;
}

TEST(AppArmor, WithoutCapabilitiesThereIsNoRuleForNetworkSocketsAndPrograms) {
  const std::string text = profile({});
  for (const std::string_view word :
       {"network", "unix", "dbus", "ix,", "capability", "mount", "ptrace", "change_profile",
        "userns", "#include", "include"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
  EXPECT_TRUE(text.starts_with("abi <abi/3.0>,\n\nprofile capgate-"));
  EXPECT_TRUE(has(text, "set rlimit nofile <= 1024"));
}

TEST(AppArmor, GrantsAreRulesForThePathAndWhatIsBelow) {
  const std::string text = profile({"fs:read:/a/**", "fs:write:/b", "fs:read:/c/*.md"});
  EXPECT_TRUE(has(text, "\"/a/\" mr"));
  EXPECT_TRUE(has(text, "\"/a/**\" mr"));
  EXPECT_FALSE(has(text, "\"/a\" mr"));
  EXPECT_TRUE(has(text, "\"/b\" rwk"));
  EXPECT_TRUE(has(text, "\"/b/**\" rwk"));
}

// `*` of AppArmor matches hidden files, and a rule for them would open what a grant of the
// directory denies.
TEST(AppArmor, APatternOpensNoHiddenFileAndNothingThatTheDirectoryWouldDeny) {
  const std::string text =
      profile({"fs:read:/c/*.md", "fs:read:/d/*", "fs:read:/e/*x", "fs:read:/f/.*"});
  EXPECT_TRUE(has(text, "\"/c/[^.]*.md\" mr"));
  EXPECT_FALSE(has(text, "\"/c/.md\" mr"));
  EXPECT_TRUE(has(text, "\"/d/[^.]*\" mr"));
  EXPECT_TRUE(has(text, "\"/e/x\" mr"));
  EXPECT_TRUE(has(text, "\"/e/[^.]*x\" mr"));
  EXPECT_TRUE(has(text, "\"/f/.*\" mr"));
  const Options options{.home = "/home/u"};
  EXPECT_TRUE(has(profile({"fs:read:/home/u/.config/*"}, options),
                  "deny \"/home/u/.config/gh{,/,/**}\" rwklmx"));
  EXPECT_TRUE(has(profile({"fs:write:/w/*"}), "deny \"/w/opencode.json{,/,/**}\" wl"));
}

TEST(AppArmor, NoPathCanAddARuleOrAPattern) {
  EXPECT_TRUE(has(profile({"fs:read:\"/a, /etc/x rw,\""}), "\"/a, /etc/x rw,\" mr"));
  EXPECT_TRUE(has(profile({"fs:read:\"/a\\\" rw, x \\\"b\""}), R"("/a\" rw, x \"b" mr)"));
  EXPECT_TRUE(has(profile({R"(fs:read:"/back\\slash")"}), R"("/back\\slash" mr)"));
  EXPECT_TRUE(has(profile({"fs:read:\"/a @b #c ^d\""}), R"("/a \@b #c \^d" mr)"));
}

TEST(AppArmor, CredentialsAreDeniedAndWhatTheHostRunsIsNotWritable) {
  const std::string text =
      profile({"fs:read:/home/u/.local/share/**", "fs:write:/home/u/p/**"}, {.home = "/home/u"});
  EXPECT_TRUE(has(text, "deny \"/home/u/.local/share/keyrings{,/,/**}\" rwklmx"));
  EXPECT_TRUE(has(text, "deny \"/home/u/p/.git/hooks{,/,/**}\" wl"));
  const Lowered both("apparmor",
                     {"fs:read:/home/u/.local/share/**", "fs:read:/home/u/.local/share/keyrings/a"},
                     {.home = "/home/u"});
  EXPECT_EQ(both.verdict(), "ADAPTER_UNSUPPORTED");
}

TEST(AppArmor, ProgramsAreTheDeclaredOnes) {
  const std::string text =
      profile({"exec:spawn:git", "exec:spawn:ping"}, {.programs = {"/opt/bin/ping"}});
  EXPECT_TRUE(has(text, "\"/usr/bin/git\" mrix"));
  EXPECT_TRUE(has(text, "\"/opt/bin/ping\" mrix"));
  EXPECT_EQ(text.find("\"/usr/bin/ping\""), std::string::npos);
}

TEST(AppArmor, TheNetworkIsAllOrNothingAndSaysSo) {
  const Lowered named("apparmor", {"net:connect:a.example:443"});
  EXPECT_EQ(named.artifact().not_covered, Strings{"net:connect:a.example:443"});
  EXPECT_TRUE(has(named.artifact().files.front().contents, "network inet dgram"));
  const std::string address = profile({"net:connect:10.0.0.5:5432"});
  EXPECT_TRUE(has(address, "network inet stream"));
  EXPECT_FALSE(has(address, "network inet dgram"));
}

TEST(AppArmor, SocketsAreThoseThatAreDeclared) {
  const std::string text = profile({"ipc:connect:unix:/run/a.sock", "ipc:connect:netlink-route"});
  EXPECT_TRUE(has(text, "\"/run/a.sock\" rw"));
  EXPECT_TRUE(has(text, "network netlink raw"));
  EXPECT_EQ(text.find("dbus"), std::string::npos);
  EXPECT_TRUE(has(profile({"ipc:connect:dbus:session"}, {.runtime_dir = "/run/user/7"}),
                  "\"/run/user/7/bus\" rw"));
}

TEST(AppArmor, LimitsButFilesAreNotCovered) {
  const Lowered limits("apparmor", {"limit:files:64", "limit:memory:1G"});
  EXPECT_EQ(limits.artifact().not_covered, Strings{"limit:memory:1G"});
  EXPECT_TRUE(has(limits.artifact().files.front().contents, "set rlimit nofile <= 64"));
  EXPECT_EQ(Lowered("apparmor", {"fs:create:/x"}).verdict(), "ADAPTER_UNSUPPORTED");
}

}  // namespace
}  // namespace capgate::lower
