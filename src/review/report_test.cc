#include "review/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "core/prepare.h"
#include "review/markup.h"
#include "review/picture_text.h"
#include "review/report_page.h"
#include "review/report_picture.h"
#include "review/report_words.h"
#include "support/source_directory.h"
#include "text/json_or_yaml.h"

namespace capgate::review {
namespace {

namespace fs = std::filesystem;
using core::GrantChange;

// A manifest that was read, with what a report needs of it.
struct Read {
  std::string name;
  text::Document document;
  core::Manifest manifest;
  core::Policy policy;
  lower::Options options;

  [[nodiscard]] Report report(const core::ManifestDiff* change = nullptr,
                              std::string_view target = "plan") const {
    const Source source(name, document.source());
    return make_report({.manifest = manifest,
                        .policy = policy,
                        .options = options,
                        .source = source,
                        .target = *lower::find_target(target),
                        .change = change,
                        .against = change == nullptr ? "" : "old/before.json"});
  }
};

Read read(std::string_view text, core::Choice choice = {}, const std::string& name = "dir/m.json") {
  auto document = text::parse_json_or_yaml(name, text::share(std::string(text)));
  EXPECT_TRUE(document);
  auto manifest = core::parse_manifest(*document, {});
  EXPECT_TRUE(manifest);
  auto policy = core::make_policy(*manifest, choice);
  EXPECT_TRUE(policy);
  lower::Options options{.runtime_dir = "/run/user/1000"};
  options.tool = choice.tool.value_or("");
  return {name, *std::move(document), *std::move(manifest), *std::move(policy), std::move(options)};
}

Read server(std::string_view capabilities) {
  return read(format(R"({{"name":"s","version":"1","grammar":"0.1","tools":[)"
                     R"({{"name":"t","capabilities":[{}]}}]}})",
                     capabilities));
}

core::Capability capability(std::string_view text) {
  return core::parse_capability(std::string(text), {})->front();
}

const Line& find(const Report& report, std::string_view text) {
  const auto line = std::ranges::find(report.lines, text, &Line::capability);
  EXPECT_NE(line, report.lines.end()) << text;
  return *line;
}

TEST(ReportTest, ALineSaysWhatItMeansWhatHoldsItAndWhoAsked) {
  const Report report = server(R"("fs:read:/srv/**")").report();
  const Line& line = find(report, "fs:read:/srv/**");
  EXPECT_EQ(line.meaning, "read and list /srv and everything below it");
  EXPECT_EQ(line.by, "mount namespace (exact binds) and Landlock");
  EXPECT_EQ(line.verb, "read");
  EXPECT_EQ(line.scope, "/srv/**");
  ASSERT_EQ(line.origins.size(), 1);
  EXPECT_EQ(line.origins[0].tool, "t");
  EXPECT_EQ(line.origins[0].place, "m.json:1:81");
}

TEST(ReportTest, WhoOnlyReadsIsNotWhyAPathIsWritten) {
  const Report report = read(R"({"name":"s","version":"1","grammar":"0.1","tools":[)"
                             R"({"name":"search","capabilities":["fs:read:/srv/**"]},)"
                             R"({"name":"patch","capabilities":["fs:write:/srv/**"]}]})")
                            .report();
  const Line& line = find(report, "fs:write:/srv/**");
  ASSERT_EQ(line.origins.size(), 2);
  EXPECT_EQ(line.origins[0].capability, "fs:read:/srv/**");
  EXPECT_TRUE(line.origins[0].only_reads);
  EXPECT_EQ(line.origins[1].tool, "patch");
  EXPECT_FALSE(line.origins[1].only_reads);
  EXPECT_TRUE(report_page(report).contains("search</code>, only to read"));
}

TEST(ReportTest, TheVerdictIsTheWorstInPlainWords) {
  EXPECT_EQ(plain(server("").report().verdict),
            "At worst it computes and gives its client wrong answers. Nothing else.");
  EXPECT_EQ(plain(server(R"("fs:read:/tmp/**")").report().verdict),
            "At worst it computes and gives its client wrong answers. Nothing else.");
  EXPECT_EQ(plain(server(R"("fs:read:/srv/**","env:inject:KEY")").report().verdict),
            "At worst it can give its client what it reads in /srv/** and the value of KEY. "
            "Nothing else.");
  EXPECT_EQ(
      plain(server(R"("fs:write:/srv/**","net:connect:*:443","exec:spawn:git")").report().verdict),
      "At worst it can send what it reads in /srv/** to every public host, change or remove "
      "/srv/**, and start git. Nothing else.");
}

TEST(ReportTest, WhatATargetRefusesIsMarkedWithItsReason) {
  const Read manifest = server(R"("net:listen:8080","fs:read:/srv/**")");
  EXPECT_EQ(manifest.report().open_lines(), 0);
  const Report docker = manifest.report(nullptr, "docker");
  EXPECT_EQ(docker.open_lines(), 2);
  EXPECT_EQ(find(docker, "net:listen:8080").held, Held::not_enforced);
  EXPECT_NE(find(docker, "net:listen:8080").by, "");
  EXPECT_EQ(find(docker, "fs:read:/srv/**").held, Held::partly);
  EXPECT_TRUE(docker.problems.empty());
  EXPECT_TRUE(
      plain(docker.verdict).contains("docker does not fully hold it to 2 of these 2 lines"));
}

TEST(ReportTest, OurOwnEngineIsAskedToo) {
  const Report report = server(R"("net:connect:a.example:443?methods=GET")").report();
  EXPECT_EQ(report.lines[0].held, Held::not_enforced);
  EXPECT_TRUE(report.problems.empty());
}

TEST(ReportTest, APartialTargetLeavesTheRestOpen) {
  const Report report =
      server(R"("fs:read:/srv/**","net:connect:a.example:443")").report(nullptr, "egress");
  EXPECT_TRUE(report.is_partial_target);
  EXPECT_TRUE(report.is_guarded(Door::network));
  EXPECT_FALSE(report.is_guarded(Door::files));
  EXPECT_FALSE(report.is_guarded(Door::programs));
  EXPECT_EQ(find(report, "fs:read:/srv/**").held, Held::not_enforced);
  EXPECT_EQ(find(report, "net:connect:a.example:443").held, Held::partly);
  EXPECT_TRUE(plain(report.verdict)
                  .contains("egress is one part of a sandbox, and holds it to 0 of these 2 lines"));
  EXPECT_TRUE(report_svg(report).contains("! not closed by egress"));
  EXPECT_TRUE(report_svg(report).contains("! not kept by egress"));
  EXPECT_TRUE(report_page(report).contains(">! not closed by egress<"));
}

TEST(ReportTest, APromiseThatNobodyVerifiesIsNotEnforced) {
  Read manifest = server(R"("assert:data.stays:\"here\"")");
  EXPECT_EQ(manifest.report().lines[0].held, Held::not_enforced);
  EXPECT_TRUE(plain(manifest.report().verdict).ends_with("Nothing else."));
  manifest.options.validators.emplace();
  manifest.options.validators->emplace("data.stays", "by a test");
  EXPECT_EQ(manifest.report().lines[0].held, Held::enforced);
  EXPECT_EQ(manifest.report().lines[0].by, "the host: by a test");
}

// What a diff of two manifests says, by hand.
core::ManifestDiff some_change() {
  core::ManifestDiff change;
  change.server = {{.kind = GrantChange::Kind::narrowed, .before = capability("exec:spawn:git")},
                   {.kind = GrantChange::Kind::widened,
                    .before = capability("fs:read:/srv/**"),
                    .after = capability("fs:write:/srv/**"),
                    .origins = {0}},
                   {.kind = GrantChange::Kind::widened, .before = capability("limit:memory:64M")}};
  change.tools = {{.tool = "gone", .presence = core::ToolChange::Presence::removed, .changes = {}},
                  {.tool = "t",
                   .presence = core::ToolChange::Presence::added,
                   .changes = {{.kind = GrantChange::Kind::widened,
                                .after = capability("fs:write:/srv/**"),
                                .origins = {0}},
                               {.kind = GrantChange::Kind::moved,
                                .after = capability("env:inject:KEY"),
                                .origins = {1}}}}};
  return change;
}

TEST(ReportTest, WhatWidenedIsMarkedWithAWordAndASign) {
  const core::ManifestDiff change = some_change();
  const Read manifest = server(R"("fs:read,write:/srv/**","env:inject:KEY")");
  const Report report = manifest.report(&change);
  EXPECT_EQ(report.against, "before.json");
  EXPECT_EQ(report.wider_lines(), 1);
  EXPECT_TRUE(find(report, "fs:write:/srv/**").is_wider);
  EXPECT_EQ(find(report, "fs:write:/srv/**").before, "fs:read:/srv/**");
  EXPECT_FALSE(find(report, "env:inject:KEY").is_wider);
  ASSERT_EQ(report.tools.size(), 1);
  EXPECT_TRUE(report.tools[0].is_new);
  EXPECT_TRUE(report.tools[0].lines[0].is_wider);  // declared with other words than it comes to
  EXPECT_TRUE(report.tools[0].lines[1].is_wider);  // new for this tool
  EXPECT_EQ(report.removed_tools, std::vector<std::string>{"gone"});
  const std::string page = report_page(report);
  for (const std::string_view words : {"+ wider than before", "− narrower", "→ moved", "+ new",
                                       "+ bound is gone", "+ 2 lines wider than before.json"}) {
    EXPECT_TRUE(page.contains(words)) << words;
  }
  EXPECT_TRUE(report_svg(report).contains("+ wider than before"));
  EXPECT_TRUE(report_svg(report).contains("+ gone: limit:memory:64M"));
}

TEST(ReportTest, ChangesComeWidestFirst) {
  const core::ManifestDiff change = some_change();
  const Report report = server(R"("fs:write:/srv/**","env:inject:KEY")").report(&change);
  std::vector<std::string_view> kinds;
  for (const Change& one : report.changes) kinds.push_back(change_name(one.kind));
  EXPECT_EQ(kinds,
            (std::vector<std::string_view>{"widened", "widened", "widened", "moved", "narrowed"}));
  EXPECT_TRUE(report.changes[1].is_gone);
  EXPECT_FALSE(report.changes[0].is_gone);
}

TEST(ReportTest, NoChangeIsSaid) {
  const core::ManifestDiff change;
  const std::string page = report_page(server(R"("fs:read:/srv/**")").report(&change));
  EXPECT_TRUE(page.contains("= nothing wider than before.json"));
  EXPECT_TRUE(page.contains("Nothing that it may do differs"));
  EXPECT_FALSE(report_page(server("").report()).contains("What changed"));
}

TEST(ReportTest, OneToolAlone) {
  const Report report =
      read(R"({"name":"s","version":"1","tools":[)"
           R"({"name":"a","capabilities":["fs:read:/a"]},{"name":"b","capabilities":[]}]})",
           {.tool = "b"})
          .report();
  EXPECT_TRUE(report.lines.empty());
  ASSERT_EQ(report.tools.size(), 1);
  EXPECT_EQ(report.tools[0].name, "b");
}

TEST(ReportTest, ForeignTextCannotEndItsPlace) {
  const Report report =
      read(
          "{\"name\":\"</title><script>x</script>\",\"version\":\"\\\"'&\",\"tools\":["
          "{\"name\":\"<svg onload=x>\\u202e\",\"capabilities\":"
          "[\"fs:read:\\\"/srv/<b>&amp;\\\"\"]}]}")
          .report();
  for (const std::string& text : {report_page(report), report_svg(report)}) {
    EXPECT_FALSE(text.contains("<script"));
    EXPECT_FALSE(text.contains("<svg onload"));
    EXPECT_FALSE(text.contains("<b>"));
    EXPECT_FALSE(text.contains("\u202e"));
    EXPECT_TRUE(text.contains("&lt;svg onload=x&gt;\\u{202e}"));
    EXPECT_TRUE(text.contains("&lt;b&gt;&amp;amp;"));
  }
}

TEST(ReportTest, ThePictureShowsMarkedLinesBeforeOthersAndCountsTheRest) {
  std::string capabilities = R"("net:listen:9000")";
  for (int i = 100; i < 130; ++i) capabilities += format(R"(,"net:connect:h{}.example:443")", i);
  const Report report = server(capabilities).report(nullptr, "docker");
  const std::string picture = report_figure(report, Shape::wide, "x");
  EXPECT_TRUE(picture.contains(">9000<"));
  EXPECT_TRUE(picture.contains("and 24 more"));
  EXPECT_FALSE(picture.contains("h129.example"));
  EXPECT_TRUE(report_page(report).contains("h129.example"));
}

TEST(ReportTest, ManyOriginsAreFoldedNotDropped) {
  std::string tools;
  for (int i = 0; i < 9; ++i) {
    tools += format(R"({}{{"name":"t{}","capabilities":["fs:read:/srv"]}})", i == 0 ? "" : ",", i);
  }
  const Report report =
      read(format(R"({{"name":"s","version":"1","tools":[{}]}})", tools)).report();
  ASSERT_EQ(report.lines.size(), 1);
  EXPECT_EQ(report.lines[0].origins.size(), 9);
  EXPECT_TRUE(report_page(report).contains("<summary>and 4 more</summary>"));
}

TEST(MarkupTest, EscapesWhatEndsATextOrAnAttribute) {
  EXPECT_EQ(escape_markup("<a b=\"c\">'&"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;");
}

TEST(PictureTextTest, WrapsAtSeparatorsAndDropsTheMiddle) {
  EXPECT_EQ(wrap_text("", 10, 3), std::vector<std::string>{""});
  EXPECT_EQ(wrap_text("short", 10, 3), std::vector<std::string>{"short"});
  EXPECT_EQ(wrap_text("/workspace/sources/x", 12, 3),
            (std::vector<std::string>{"/workspace/", "sources/x"}));
  const auto lines = wrap_text(std::string(500, 'a') + "/end", 10, 3);
  EXPECT_LE(lines.size(), 3);
  EXPECT_TRUE(lines.back().ends_with("/end"));
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 10);
}

TEST(PictureTextTest, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(columns_of("ab"), 2);
  EXPECT_EQ(columns_of("é"), 1);
  EXPECT_EQ(columns_of("你好"), 4);
  for (const std::string& line : wrap_text("你好你好你好你好你好你好", 7, 2)) {
    EXPECT_LE(columns_of(line), 7);
    EXPECT_FALSE(find_invalid_utf8(line));
  }
}

TEST(PictureTextTest, ElideKeepsBothEnds) {
  EXPECT_EQ(elide("abcdef", 6), "abcdef");
  EXPECT_EQ(elide("abcdefg", 5), "ab…fg");
  EXPECT_EQ(elide("äöüßäöü", 4), "äö…ü");
}

// ---- goldens ------------------------------------------------------------------------------------

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void compare(const fs::path& expected, const std::string& actual) {
  const bool update =
      std::getenv("CAPGATE_UPDATE_GOLDEN") != nullptr && std::getenv("CI") == nullptr;
  if (update) std::ofstream(expected, std::ios::binary) << actual;
  ASSERT_TRUE(fs::exists(expected)) << expected;
  EXPECT_EQ(read_text(expected), actual) << "see " << expected;
}

// tests/report: whole files, to be opened in a browser by who reviews a change of them.
// CAPGATE_UPDATE_GOLDEN=1 rewrites them.
TEST(ReportGoldenTest, PagesPicturesAndData) {
  const fs::path root = fs::path(support::source_directory());
  const fs::path goldens = root / "tests/report";
  const Read github = read(read_text(root / "examples/github.json"), {}, "github.json");
  compare(goldens / "github.html", report_page(github.report()));
  compare(goldens / "github.svg", report_svg(github.report()));
  compare(goldens / "github.json", report_json(github.report()));
  const Read every =
      read(read_text(root / "tests/golden/every-kind/manifest.yaml"), {}, "every-kind.yaml");
  compare(goldens / "every-kind-docker.html", report_page(every.report(nullptr, "docker")));
  compare(goldens / "every-kind-docker.json", report_json(every.report(nullptr, "docker")));
  const core::ManifestDiff change = some_change();
  const Report wider = server(R"("fs:write:/srv/**","env:inject:KEY")").report(&change);
  compare(goldens / "wider.html", report_page(wider));
  compare(goldens / "wider.json", report_json(wider));
}

}  // namespace
}  // namespace capgate::review
