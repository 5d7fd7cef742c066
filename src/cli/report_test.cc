// capgate report as a whole command. tests/e2e/report_test.py looks at the pages in a browser.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::joined;
using support::Json;
using support::Ran;
using support::Words;

const std::string github = std::string(support::source_directory()) + "/examples/github.json";
const std::string every =
    std::string(support::source_directory()) + "/tests/golden/every-kind/manifest.yaml";

// Names and scopes that try to leave their element.
Json hostile_manifest() {
  const auto tool = [](std::string name, std::string capability) {
    return Json::object(
        {{"name", std::move(name)}, {"capabilities", Words{std::move(capability)}}});
  };
  return Json::object(
      {{"name", "</title><script>alert(0)</script>" + std::string(10000, 'W')},
       {"version", "1.0.0"},
       {"tools", Json::array({tool("<script>alert(1)</script>",
                                   "fs:read:\"/srv/<img src=x onerror=alert(1)>&amp;\""),
                              tool("\u202egnp.exe \u05e9\u05dc\u05d5\u05dd \u4f60\u597d",
                                   "fs:read:\"/srv/\u05d0/\u05d1\""),
                              tool(std::string(10000, 'x'), "net:connect:api.example.com:443"),
                              tool("\"><svg onload=alert(1)>",
                                   "assert:a.b:\"</style><script>alert(2)</script>\"")})}});
}

class ReportCommand : public support::CliTest {
 protected:
  [[nodiscard]] std::string report(const Words& words) const {
    const Ran done = run(joined({"report"}, words));
    EXPECT_EQ(done.code, Exit::ok) << done;
    EXPECT_EQ(done.err, "");
    return done.out;
  }
  [[nodiscard]] Json report_json(const Words& words) const {
    return Json::parse(report(joined(words, {"--json"})));
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ReportCommand, APageLoadsNothing) {
  for (const std::string& manifest : {github, file("h.json", hostile_manifest())}) {
    const std::string text = report({manifest});
    EXPECT_TRUE(has(text, "default-src 'none'; style-src 'sha256-"));
    for (const char* element : {"<script", "<link", "<img", "<iframe", "<object", "<base"}) {
      EXPECT_FALSE(has(text, element));
    }
    for (const char* part : {"url(", "@import"}) EXPECT_FALSE(has(text, part));
    for (const std::string_view attribute : {"src=\"", "href=\""}) {
      for (std::size_t at = text.find(attribute); at != std::string::npos;
           at = text.find(attribute, at + 1)) {
        EXPECT_EQ(text.at(at + attribute.size()), '#') << text.substr(at, 100);
      }
    }
  }
}

TEST_F(ReportCommand, PrintsData) {
  const Json data = report_json({github});
  EXPECT_EQ(data["schemaVersion"], 1);
  EXPECT_EQ(column(data["lines"], "capability"),
            (Words{"fs:write:/workspace/**", "net:connect:api.github.com:443",
                   "env:inject:GITHUB_PERSONAL_ACCESS_TOKEN"}));
  EXPECT_EQ(data["lines"][1]["origins"][0].canonical(),
            R"({"capability":"net:connect:api.github.com:443","place":"github.json:9:10",)"
            R"("tool":"create_issue"})");
  EXPECT_EQ(data["counts"].canonical(), R"({"lines":3,"notEnforced":0,"widened":0})");
}

TEST_F(ReportCommand, EveryTargetAnswers) {
  const Words names = column(run({"targets", "--json"}).json(), "name");
  EXPECT_NE(std::ranges::find(names, "docker"), names.end());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Json data = report_json({every, "--target", name});
    EXPECT_EQ(data["problems"].size(), 0U);
    EXPECT_NE(data["counts"]["notEnforced"], 0);
  }
}

TEST_F(ReportCommand, OneToolVariablesAndSealing) {
  file("v.json", R"({"name": "v", "version": "1.0.0", "tools": [
    {"name": "a", "capabilities": ["fs:read:${REPO}/**"]},
    {"name": "b", "capabilities": ["env:inject:KEY", "net:connect:a.example:443"]}]})");
  const Words words = {"v.json", "--set", "REPO=/srv/x"};
  const Json one = report_json(joined(words, {"--tool", "a"}));
  EXPECT_EQ(column(one["lines"], "capability"), Words{"fs:read:/srv/x/**"});
  EXPECT_EQ(column(one["tools"], "name"), Words{"a"});
  const Words sealed = column(report_json(joined(words, {"--seal"}))["lines"], "capability");
  EXPECT_NE(std::ranges::find(sealed, "env:inject:KEY?to=a.example:443"), sealed.end());
  // The old manifest need not use every variable of the new one, nor have its tool.
  file("o.json", R"({"name": "v", "version": "1.0.0",
    "tools": [{"name": "b", "capabilities": ["env:inject:KEY"]}]})");
  EXPECT_TRUE(has(report(joined(words, {"--tool", "a", "--against", "o.json"})), "o.json"));
}

TEST_F(ReportCommand, AnUnreadableOldManifestIsAnError) {
  EXPECT_EQ(run({"report", github, "--against", path("none.json")}).code, Exit::unreadable);
  file("bad.json", support::server({"fs:read:relative"}));
  const Ran done = run({"report", github, "--against", "bad.json"});
  EXPECT_EQ(done.code, Exit::compile_error) << done;
  EXPECT_EQ(done.out, "");
  EXPECT_TRUE(has(done.err, "CAP_FS_RELATIVE"));
}

TEST_F(ReportCommand, NothingIsWiderThanItself) {
  EXPECT_TRUE(has(report({github, "--against", github}), "= nothing wider than github.json"));
}

TEST_F(ReportCommand, WritesOneFileAndReplacesItOnlyByForce) {
  const std::string place = path("report.html");
  EXPECT_EQ(report({github, "-o", place}), "");
  const std::string written = read(place);
  EXPECT_EQ(written, report({github}));
  EXPECT_EQ(written, report({github, "-o", "-"}));
  const Ran again = run({"report", every, "-o", place});
  EXPECT_EQ(again.code, Exit::usage) << again;
  EXPECT_TRUE(has(again.err, "exists"));
  EXPECT_EQ(read(place), written);
  EXPECT_EQ(report({github, "--svg", "-o", place, "--force"}), "");
  EXPECT_TRUE(read(place).starts_with("<svg"));
  for (const auto& entry : std::filesystem::directory_iterator(directory().path())) {
    EXPECT_FALSE(has(entry.path().string(), ".new-"));
  }
}

TEST_F(ReportCommand, ReplacesOnlyARegularFile) {
  const std::string link = directory().link("link.html", file("kept.txt", "kept"));
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& place : {link, pipe, std::string("/dev/null")}) {
    const Ran done = run({"report", github, "-o", place, "--force"});
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_TRUE(has(done.err, "is no regular file"));
  }
  const Ran done = run({"report", github, "-o", directory().path(), "--force"});
  EXPECT_EQ(done.code, Exit::usage) << done;
  EXPECT_TRUE(has(done.err, "is a directory"));
  EXPECT_EQ(read(link), "kept");
}

TEST_F(ReportCommand, WrongWordsAreRefused) {
  for (const Words& words :
       {Words{"--svg", "--json"}, Words{"--target", "dokcer"}, Words{"-o", ""}}) {
    const Ran done = run(joined({"report", github}, words));
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_EQ(done.out, "");
  }
}

TEST_F(ReportCommand, TheDirectoryDoesNotChangeThePage) {
  const std::string copy = file("deep/er/github.json", read(github));
  EXPECT_EQ(report({github}), report({copy}));
}

}  // namespace
}  // namespace capgate::cli
