// capgate diff of a manifest with what compile printed for it.
#include "cli/diff_artifact.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/base64.h"
#include "base/digest.h"
#include "base/text.h"
#include "support/diff_cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::Json;
using support::Part;
using support::Ran;
using support::server;
using support::Words;
using support::words_of_targets;

constexpr const char* no_cause = "no capability of the manifest causes this";

class DiffArtifact : public support::DiffTest {
 protected:
  void expect_same(const Compared& compared) const {
    EXPECT_EQ(compared.code, Exit::ok);
    EXPECT_EQ(compared.json["changed"], false) << compared.json.dump();
    EXPECT_EQ(compared.json["wider"], false);
  }
  // An artifact that grants more: wider as the new side, narrower as the old one.
  void expect_wider_one_way(const Json& artifact, const std::string& part,
                            const std::string& shown) const {
    file("changed.json", artifact);
    const auto wider = compare({"notes.json", "changed.json"});
    EXPECT_EQ(wider.code, Exit::widened);
    EXPECT_EQ(wider.json["changed"], true);
    EXPECT_EQ(wider.json["wider"], true);
    EXPECT_EQ(parts(wider.json), (std::vector<Part>{{"widened", part, shown, no_cause}}));
    const auto narrower = compare({"changed.json", "notes.json"});
    EXPECT_EQ(narrower.code, Exit::ok);
    EXPECT_EQ(narrower.json["changed"], true);
    EXPECT_EQ(narrower.json["wider"], false);
    EXPECT_EQ(parts(narrower.json), (std::vector<Part>{{"narrowed", part, shown, no_cause}}));
  }
  // A change whose effect is unknown counts as wider on either side.
  void expect_differs(const Json& artifact, const std::string& part) const {
    file("changed.json", artifact);
    for (const Words& pair :
         {Words{"notes.json", "changed.json"}, Words{"changed.json", "notes.json"}}) {
      const auto [code, json] = compare(pair);
      EXPECT_EQ(code, Exit::widened);
      EXPECT_EQ(json["wider"], true);
      const auto found = parts(json, {"differs", "widened"});
      EXPECT_NE(std::ranges::find(found, part, &Part::part), found.end()) << json.dump();
    }
  }
  [[nodiscard]] static Json with_bind(Json artifact, const std::string& target = "/home") {
    artifact["argv"].insert(0, {"--bind", "/home", target});
    return artifact;
  }
};

TEST_F(DiffArtifact, ACompiledArtifactIsTheSameForEveryTarget) {
  const Words listed = column(run({"targets", "--json"}).json(), "name");
  std::set<std::string> names;
  for (const auto& [target, words] : words_of_targets()) {
    SCOPED_TRACE(target);
    names.insert(target);
    const Json artifact = compile_accepting(target, words);
    file("artifact.json", artifact);
    expect_same(compare({"artifact.json", "notes.json"}));
    Words expected = {"notes.json", "artifact.json"};
    const Json& options = artifact["provenance"]["options"];
    for (std::size_t i = 0; i < options.size(); ++i) {
      const Json& value = options[i];
      expected.insert(
          expected.end(),
          {"--expect",
           options.keys()[i] + " " + (value.is(Json::Kind::string) ? value.text() : value.dump())});
    }
    for (const Json& capability : artifact["unenforced"].items()) {
      expected.insert(expected.end(), {"--expect", "unenforced " + capability.text()});
    }
    expect_same(compare(expected));
  }
  EXPECT_EQ(names, (std::set<std::string>(listed.begin(), listed.end())));
}

TEST_F(DiffArtifact, WordsThatWereAddedByHandAreFound) {
  Json artifact = compile();
  artifact["argv"].insert(artifact["argv"].index_of("--chdir"), {"--bind", "/home", "/home"});
  expect_wider_one_way(artifact, "argv", "--bind /home /home");
}

TEST_F(DiffArtifact, EntriesThatWereAddedByHandAreFound) {
  const Json host =
      Json::object({{"host", "evil.example"}, {"port", 443}, {"blockPrivate", false}});
  struct Row {
    std::string part;
    Json entry;
  };
  for (const Row& row : {Row{"egress", host}, Row{"envInjections", "OTHER"},
                         Row{"unenforced", "fs:read:/srv/notes/**"}}) {
    Json artifact = compile();
    artifact[row.part].push_back(row.entry);
    expect_wider_one_way(artifact, row.part,
                         row.entry.is(Json::Kind::string) ? row.entry.text() : row.entry.dump());
  }
}

TEST_F(DiffArtifact, AMountThatWasAddedToAPlanIsFound) {
  Json artifact = compile({"--target", "plan"});
  const Json mount = Json::object({{"kind", "bind"}, {"target", "/home"}, {"access", "write"}});
  artifact["plan"]["mounts"].push_back(mount);
  expect_wider_one_way(artifact, "plan mounts", mount.dump());
}

TEST_F(DiffArtifact, OneByteOfTheFilterDiffers) {
  Json artifact = compile();
  std::vector<Json>& descriptors = artifact["fds"].items();
  const auto filter = std::ranges::find_if(
      descriptors, [](const Json& each) { return each["purpose"] == "seccomp"; });
  ASSERT_NE(filter, descriptors.end());
  std::string code = decode_base64((*filter)["base64"].text()).value();
  char& byte = code.at(code.size() - 8);
  byte = static_cast<char>(byte ^ 1);
  (*filter)["base64"] = base64(code);
  expect_differs(artifact, "descriptor seccomp");
  const Ran done = diff({"notes.json", "changed.json"});
  EXPECT_TRUE(has(done.out.substr(0, done.out.find('\n')), "cannot be judged"));
  EXPECT_TRUE(has(done.out, "Differs, and nobody can say which way:"));
}

TEST_F(DiffArtifact, AChangeOfUnknownEffectCountsAsWider) {
  const auto remove_option = [](Json& artifact) {
    artifact["argv"].take(artifact["argv"].index_of("--unshare-net"));
  };
  const auto add_dashes = [](Json& artifact) { artifact["argv"].push_back("--"); };
  const auto add_hook = [](Json& artifact) { artifact["hook"] = Words{"/bin/sh"}; };
  for (const auto& [change, part] :
       {std::pair<std::function<void(Json&)>, std::string>(remove_option, "argv"),
        std::pair<std::function<void(Json&)>, std::string>(add_dashes, "argv"),
        std::pair<std::function<void(Json&)>, std::string>(add_hook, "hook")}) {
    Json artifact = compile();
    change(artifact);
    file("changed.json", artifact);
    const auto [code, json] = compare({"notes.json", "changed.json"});
    EXPECT_EQ(code, Exit::widened);
    EXPECT_EQ(json["wider"], true);
    EXPECT_EQ(column(json["servers"][0]["parts"], "part"), Words{part});
  }
}

TEST_F(DiffArtifact, TheSameWordsInAnotherOrderDiffer) {
  Json artifact = compile();
  Json& argv = artifact["argv"];
  const std::size_t at = argv.index_of("--tmpfs");
  const Json option = argv.take(at);
  const Json value = argv.take(at);
  argv.insert(0, {option, value});
  expect_differs(artifact, "argv");
}

TEST_F(DiffArtifact, TwoWordsAreNotOneWordWithASpace) {
  Json artifact = compile();
  Json& argv = artifact["argv"];
  const std::size_t at = argv.index_of("/srv/notes");
  argv.take(at);
  argv[at] = "/srv/notes /srv/notes";
  expect_differs(artifact, "argv");
}

// Below a directory that may be written, a read-only mount takes something away.
TEST_F(DiffArtifact, AMountThatCoveredAnotherIsMissed) {
  file("over.json", server({"fs:write:/srv/**", "fs:read:/srv/notes/**"}));
  Json artifact = compile({}, "over.json");
  artifact["argv"].insert(artifact["argv"].index_of("--chdir"),
                          {"--ro-bind", "/dev/null", "/srv/key"});
  file("masked.json", artifact);
  const auto [code, json] = compare({"masked.json", "over.json"});
  EXPECT_EQ(code, Exit::widened);
  EXPECT_EQ(column(json["servers"][0]["parts"], "kind"), Words{"differs"});
}

TEST_F(DiffArtifact, ALineOfAFileDiffers) {
  Json artifact = compile({"--target", "systemd", "--", "/usr/bin/node"});
  Json& service = artifact["files"][1];
  std::string kept;
  for (const std::string_view line : split(service["contents"].text(), '\n')) {
    if (!line.starts_with("NoNewPrivileges=")) kept += std::string(line) + "\n";
  }
  kept.pop_back();
  EXPECT_LT(kept.size(), service["contents"].text().size());
  service["contents"] = kept;
  expect_differs(artifact, "file " + service["name"].text());
}

TEST_F(DiffArtifact, FilesInADirectoryAreComparedByTheirHashes) {
  Json artifact = compile({"--target", "systemd", "-o", path("units"), "--", "/usr/bin/node"});
  file("artifact.json", artifact);
  const auto same = compare({"artifact.json", "notes.json"});
  expect_same(same);
  EXPECT_TRUE(has(same.json["notes"].dump(), "they were not read"));
  artifact["files"][1]["sha256"] = std::string(64, '0');
  expect_differs(artifact, "file " + artifact["files"][1]["name"].text());
}

TEST_F(DiffArtifact, AManifestThatAsksForMoreNamesItsCapability) {
  file("artifact.json", compile());
  Json more = manifest();
  more["tools"].push_back(Json::parse(
      R"({"name": "write", "capabilities": ["fs:write:/srv/out/**", "net:connect:b.example:443"]})"));
  file("more.json", more);
  const std::set<std::pair<std::string, std::string>> expected = {
      {"argv", "fs:write:/srv/out/**"}, {"egress", "net:connect:b.example:443"}};
  const auto causes = [&](const Json& json, const std::string& kind) {
    std::set<std::pair<std::string, std::string>> out;
    for (const Part& part : parts(json, {kind})) out.emplace(part.part, part.cause);
    return out;
  };
  const auto wider = compare({"artifact.json", "more.json"});
  EXPECT_EQ(wider.code, Exit::widened);
  EXPECT_EQ(wider.json["wider"], true);
  EXPECT_EQ(causes(wider.json, "widened"), expected);
  for (const Json& part : wider.json["servers"][0]["parts"].items()) {
    if (part["kind"] != "widened") continue;
    EXPECT_TRUE(part["place"].text().starts_with("more.json:1:")) << part.dump();
    EXPECT_TRUE(has(part["place"].text(), "(write)"));
  }
  const auto told = parts(wider.json, {"told"});
  EXPECT_NE(std::ranges::find(told, "policyHash", &Part::part), told.end());
  const auto narrower = compare({"more.json", "artifact.json"});
  EXPECT_EQ(narrower.code, Exit::ok);
  EXPECT_EQ(narrower.json["wider"], false);
  EXPECT_EQ(causes(narrower.json, "narrowed"), expected);
}

TEST_F(DiffArtifact, AManifestThatAsksForLess) {
  Json less = manifest();
  less["serverCapabilities"] = Json::array({});
  file("less.json", less);
  const auto names_notes = [&](const Json& json, const std::string& kind) {
    const auto all = parts(json, {kind});
    return std::ranges::any_of(all, [](const Part& part) {
      return (part.part + part.shown + part.cause).find("/srv/notes") != std::string::npos;
    });
  };
  for (const std::string target : {"apparmor", "bwrap", "docker", "plan", "systemd"}) {
    SCOPED_TRACE(target);
    file("artifact.json", compile_accepting(target, words_of_targets().at(target)));
    const auto narrower = compare({"artifact.json", "less.json"});
    EXPECT_EQ(narrower.code, Exit::ok);
    EXPECT_EQ(narrower.json["wider"], false);
    EXPECT_EQ(narrower.json["changed"], true);
    EXPECT_TRUE(names_notes(narrower.json, "narrowed")) << narrower.json.dump();
    const auto wider = compare({"less.json", "artifact.json"});
    EXPECT_EQ(wider.code, Exit::widened);
    EXPECT_EQ(wider.json["wider"], true);
    EXPECT_TRUE(names_notes(wider.json, "widened")) << wider.json.dump();
  }
}

TEST_F(DiffArtifact, AnotherTextOrCompilerIsTold) {
  Json artifact = compile();
  artifact["provenance"]["compiler"] = "capgate 0.0.1";
  file("artifact.json", artifact);
  Json other = manifest();
  other["version"] = "2";
  file("other.json", other);
  const auto [code, json] = compare({"artifact.json", "other.json"});
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(json["changed"], true);
  EXPECT_EQ(json["wider"], false);
  EXPECT_EQ(column(json["servers"][0]["parts"], "kind"), (Words{"told", "told"}));
  EXPECT_EQ(column(json["servers"][0]["parts"], "part"), (Words{"manifestHash", "compiler"}));
}

TEST_F(DiffArtifact, OptionsAndAcceptedGapsAreTold) {
  file("limited.json", server({"limit:memory:512M"}));
  file("artifact.json", compile({"--accept-unenforced", "limit:memory:512M"}, "limited.json"));
  const Ran done = diff({"artifact.json", "limited.json"});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_TRUE(has(done.err, "taken as accepted: limit:memory:512M"));
  file("artifact.json", compile({"--target", "docker", "--user", "0:0"}));
  EXPECT_TRUE(has(diff({"artifact.json", "notes.json"}).err, "user 0:0"));
}

TEST_F(DiffArtifact, ValidatorsAreThoseOfTheArtifact) {
  file("validators.json", R"({"validators": {"data.stays": "the host has no other network"}})");
  file("artifact.json", compile({"--validators", "validators.json"}));
  expect_same(compare({"artifact.json", "notes.json"}));
}

TEST_F(DiffArtifact, OneToolAndSealing) {
  Json sealed = manifest();
  sealed["tools"] = Json::parse(R"([
    {"name": "fetch", "capabilities": ["net:connect:api.example.com:443", "env:inject:TOKEN"]},
    {"name": "other", "capabilities": ["fs:read:/srv/other/**"]}])");
  file("sealed.json", sealed);
  file("artifact.json", compile({"--target", "plan", "--tool", "fetch", "--seal"}, "sealed.json"));
  expect_same(compare({"artifact.json", "sealed.json"}));
}

TEST_F(DiffArtifact, VariablesAreBoundAsTheyWere) {
  file("home.json", server({"fs:read:${HOME}/notes/**", "fs:read:${ROOT}/**"}));
  file("artifact.json",
       compile({"--set", "HOME=/home/alice", "--set", "ROOT=/srv/root"}, "home.json"));
  expect_same(compare({"artifact.json", "home.json", "--set", "ROOT=/srv/root"}));
  const auto [code, json] = compare({"artifact.json", "home.json", "--set", "ROOT=/srv/other"});
  EXPECT_EQ(code, Exit::widened);
  EXPECT_EQ(json["wider"], true);
  EXPECT_EQ(diff({"artifact.json", "home.json"}).code, Exit::compile_error);
}

TEST_F(DiffArtifact, TwoArtifacts) {
  const Json artifact = compile();
  file("a.json", artifact);
  expect_same(compare({"a.json", "a.json"}));
  file("b.json", with_bind(artifact));
  const auto wider = compare({"a.json", "b.json"});
  EXPECT_EQ(wider.code, Exit::widened);
  EXPECT_EQ(parts(wider.json), (std::vector<Part>{{"widened", "argv", "--bind /home /home", ""}}));
  file("docker.json", compile({"--target", "docker"}));
  const auto other = compare({"a.json", "docker.json"});
  EXPECT_EQ(other.code, Exit::widened);
  EXPECT_EQ(other.json["wider"], true);
}

TEST_F(DiffArtifact, OtherFormats) {
  file("changed.json", with_bind(compile(), "/home`<img>"));
  const Ran text = diff({"notes.json", "changed.json"});
  EXPECT_EQ(text.code, Exit::widened);
  EXPECT_EQ(text.out,
            "This change lets the server \"notes\" do more\nWidened:\n"
            "  + argv: --bind /home /home`<img>\n"
            "      no capability of the manifest causes this\n");
  const Ran markdown = diff({"notes.json", "changed.json", "--markdown"});
  EXPECT_EQ(markdown.code, Exit::widened);
  EXPECT_TRUE(has(markdown.out,
                  "### What is there now and was not before\n\n"
                  "- new: ``argv: --bind /home /home`<img>``"));
  const Json sarif = diff({"notes.json", "changed.json", "--sarif"}).json();
  ASSERT_EQ(sarif["runs"][0]["results"].size(), 1U);
  const Json& result = sarif["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "DIFF_ARTIFACT");
  EXPECT_EQ(result["level"], "error");
  EXPECT_TRUE(has(result["message"]["text"].text(), "/home"));
}

TEST_F(DiffArtifact, RefusesWhatItCannotCompare) {
  const Json artifact = compile();
  file("artifact.json", artifact);
  EXPECT_EQ(diff({"artifact.json", "/dev/null"}).code, Exit::unreadable);
  const auto options = [](std::string_view text) { return Json::parse(text); };
  for (const auto& [key, value] :
       {std::pair<std::string, Json>("target", "nothing"),
        std::pair<std::string, Json>("options", options(R"({"arch": "x86_64", "odd": 1})")),
        std::pair<std::string, Json>("options", options(R"({"arch": "vax"})")),
        std::pair<std::string, Json>("options",
                                     options(R"({"arch": "x86_64", "user": "root"})"))}) {
    Json odd = artifact;
    odd["provenance"][key] = value;
    file("odd.json", odd);
    const Ran done = diff({"odd.json", "notes.json"});
    EXPECT_EQ(done.code, Exit::unreadable) << done;
    EXPECT_EQ(done.out, "");
  }
  file("unheld.json", server({"limit:memory:512M"}));
  const Ran done = diff({"artifact.json", "unheld.json"});
  EXPECT_EQ(done.code, Exit::compile_error) << done;
  EXPECT_TRUE(has(done.err, "cannot be compiled as artifact.json was, for bwrap"));
}

}  // namespace
}  // namespace capgate::cli
