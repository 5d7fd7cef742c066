// capgate check as a whole command. tests/e2e/check_test.py validates its SARIF with the schema.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "support/cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::Inherited;
using support::joined;
using support::Json;
using support::Ran;
using support::replaced;
using support::server;
using support::Words;

const std::string ignore_entry =
    "ignore:\n  - rule: NET_ANY\n    reason: it fetches any page\n    expires: 2027-06-30\n";

class CheckCommand : public support::CliTest {
 protected:
  CheckCommand() {
    file("fetch.json", server({"net:connect:*"}));
    file("clean.json", server({"net:connect:api.example.com:443"}));
    file("noted.json", server({"net:connect:api.example.com"}));
    file("bad.json", server({"fs:read:relative"}));
  }

  [[nodiscard]] Ran check(const Words& words, const Inherited& inherited = {}) const {
    return run(joined({"check"}, words), inherited);
  }
  [[nodiscard]] Json json(const Words& words, int code, const Inherited& inherited = {}) const {
    const Ran done = check(joined(words, {"--json"}), inherited);
    EXPECT_EQ(done.code, code) << done;
    return done.json();
  }
  [[nodiscard]] Words rules(const Words& words, int code, const Inherited& inherited = {}) const {
    return column(json(words, code, inherited)["findings"], "rule");
  }
  [[nodiscard]] std::set<std::string> fingerprints(const std::string& manifest,
                                                   const Inherited& inherited = {}) const {
    const Words all =
        column(json({manifest, "--severity", "note"}, 5, inherited)["findings"], "fingerprint");
    return {all.begin(), all.end()};
  }
};

TEST_F(CheckCommand, FindingsAreExitCode5AndNotesAreNot) {
  EXPECT_EQ(check({"fetch.json"}).code, Exit::widened);
  EXPECT_EQ(check({"clean.json"}).code, Exit::ok);
  const Ran noted = check({"noted.json"});
  EXPECT_EQ(noted.code, Exit::ok) << noted;
  EXPECT_TRUE(has(noted.err, "1 finding of less severity"));
}

TEST_F(CheckCommand, SeverityIsTheLeastThatCounts) {
  EXPECT_EQ(rules({"noted.json", "--severity", "note"}, 5), Words{"NET_NO_PORT"});
  EXPECT_EQ(rules({"fetch.json", "--severity", "error"}, 0), Words{});
  EXPECT_EQ(check({"fetch.json", "--severity", "fatal"}).code, Exit::usage);
}

TEST_F(CheckCommand, OnlyVariablesThatALineUsesAreReportedAsUnbound) {
  file("repo.json", server({"fs:read:${REPO}/**"}));
  const Ran done = check({"repo.json"});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_TRUE(has(done.err, "${REPO} is not bound"));
  EXPECT_FALSE(has(done.err, "HOME"));
  EXPECT_EQ(json({"repo.json"}, 0)["unbound"], Words{"REPO"});
  file("both.json", server({"fs:read:${REPO}/**", "fs:read:${HOME}/notes/**"}));
  EXPECT_EQ(json({"both.json"}, 0)["unbound"], (Words{"HOME", "REPO"}));
}

TEST_F(CheckCommand, ABooleanOfYamlCountsInEverySpelling) {
  const auto explain = [&](const std::string& word) {
    file("seal.yaml", "name: s\nversion: '1'\nseal: " + word +
                          "\ntools: []\nserverCapabilities: ['env:inject:A_TOKEN', "
                          "'net:connect:a.example.com:443']\n");
    const Ran done = run({"explain", "seal.yaml"});
    EXPECT_EQ(done.code, Exit::ok) << done;
    return done.out;
  };
  const std::string sealed = explain("true");
  const std::string held = explain("false");
  for (const char* word : {"True", "TRUE"}) EXPECT_EQ(explain(word), sealed) << word;
  for (const char* word : {"False", "FALSE"}) EXPECT_EQ(explain(word), held) << word;
  EXPECT_TRUE(has(sealed, "env:inject:A_TOKEN?to=a.example.com:443"));
  EXPECT_FALSE(has(held, "?to="));
}

TEST_F(CheckCommand, MistakesComeBeforeFindings) {
  EXPECT_EQ(check({"bad.json"}).code, Exit::compile_error);
  EXPECT_EQ(check({"fetch.json", "bad.json"}).code, Exit::compile_error);
  EXPECT_EQ(check({"fetch.json", "bad.json", "missing.json"}).code, Exit::unreadable);
}

TEST_F(CheckCommand, ADirectoryIsRefusedByName) {
  directory().directory("servers");
  const Ran done = check({"servers"});
  EXPECT_EQ(done.code, Exit::unreadable) << done;
  EXPECT_TRUE(has(done.err, "servers"));
  EXPECT_TRUE(has(done.err, "irectory"));
}

TEST_F(CheckCommand, ExclusiveOptionsAreRefused) {
  EXPECT_EQ(check({"fetch.json", "--json", "--sarif"}).code, Exit::usage);
  EXPECT_EQ(check({"fetch.json", "--ignore", "x", "--no-ignore"}).code, Exit::usage);
}

TEST_F(CheckCommand, OptionsOfAStartedServerNeedLive) {
  for (const Words& words : {Words{"--config", "capgate.yaml"}, Words{"--allow", "fs:read:/srv"},
                             Words{"--timeout", "3"}}) {
    const Ran done = check(joined({"fetch.json"}, words));
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_TRUE(has(done.err, words[0] + " is for a server that is started"));
  }
}

TEST_F(CheckCommand, OptionsOfFindingsExcludeLive) {
  for (const Words& words : {Words{"--sarif"}, Words{"--severity", "note"},
                             Words{"--ignore", "x.yaml"}, Words{"--no-ignore"}, Words{"--seal"},
                             Words{"--tool", "x"}, Words{"--validators", "v.json"}}) {
    const Ran done =
        check(joined(joined({"--live", "fetch.json"}, words), {"--", "/usr/bin/true"}));
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_TRUE(has(done.err, words[0] + " is for the findings of a file"));
  }
}

TEST_F(CheckCommand, ALockHasTheWholePolicyOfAFile) {
  for (const Words& words :
       {Words{"fetch.json", "--tool", "x"}, Words{"fetch.json", "--seal"}, Words{"-"}}) {
    const Ran done = check(joined(words, {"--locked", "capgate.lock"}));
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_TRUE(has(done.err, "lock"));
  }
}

TEST_F(CheckCommand, EachOfSeveralFilesIsCheckedOnce) {
  const Ran done = check({"fetch.json", "clean.json", "./fetch.json"});
  EXPECT_EQ(done.code, Exit::widened) << done;
  const auto lines = split(done.out, '\n');
  ASSERT_EQ(lines.size(), 3U) << done;
  EXPECT_TRUE(lines[0].starts_with("fetch.json:"));
  EXPECT_TRUE(lines[1].starts_with("clean.json:"));
  EXPECT_EQ(lines[2], "");
  const Json all = json({"fetch.json", "clean.json"}, 5);
  EXPECT_EQ(column(all["files"], "file"), (Words{"fetch.json", "clean.json"}));
  EXPECT_EQ(column(all["findings"], "file"), Words{"fetch.json"});
}

TEST_F(CheckCommand, AWrongFileDoesNotHideTheOthers) {
  const Json all = json({"bad.json", "fetch.json", "missing.json"}, 3);
  EXPECT_EQ(all["files"][0]["diagnostics"][0]["code"], "CAP_FS_RELATIVE");
  EXPECT_EQ(all["files"][2]["unreadable"], true);
  EXPECT_EQ(all["findings"].size(), 1U);
}

TEST_F(CheckCommand, StandardInputHasNoFile) {
  const Json all = json({"-"}, 5, {.input = server({"net:connect:*"}).dump()});
  EXPECT_EQ(all["findings"][0]["file"], "");
  EXPECT_EQ(all["schemaVersion"], 1);
}

TEST_F(CheckCommand, JsonKeepsItsKeys) {
  const Json all = json({"fetch.json"}, 5);
  for (const char* key : {"diagnostics", "name", "version", "tools", "declared", "grants",
                          "manifestHash", "policyHash"}) {
    EXPECT_TRUE(all.has(key)) << key;
  }
}

TEST_F(CheckCommand, AKeyForEditorsIsAcceptedWithoutANote) {
  Json manifest = server({"fs:read:/a"});
  manifest["$schema"] = "https://example.com/manifest.schema.json";
  const Ran done = check({"-"}, {.input = manifest.dump()});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_FALSE(has(done.err, "schema"));
}

TEST_F(CheckCommand, FingerprintsSurviveMovedLinesAndReorderedKeys) {
  file("m.json", R"({"name": "server", "version": "1.0.0", "tools": [{"name": "tool",
    "capabilities": ["net:connect:*", "fs:write:/srv/x/**", "exec:spawn:bash"],
    "annotations": {"readOnlyHint": true}}]})");
  const auto before = fingerprints("m.json");
  EXPECT_GE(before.size(), 4U);
  file("m.json", R"(

    {"tools": [{"annotations": {"readOnlyHint": true}, "capabilities": ["exec:spawn:bash",
    "fs:write:/srv/x/**", "net:connect:*"], "name": "tool"}], "version": "9", "name": "other"})");
  EXPECT_EQ(fingerprints("m.json"), before);
}

TEST_F(CheckCommand, FingerprintsDoNotDependOnTheSpellingOfThePath) {
  const auto here = fingerprints("fetch.json");
  EXPECT_EQ(fingerprints("./fetch.json"), here);
  EXPECT_EQ(fingerprints(path("fetch.json")), here);
  EXPECT_NE(fingerprints(path("fetch.json"), {.directory = "/"}), here);
}

// ---- the ignore file ----------------------------------------------------------------------------

class CheckIgnore : public CheckCommand {
 protected:
  // The last day of the entry, and the day after it.
  const Inherited before_ = {.environment = {{"SOURCE_DATE_EPOCH", "1814313600"}}};
  const Inherited after_ = {.environment = {{"SOURCE_DATE_EPOCH", "1814400000"}}};
};

TEST_F(CheckIgnore, TheFileOfTheWorkingDirectoryIsUsed) {
  file(".capgate-ignore.yaml", ignore_entry);
  const Json all = json({"fetch.json"}, 0, before_);
  EXPECT_EQ(all["findings"].size(), 0U);
  EXPECT_EQ(all["ignored"][0]["reason"], "it fetches any page");
  const Ran done = check({"fetch.json"}, before_);
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_TRUE(has(done.err, "1 finding ignored"));
  EXPECT_EQ(check({"fetch.json", "--no-ignore"}, before_).code, Exit::widened);
  Inherited elsewhere = before_;
  elsewhere.directory = "/";
  EXPECT_EQ(check({path("fetch.json")}, elsewhere).code, Exit::widened);
}

TEST_F(CheckIgnore, AnEntryHoldsThroughItsLastDay) {
  const std::string place = file("i.yaml", ignore_entry);
  const Words words = {"fetch.json", "--ignore", place};
  EXPECT_EQ(rules(words, 0, before_), Words{});
  EXPECT_EQ(rules(words, 5, after_), (Words{"NET_ANY", "IGNORE_EXPIRED"}));
  const Ran done = check(words, after_);
  EXPECT_EQ(done.code, Exit::widened) << done;
  EXPECT_TRUE(has(done.err, place + ":2:11: warning[IGNORE_EXPIRED]"));
}

TEST_F(CheckIgnore, AnEntryThatMatchesNothingIsNoted) {
  file("i.yaml", replaced(ignore_entry, "NET_ANY", "UNSAFE"));
  EXPECT_EQ(rules({"fetch.json", "--ignore", "i.yaml", "--severity", "note"}, 5, before_),
            (Words{"NET_ANY", "IGNORE_UNUSED"}));
}

TEST_F(CheckIgnore, MistakesHaveTheirPlace) {
  const std::string place =
      file("i.yaml", replaced(ignore_entry, "    reason: it fetches any page\n", ""));
  const Ran done = check({"fetch.json", "--ignore", place});
  EXPECT_EQ(done.code, Exit::compile_error) << done;
  EXPECT_TRUE(has(done.err, place + ":2:5: error[IGNORE_SHAPE]: reason is missing"));
  EXPECT_EQ(check({"fetch.json", "--ignore", "missing.yaml"}).code, Exit::unreadable);
}

TEST_F(CheckIgnore, AnIgnoreFileThatCannotBeReadIsAnError) {
  directory().directory(".capgate-ignore.yaml");
  EXPECT_EQ(check({"fetch.json"}).code, Exit::unreadable);
  std::filesystem::remove(path(".capgate-ignore.yaml"));
  EXPECT_EQ(check({"fetch.json"}).code, Exit::widened);
}

// ---- whole texts --------------------------------------------------------------------------------

TEST_F(CheckCommand, PrintsAReviewInWordsAndAsSarif) {
  const std::string golden = std::string(support::source_directory()) + "/tests/cli/check";
  const Words words = {"review.yaml", "--severity", "note"};
  const Ran text = check(words, {.directory = golden});
  EXPECT_EQ(text.code, Exit::widened) << text;
  support::expect_golden("tests/cli/check/review.txt", text.err + text.out);
  const Ran sarif = check(joined(words, {"--sarif"}), {.directory = golden});
  EXPECT_EQ(sarif.code, Exit::widened) << sarif;
  support::expect_golden("tests/cli/check/review.sarif", sarif.out);
}

}  // namespace
}  // namespace capgate::cli
