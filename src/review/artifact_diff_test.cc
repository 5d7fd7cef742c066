#include "review/artifact_diff.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "lower/targets.h"
#include "support/manifests.h"
#include "support/timing.h"

namespace capgate::review {
namespace {

using Kind = ShownPart::Kind;
using support::json_document;

std::string artifact(std::string_view body, std::string_view more = "") {
  return format(R"({{{}, "provenance": {{"target": "bwrap", "options": {{}}{}}}}})", body, more);
}

// "widened argv + --bind /a /a", each part by itself.
std::vector<std::string> compared(const std::string& before, const std::string& after) {
  const auto old = json_document(before);
  const auto now = json_document(after);
  std::vector<std::string> out;
  for (const ShownPart& part : compare_artifacts({.document = old}, {.document = now})) {
    out.push_back(format("{} {} {}{}", kind_name(part.kind), part.part,
                         part.before.empty() ? "" : "-" + part.before,
                         part.after.empty() ? "" : "+" + part.after));
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(ArtifactDiff, SaysWhichWayEachPartGoes) {
  const std::string bare = artifact(R"("argv": ["--unshare-net"], "egress": [], "assertions": [])");
  const std::string more = artifact(
      R"("argv": ["--bind", "/a", "/a"], "egress": [{"host": "a.test"}], "assertions": [{"id": "x"}])");
  EXPECT_EQ(compared(bare, bare), Lines{});
  EXPECT_EQ(compared(bare, more),
            (Lines{"widened argv +--bind /a /a", R"(widened egress +{"host":"a.test"})",
                   R"(narrowed assertions +{"id":"x"})", "widened argv ---unshare-net"}));
  EXPECT_EQ(compared(more, bare),
            (Lines{"narrowed argv +--unshare-net", "narrowed argv ---bind /a /a",
                   R"(narrowed egress -{"host":"a.test"})", R"(widened assertions -{"id":"x"})"}));
}

TEST(ArtifactDiff, ClaimsNothingOfWhatItDoesNotKnow) {
  const auto argv = [](std::string_view words) {
    return artifact(format(R"("argv": [{}])", words));
  };
  EXPECT_EQ(compared(argv(R"("--network", "none")"), argv(R"("--network", "host")")),
            (Lines{"differs argv +--network host", "differs argv ---network none"}));
  // The mount lay over another one.
  EXPECT_EQ(compared(argv(R"("--bind", "/a", "/a", "--ro-bind", "/n", "/a/b")"),
                     argv(R"("--bind", "/a", "/a")")),
            (Lines{"differs argv ---ro-bind /n /a/b"}));
  EXPECT_EQ(compared(argv(R"("--bind", "/a", "/a", "--ro-bind", "/ab", "/ab")"),
                     argv(R"("--bind", "/a", "/a")")),
            (Lines{"narrowed argv ---ro-bind /ab /ab"}));
  // It may have hidden what is there without it.
  for (const std::string_view words :
       {R"("--ro-bind", "/n", "/ab")", R"("--ro-bind", "/b/../a", "/b/../a")"}) {
    const auto lines = compared(argv(format(R"("--bind", "/a", "/a", {})", words)),
                                argv(R"("--bind", "/a", "/a")"));
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(lines[0].starts_with("differs argv -")) << lines[0];
  }
  // Nothing is known of what follows an option that is not known: it may be its operand.
  EXPECT_EQ(compared(argv(R"("--odd", "--b")"), argv(R"("--odd", "--unshare-net", "--b")")),
            (Lines{"differs argv +--unshare-net"}));
  EXPECT_EQ(compared(argv(R"("--", "a")"), argv(R"("--", "--unshare-net", "a")")),
            (Lines{"differs argv +--", "differs argv +--unshare-net a", "differs argv --- a"}));
  EXPECT_EQ(compared(argv(R"("--a", "1", "--b")"), argv(R"("--b", "--a", "1")")),
            (Lines{"differs argv "}));
  EXPECT_EQ(compared(argv(R"("--a", "1 2")"), argv(R"("--a", "1", "2")")).size(), 2U);
  EXPECT_EQ(compared(argv(R"("--a", "")"), argv(R"("--a")")).size(), 2U);
  EXPECT_EQ(compared(artifact(R"("odd": 1)"), artifact(R"("odd": 2)")),
            (Lines{"differs odd +2", "differs odd -1"}));
}

TEST(ArtifactDiff, NothingStandsForSomethingElse) {
  const std::string file = R"("files": [{"name": "a", "contents": "x\ny\n"}])";
  const std::string cut = R"("files": [{"name": "a", "contents": "x\n"}])";
  EXPECT_EQ(compared(artifact(file), artifact(cut + R"(, "file a": ["y"])")),
            (Lines{R"(differs "file a" +["y"])", "differs file a -y"}));
  EXPECT_EQ(compared(artifact(file), artifact(R"("files": [{"name": "a", "contents": "x\n"},
                                                           {"name": "a", "contents": "y\n"}])")),
            (Lines{"differs files +a", "differs file a +y", "differs file a -y"}));
  const auto plan = [](std::string_view body) {
    return artifact(format(R"("plan": {{{}}})", body));
  };
  EXPECT_EQ(compared(plan(R"("a": {"b": 1})"), plan(R"("a b": 1)")).size(), 3U);
  EXPECT_EQ(compared(plan(R"("a": [])"), plan("")).size(), 1U);
  EXPECT_EQ(compared(plan(R"("a": 1)"), plan(R"("a": "1")")).size(), 2U);
  EXPECT_EQ(compared(plan(R"("a": [1])"), plan(R"("a": ["1"])")).size(), 2U);
  EXPECT_EQ(compared(plan(R"("a": {"at": 1})"), plan(R"("a": {"at": 2})")).size(), 2U);
  const auto rules = [&](std::string_view at) {
    return plan(format(R"("network": {{"rules": [{{"capability": "c", "at": {}}}]}})", at));
  };
  EXPECT_EQ(compared(rules(R"("a:1")"), rules(R"("b:2")")), Lines{});
  EXPECT_EQ(compared(rules(R"("a:1")"), rules(R"({"x": 1})")).size(), 2U);
  EXPECT_EQ(compared(artifact(R"("odd": [])"), artifact(R"("argv": [])")),
            (Lines{"differs keys +argv", "differs odd -[]"}));
}

// tests/fuzz/artifact_diff_fuzz.cc checks this for any two artifacts.
TEST(ArtifactDiff, AValueDoesNotEqualTheTextThatReadsLikeIt) {
  const auto file = [](std::string_view contents) {
    return artifact(format(R"("files": [{{"name": "a", "contents": {}}}])", contents));
  };
  EXPECT_EQ(compared(file("5"), file(R"("5\n")")).size(), 2U);
  EXPECT_EQ(compared(file("[]"), file(R"("[]\n")")).size(), 2U);
  EXPECT_EQ(compared(artifact(R"("files": ["a"])"), artifact(R"("files": [{"name": "a"}])")).size(),
            2U);
  EXPECT_EQ(compared(artifact(R"("fds": ["p"])"), artifact(R"("fds": [{"purpose": "p"}])")).size(),
            2U);
}

TEST(ArtifactDiff, TakesFilesLineByLine) {
  const auto file = [](std::string_view contents) {
    return artifact(format(R"("files": [{{"name": "a", "contents": "{}"}}])", contents));
  };
  EXPECT_EQ(compared(file(R"(x\ny\n)"), file(R"(x\nz\n)")),
            (Lines{"differs file a +z", "differs file a -y"}));
  EXPECT_EQ(compared(file(R"(x\ny\n)"), file(R"(y\nx\n)")), (Lines{"differs file a "}));
  EXPECT_EQ(compared(file(R"(x\n)"), file("x")).size(), 1U);
  EXPECT_EQ(compared(file(R"(x\nx\n)"), file(R"(x\n)")), (Lines{"differs file a -x"}));
}

TEST(ArtifactDiff, KnowsTheRulesOfSomeFiles) {
  const auto file = [](std::string_view name, std::string_view contents) {
    return artifact(format(R"("files": [{{"name": "{}", "contents": "{}\n"}}])", name, contents));
  };
  const auto gone = [&](std::string_view name, std::string_view rest, std::string_view line) {
    return compared(file(name, format("{}\\n{}", rest, line)), file(name, rest)).front();
  };
  EXPECT_EQ(gone("c.apparmor", "x", R"(  \"/a/**\" mr,)"),
            R"(narrowed file c.apparmor -  "/a/**" mr,)");
  EXPECT_EQ(gone("c.apparmor", "x", R"(  deny \"/a/**\" w,)"),
            R"(widened file c.apparmor -  deny "/a/**" w,)");
  EXPECT_EQ(gone("c.other", "x", R"(  \"/a/**\" mr,)"), R"(differs file c.other -  "/a/**" mr,)");
  EXPECT_EQ(gone("s.service", "x", R"(BindPaths=\"/a\":\"/a\")"),
            R"(narrowed file s.service -BindPaths="/a":"/a")");
  EXPECT_EQ(
      gone("s.service", R"(BindPaths=\"/a\":\"/a\")", R"(BindReadOnlyPaths=\"/a/b\":\"/a/b\")"),
      R"(differs file s.service -BindReadOnlyPaths="/a/b":"/a/b")");
}

TEST(ArtifactDiff, LooksThroughTheHashOfThePolicy) {
  const std::string a(64, 'a');
  const std::string b(64, 'b');
  const auto with = [](const std::string& hash, std::string_view note) {
    return artifact(format(R"("argv": ["--x", "{}"])", note),
                    format(R"(, "policyHash": "sha256:{}")", hash));
  };
  EXPECT_EQ(compared(with(a, a), with(b, b)).size(), 1U);  // the hash itself, which is told
  EXPECT_EQ(compared(with(a, a), with(a, b)).size(), 2U);
  EXPECT_EQ(compared(with(a, "v"), with("/home", "/home")).size(), 3U);  // no hash hides a word
  // Nor does one form of it stand for another, or a word for it.
  EXPECT_EQ(compared(with(a, a), with(b, b.substr(0, 32))).size(), 3U);
  EXPECT_EQ(compared(with(a, a), with(b, R"(\u00010\u0001)")).size(), 3U);
}

TEST(ArtifactDiff, KnowsTheCauseOfWhatWasJustMade) {
  const auto document =
      json_document(support::manifest_json({{"fs:read:/srv/**", "net:connect:a.test:443"},
                                            {"env:inject:T", "fs:read:\"/opt/my dir/**\""}}));
  const auto manifest = core::parse_manifest(document, {});
  const auto policy = core::merge(*manifest);
  const lower::Options options;
  const Source source("m.json", document.source());
  const lower::Input input{*manifest, *policy, options, &source};
  const auto made = lower::lower_to(*lower::find_target("bwrap"), input);
  ASSERT_TRUE(made);
  const FreshArtifact fresh = fresh_artifact(*made, input, source, lower::FilesAs::contents);
  const auto cause = [&](std::string_view section, std::string_view words) {
    const auto part = std::ranges::find_if(fresh.parts, [&](const Part& each) {
      return each.section == section && each.words.starts_with(words);
    });
    return part == fresh.parts.end() ? std::string("no such part") : part->cause.capability;
  };
  EXPECT_EQ(cause("argv", "--ro-bind /srv /srv"), "fs:read:/srv/**");
  EXPECT_EQ(cause("argv", R"(--ro-bind "/opt/my dir" "/opt/my dir")"), "fs:read:/opt/my dir/**");
  EXPECT_EQ(cause("argv", "--ro-bind /usr /usr"), "");
  EXPECT_EQ(cause("egress", R"({"host":"a.test")"), "net:connect:a.test:443");
  EXPECT_EQ(cause("envInjections", "T"), "env:inject:T");
  const ArtifactSide same{.document = *fresh.document, .fresh = &fresh};
  EXPECT_TRUE(compare_artifacts({.document = *fresh.document}, same).empty());
}

TEST(ArtifactDiff, CostsAboutAsMuchMoreAsThereIsMore) {
  const auto seconds = [](std::size_t n) {
    const auto of = [&](std::string_view side) {
      std::string argv;
      std::string options;
      for (std::size_t i = 0; i < n; ++i) {
        argv += format(R"({}"--bind", "/{}/{}", "/{}/{}")", i == 0 ? "" : ", ", side, i, side, i);
        options += format(R"({}"{}{}": "x")", i == 0 ? "" : ", ", side, i);
      }
      return json_document(
          format(R"({{"argv": [{}], "provenance": {{"target": "bwrap", "options": {{{}}}}}}})",
                 argv, options));
    };
    const auto old = of("a");
    const auto now = of("b");
    return support::shortest_seconds(
        [&] { EXPECT_EQ(compare_artifacts({.document = old}, {.document = now}).size(), 4 * n); });
  };
  const double ratio = seconds(4000) / seconds(500);
  EXPECT_LT(ratio, 36) << "eight times as much, with room for a busy machine; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::review
