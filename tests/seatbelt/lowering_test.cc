// The lowering to Seatbelt: what it refuses, what it emits, and random policies against the oracle.
#include "support/lowering.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "core/grammar.h"
#include "core/scope.h"
#include "lower/seatbelt_text.h"
#include "support/generators.h"
#include "support/sbpl.h"
#include "support/seatbelt_oracle.h"

namespace capgate::seatbelt_test {
namespace {

using support::Lowered;
using support::SeatbeltOracle;
using support::Strings;
using Right = SeatbeltOracle::Right;

sbpl::Read<sbpl::Profile> profile_of(const Lowered& lowered) {
  sbpl::Parameters parameters;
  for (const std::string& word : lowered.argv()) {
    if (!word.starts_with("-D")) continue;
    const std::size_t equal = word.find('=');
    parameters.emplace(word.substr(2, equal - 2), word.substr(equal + 1));
  }
  return sbpl::read(lowered.artifact().files.back().contents, parameters);
}

bool allows(const Lowered& lowered, std::string_view operation, std::string path) {
  const auto profile = profile_of(lowered);
  EXPECT_TRUE(profile) << profile.error();
  return profile && profile->allows(operation, {{"path", std::move(path)}});
}

TEST(Seatbelt, RefusesWhatItCannotKeepAndAcceptsItByNameOnly) {
  for (const std::string capability :
       {"limit:memory:1G", "limit:pids:8", "limit:disk:1M", "limit:time:30s", "limit:cpu:50%",
        "env:inject:A?to=h.example:443", "ipc:connect:dbus:session", "ipc:connect:x11",
        "exec:spawn:git"}) {
    EXPECT_EQ(Lowered("seatbelt", {capability}).verdict(), "ADAPTER_UNSUPPORTED") << capability;
    const Lowered accepted("seatbelt", {capability}, {.accepted = {capability}});
    EXPECT_EQ(accepted.verdict(), "ok") << capability;
    EXPECT_EQ(accepted.artifact().unenforced, Strings{capability});
  }
  for (const std::string capability :
       {"fs:create:/x", "fs:delete:/x/**", "fs:read:/x/*.md", "limit:files:64", "net:listen:8080",
        "ipc:connect:self", "ipc:connect:netlink-route", "clock:tzdata"}) {
    EXPECT_EQ(Lowered("seatbelt", {capability}).verdict(), "ok") << capability;
  }
}

TEST(Seatbelt, RefusesTheOtherNamesOfWhatMayNotBeGranted) {
  for (const std::string path :
       {"/private", "/private/etc", "/private/var/run/**", "/System/Volumes/Data/Users/u/x"}) {
    EXPECT_EQ(Lowered("seatbelt", {"fs:read:" + path}).verdict(), "ADAPTER_UNSUPPORTED") << path;
  }
}

TEST(Seatbelt, RulesAreAboutRealPaths) {
  const Lowered lowered("seatbelt", {"fs:read:/tmp/x/**", "fs:read:/var/data/**"});
  EXPECT_TRUE(allows(lowered, "file-read-data", "/private/tmp/x/y"));
  EXPECT_TRUE(allows(lowered, "file-read-data", "/private/var/data/y"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/tmp/x/y"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/private/tmp/y"));
}

TEST(Seatbelt, AddingAndRemovingAreKeptApart) {
  const Lowered lowered("seatbelt", {"fs:create:/in/**", "fs:delete:/out/**"});
  EXPECT_TRUE(allows(lowered, "file-write-create", "/in/x"));
  EXPECT_TRUE(allows(lowered, "file-write-data", "/in/x"));
  EXPECT_FALSE(allows(lowered, "file-write-unlink", "/in/x"));
  EXPECT_TRUE(allows(lowered, "file-write-unlink", "/out/x"));
  EXPECT_FALSE(allows(lowered, "file-write-create", "/out/x"));
  EXPECT_FALSE(allows(lowered, "file-write-data", "/out/x"));
}

TEST(Seatbelt, NothingProtectedCanBeMovedOutOfSight) {
  const Lowered lowered("seatbelt", {"fs:write:/w/**"});
  for (const std::string path : {"/w", "/w/.git", "/w/.GIT", "/w/.git/hooks", "/w/.claude"}) {
    EXPECT_FALSE(allows(lowered, "file-write-unlink", path)) << path;
  }
  EXPECT_FALSE(allows(lowered, "file-write-create", "/w/.git"));
  EXPECT_FALSE(allows(lowered, "file-write-create", "/w/.Git/HOOKS/post-commit"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/w/.ENV"));
  EXPECT_TRUE(allows(lowered, "file-write-unlink", "/w/.git/index"));
}

TEST(Seatbelt, ACredentialOpensOnlyByItsOwnGrantAndOnlySoFar) {
  const Lowered lowered("seatbelt",
                        {"fs:write:/Users/u/.config/**", "fs:read:/Users/u/.config/gh/hosts.yml",
                         "fs:read:/Users/u/.ssh/known_hosts"},
                        {.home = "/Users/u"});
  EXPECT_TRUE(allows(lowered, "file-read-data", "/Users/u/.config/x"));
  EXPECT_TRUE(allows(lowered, "file-read-data", "/Users/u/.config/gh/hosts.yml"));
  EXPECT_TRUE(allows(lowered, "file-read-metadata", "/Users/u/.config/gh"));
  EXPECT_FALSE(allows(lowered, "file-write-data", "/Users/u/.config/gh/hosts.yml"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/Users/u/.config/gh/config.yml"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/Users/u/.config/gh"));
  EXPECT_TRUE(allows(lowered, "file-read-data", "/Users/u/.ssh/known_hosts"));
  EXPECT_FALSE(allows(lowered, "file-read-data", "/Users/u/.ssh/id_rsa"));
}

TEST(Seatbelt, AnInterpreterBringsItsPrefixButNeverAHome) {
  const std::string node = "/Users/u/.nvm/versions/node/v22/bin/node";
  const Lowered own("seatbelt", {}, {.home = "/Users/u", .programs = {node}});
  EXPECT_TRUE(allows(own, "file-read-data", "/Users/u/.nvm/versions/node/v22/lib/x.js"));
  EXPECT_FALSE(allows(own, "file-read-data", "/Users/u/.nvm/alias/default"));
  const Lowered home("seatbelt", {}, {.home = "/Users/u", .programs = {"/Users/u/bin/server"}});
  EXPECT_TRUE(allows(home, "process-exec", "/Users/u/bin/server"));
  EXPECT_FALSE(allows(home, "file-read-data", "/Users/u/notes"));
  const Lowered local("seatbelt", {}, {.programs = {"/usr/local/bin/node"}});
  EXPECT_TRUE(allows(local, "file-read-data", "/usr/local/lib/node_modules/x"));
  EXPECT_FALSE(allows(local, "file-read-data", "/usr/local/etc/x"));
  EXPECT_FALSE(allows(local, "process-exec", "/usr/local/bin/other"));
}

TEST(Seatbelt, TheBareArgvIsClearedAndEndsWhereTheCommandFollows) {
  const Lowered lowered("seatbelt", {"env:inject:KEY", "net:connect:a.example:443"});
  const Strings argv = lowered.argv();
  EXPECT_EQ(argv[0], "/usr/bin/env");
  EXPECT_EQ(argv[1], "-i");
  EXPECT_EQ(argv.back(), "--");
  EXPECT_TRUE(lowered.has({"/usr/bin/sandbox-exec", "-f", "server.sb"}));
  ASSERT_EQ(lowered.artifact().fds.size(), 1U);
  EXPECT_EQ(lowered.artifact().fds[0].names, (Strings{"KEY", "CAPGATE_EGRESS_TOKEN"}));
}

TEST(Seatbelt, TheOrderOfDeclarationsDoesNotMatter) {
  const Strings one{"fs:read:/b", "fs:write:/a/**", "net:connect:x.example:1", "env:read:A"};
  const Strings two{"env:read:A", "net:connect:x.example:1", "fs:write:/a/**", "fs:read:/b"};
  EXPECT_EQ(Lowered("seatbelt", one).artifact().files.back().contents,
            Lowered("seatbelt", two).artifact().files.back().contents);
}

// ---- Properties ------------------------------------------------------------------------------

// Few names, so that grants and questions meet, among them those that are held back.
const Strings names{"a",     "b",      "a.md",  ".config",  "gh",  ".ssh", ".env",   ".git",
                    "hooks", ".local", "share", "keyrings", "git", "fish", ".vscode"};

std::string some_path(int most, const Strings& from) {
  std::string path = support::pick({"/w", "/tmp/w", "/Users/u", "/var/w"});
  const int depth = *rc::gen::inRange(1, most);
  for (int i = 0; i < depth; ++i) path += "/" + support::pick(from);
  return path;
}

Strings some_grants() {
  Strings out;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    const std::string text =
        format("fs:{}:{}{}", support::pick({"read", "write", "create", "delete"}),
               some_path(4, names), support::pick({"", "/**", "/*.md", "/a*"}));
    const auto parsed = core::parse_capability(text, {});
    if (parsed && core::check_scope(parsed->front(), "/Users/u")) out.push_back(text);
  }
  return out;
}

RC_GTEST_PROP(SeatbeltProperty, ProfilesAnswerAsTheSlowOracleDoes, ()) {
  const Strings grants = some_grants();
  const Lowered lowered("seatbelt", grants,
                        {.home = "/Users/u", .programs = {"/opt/node/bin/node"}});
  if (!lowered.ok()) RC_DISCARD("refused");
  const auto profile = profile_of(lowered);
  RC_ASSERT(profile.has_value());
  const core::Manifest manifest = *support::read_manifest(
      support::manifest_json({grants}), {{.name = "HOME", .values = {"/Users/u"}}});
  const core::Policy policy = *core::merge(manifest);
  const SeatbeltOracle oracle(policy, "/Users/u", "");
  Strings asked = names;
  asked.insert(asked.end(), {".ENV", ".Git", "HOOKS", ".VSCode"});
  for (int i = 0; i < 40; ++i) {
    const std::string path = SeatbeltOracle::real(some_path(6, asked));
    RC_LOG() << path << '\n';
    const auto answer = [&](std::string_view operation) {
      return profile->allows(operation, {{"path", path}});
    };
    RC_ASSERT(answer("file-read-data") == oracle.allows(Right::read, path));
    RC_ASSERT(answer("file-write-data") == oracle.allows(Right::modify, path));
    RC_ASSERT(answer("file-write-create") == oracle.allows(Right::create, path));
    RC_ASSERT(answer("file-write-unlink") == oracle.allows(Right::remove, path));
  }
}

// A path with every character of the grammar is a rule about that path and no other.
RC_GTEST_PROP(SeatbeltProperty, NoPathIsSyntax, ()) {
  const std::string path = "/w" + support::plain_path();
  const std::string text = lower::seatbelt::quote(path);
  const auto read = sbpl::Reader(text).all();
  RC_ASSERT(read.has_value() && read->size() == 1U);
  RC_ASSERT(read->front().text == path);
  const auto regex = sbpl::Regex::read("^" + lower::seatbelt::escape_regex(path) + "$");
  RC_ASSERT(regex.has_value());
  RC_ASSERT(regex->matches(path) && !regex->matches(path + "x") && !regex->matches("/w"));
  const auto any = sbpl::Regex::read("^" + lower::seatbelt::escape_regex_any_case(path) + "$");
  RC_ASSERT(any.has_value());
  RC_ASSERT(any->matches(path) && any->matches(to_lower(path)));
}

}  // namespace
}  // namespace capgate::seatbelt_test
