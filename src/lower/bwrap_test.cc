#include "lower/bwrap.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

std::size_t index_of(const Strings& words, const Strings& sequence) {
  const auto found = std::ranges::search(words, sequence);
  EXPECT_FALSE(found.empty()) << sequence.front();
  return static_cast<std::size_t>(found.begin() - words.begin());
}

TEST(Bwrap, D1AReadOnlyTreeKeepsItsWritableChildApart) {
  const Lowered bwrap("bwrap", {"fs:read:/t/**", "fs:write:/t/data/sub"});
  EXPECT_TRUE(bwrap.has({"--ro-bind", "/t", "/t"}));
  EXPECT_TRUE(bwrap.has({"--bind", "/t/data/sub", "/t/data/sub"}));
  EXPECT_LT(index_of(bwrap.argv(), {"--ro-bind", "/t", "/t"}),
            index_of(bwrap.argv(), {"--bind", "/t/data/sub", "/t/data/sub"}));
}

TEST(Bwrap, D2ADotInANameDoesNotBindTheParent) {
  const Lowered bwrap("bwrap", {"fs:write:/u/project.git", "fs:read:/srv/v1.2/**"});
  EXPECT_TRUE(bwrap.has({"--bind", "/u/project.git", "/u/project.git"}));
  EXPECT_TRUE(bwrap.has({"--ro-bind", "/srv/v1.2", "/srv/v1.2"}));
  EXPECT_FALSE(bwrap.has({"--bind", "/u", "/u"}));
  EXPECT_FALSE(bwrap.has({"--ro-bind", "/srv", "/srv"}));
}

TEST(Bwrap, D7OneDirectoryHasOneMountAndGrantsAreNeverTried) {
  const Lowered bwrap("bwrap", {"fs:read:/a", "fs:read:/a/", "fs:read:/a/**"});
  EXPECT_EQ(std::ranges::count(bwrap.argv(), "/a"), 2);
  EXPECT_FALSE(bwrap.has({"--ro-bind-try", "/a", "/a"}));
}

TEST(Bwrap, D10WithoutExecTheFilterDeniesProcessesAndWithItProgramsMustBeNamed) {
  EXPECT_EQ(Lowered("bwrap", {"exec:spawn:git"}).verdict(), "ADAPTER_UNSUPPORTED");
  const Lowered named("bwrap", {"exec:spawn:git"}, {.programs = {"/usr/bin/node"}});
  EXPECT_TRUE(named.has({"--tmpfs", "/usr/bin"}));
  EXPECT_TRUE(named.has({"--ro-bind", "/usr/bin/git", "/usr/bin/git"}));
  EXPECT_TRUE(named.has({"--ro-bind", "/usr/bin/node", "/usr/bin/node"}));
  EXPECT_TRUE(named.has({"--remount-ro", "/usr/bin"}));
}

TEST(Bwrap, D11ValuesTravelOnADescriptorAndNamesOnlyWhenDeclared) {
  const Lowered none("bwrap", {});
  EXPECT_FALSE(none.has({"--args", "4"}));
  const Lowered env("bwrap", {"env:inject:TOKEN", "env:read:TOKEN", "ipc:connect:x11"});
  EXPECT_TRUE(env.has({"--args", "4"}));
  EXPECT_EQ(env.artifact().env_injections, (Strings{"DISPLAY", "TOKEN"}));
}

TEST(Bwrap, D13NestedSandboxDropsNoIsolationButTheNestingOfUserNamespaces) {
  const Lowered nested("bwrap", {"exec:spawn:chromium?nestedSandbox=true"},
                       {.programs = {"/usr/bin/node"}});
  EXPECT_FALSE(nested.has({"--disable-userns"}));
  for (const std::string word : {"--unshare-user", "--unshare-pid", "--unshare-ipc"}) {
    EXPECT_TRUE(nested.has({word})) << word;
  }
}

TEST(Bwrap, D15EveryProfileHasAFilterDevicesAnEtcAndAnIdentity) {
  const Lowered none("bwrap", {});
  EXPECT_TRUE(none.has({"--seccomp", "3"}));
  EXPECT_TRUE(none.has({"--dev-bind", "/dev/null", "/dev/null"}));
  EXPECT_TRUE(none.has({"--ro-bind-data", "10", "/etc/passwd"}));
  EXPECT_TRUE(none.has({"--uid", "1000", "--gid", "1000"}));
}

TEST(Bwrap, MasksCredentialDirectoriesBelowAGrantOnlyIfTheyExist) {
  const Lowered bwrap("bwrap", {"fs:read:/home/u/.local/share/**"});
  ASSERT_TRUE(bwrap.ok());
  const Strings argv = bwrap.argv();
  const auto mask = std::ranges::find(argv, "/home/u/.local/share/keyrings");
  ASSERT_NE(mask, argv.end());
  EXPECT_TRUE((mask - 1)->starts_with("/home/u/.local/share/keyrings/../"));
  EXPECT_TRUE((mask - 1)->ends_with("/proc/tty/ldisc"));
  EXPECT_EQ(*(mask - 2), "--ro-bind-try");
}

TEST(Bwrap, ShowsACredentialThatIsNamedItselfInsideAMaskedParent) {
  const Lowered bwrap("bwrap", {"fs:read:/home/u/.local/share/**",
                                "fs:read:/home/u/.local/share/keyrings/login.keyring"});
  ASSERT_TRUE(bwrap.ok());
  const std::string file = "/home/u/.local/share/keyrings/login.keyring";
  EXPECT_LT(index_of(bwrap.argv(), {"--tmpfs", "/home/u/.local/share/keyrings"}),
            index_of(bwrap.argv(), {"--ro-bind", file, file}));
}

TEST(Bwrap, RefusesWhatItCannotKeepAndAcceptsItByNameOnly) {
  for (const std::string capability :
       {"fs:create:/x", "fs:delete:/x", "fs:read:/x/*.md", "limit:memory:1G", "limit:time:30s",
        "env:inject:A?to=h.example:443", "fs:read:/home/u/.config/**", "ipc:connect:dbus:session",
        "net:listen:8080", "net:connect:h.example:443?methods=GET"}) {
    EXPECT_EQ(Lowered("bwrap", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
    const Lowered accepted("bwrap", {capability}, {.accepted = {capability}});
    EXPECT_EQ(accepted.verdict(), "ok") << capability;
    EXPECT_EQ(accepted.artifact().unenforced, Strings{capability});
  }
  EXPECT_EQ(Lowered("bwrap", {"fs:read:/x"}, {.accepted = {"fs:read:/x"}}).verdict(),
            "ACCEPT_UNUSED");
}

TEST(Bwrap, DeclaredEgressIsMountedAndTheForwarderStartsTheCommand) {
  const Lowered bwrap("bwrap", {"net:connect:h.example:443"}, {.egress_dir = "/srv/my egress"});
  EXPECT_TRUE(bwrap.has({"--ro-bind", "/srv/my egress", "/run/capgate"}));
  EXPECT_TRUE(bwrap.has({"--unshare-net"}));
  const Strings end{"--", "/run/capgate/capgate-init", "forward", "--no-processes", "--"};
  EXPECT_TRUE(bwrap.has(end));
  const Strings& notes = bwrap.artifact().notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.contains(
        "capgate egress --policy MANIFEST --listen unix:/srv/my egress/egress.sock");
  }));
}

TEST(Bwrap, TheForwarderLeavesTheServerWhatThePolicyGives) {
  const Strings all{"net:connect:h.example:443", "exec:spawn:git", "ipc:connect:self"};
  const Lowered bwrap("bwrap", all, {.programs = {"/usr/bin/node"}});
  const Strings end{"--", "/run/capgate/capgate-init", "forward", "--unix-sockets", "--"};
  EXPECT_TRUE(bwrap.has(end));
}

TEST(Bwrap, WithoutDeclaredEgressThereIsNoForwarder) {
  const Lowered bwrap("bwrap", {"ipc:connect:self"});
  EXPECT_FALSE(bwrap.json().contains("/run/capgate"));
  EXPECT_EQ(bwrap.argv().back(), "--");
}

TEST(Bwrap, TheForwardersDirectoryBelongsToNoGrant) {
  const lower::Options elsewhere{.egress_dir = "/srv/egress"};
  for (const std::string capability :
       {"fs:read:/run/capgate", "fs:write:/run/capgate/x", "fs:read:/srv/**",
        "fs:write:/srv/egress", "fs:read:/srv/egress/capgate-init",
        "ipc:connect:\"unix:/run/capgate/x.sock\""}) {
    const Lowered both("bwrap", {"net:connect:h.example:443", capability}, elsewhere);
    EXPECT_EQ(both.verdict(), "ADAPTER_UNSUPPORTED") << capability;
    EXPECT_EQ(Lowered("bwrap", {capability}, elsewhere).verdict(), "ok") << capability;
  }
  const Lowered beside("bwrap", {"net:connect:h.example:443", "fs:read:/srv/egress2/**"},
                       elsewhere);
  EXPECT_EQ(beside.verdict(), "ok");
}

TEST(Bwrap, TheOrderOfDeclarationsDoesNotMatter) {
  const Strings one{"fs:read:/b", "fs:write:/a/**", "net:connect:x.example:1", "env:read:A"};
  const Strings two{"env:read:A", "net:connect:x.example:1", "fs:write:/a/**", "fs:read:/b"};
  EXPECT_EQ(Lowered("bwrap", one).argv(), Lowered("bwrap", two).argv());
}

TEST(Bwrap, ALimitOnDiskSizesThePrivatePlaces) {
  const Lowered bwrap("bwrap", {"limit:disk:1M"});
  EXPECT_TRUE(bwrap.has({"--size", "1048576", "--tmpfs", "/tmp"}));
}

}  // namespace
}  // namespace capgate::lower
