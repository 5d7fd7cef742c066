// capgate diff of a manifest with an artifact that an attacker changed so that it looks like less.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "support/changed_artifact.h"

namespace capgate::cli {
namespace {

using support::Json;
using support::lines_of;
using support::Part;
using support::replaced;
using support::text_of;
using support::Words;

using Lines = std::function<void(Words&)>;

class DiffAttack : public support::ChangedArtifactTest {
 protected:
  // The lines of the unit up to its ExecStart=, and the lines after it.
  struct Unit {
    Made made;
    Words head, tail;
    [[nodiscard]] Json& file() { return made.artifact["files"][1]; }
  };

  [[nodiscard]] Unit systemd_unit() const {
    Unit unit{.made = made("systemd"), .head = {}, .tail = {}};
    Words* part = &unit.head;
    for (std::string& line : lines_of(unit.file()["contents"])) {
      const bool is_last = part == &unit.head && line.starts_with("ExecStart=");
      part->push_back(std::move(line));
      if (is_last) part = &unit.tail;
    }
    EXPECT_FALSE(unit.tail.empty());
    return unit;
  }

  void expect_found_with_line(const std::string& line) const {
    SCOPED_TRACE(line);
    Made changed = made("apparmor");
    Json& contents = changed.artifact["files"][0]["contents"];
    contents = replaced(contents.text(), "\n}", "\n" + line + "\n}");
    expect_found(changed);
  }
};

TEST_F(DiffAttack, AKeyIsNotAFile) {
  Unit unit = systemd_unit();
  unit.file()["contents"] = text_of(unit.head);
  Json& artifact = unit.made.artifact;
  artifact.insert(artifact.index_of_key("files") + 1, "file " + unit.file()["name"].text(),
                  unit.tail);
  expect_found(unit.made);
}

TEST_F(DiffAttack, AFileAppearsOnce) {
  Unit unit = systemd_unit();
  const Words lines = lines_of(unit.file()["contents"]);
  ASSERT_GT(lines.size(), 2U);
  const Json first = Json::object(
      {{"name", unit.file()["name"]}, {"contents", text_of({lines.begin(), lines.begin() + 2})}});
  unit.file()["contents"] = text_of({lines.begin() + 2, lines.end()});
  unit.made.artifact["files"].insert(1, first);
  expect_found(unit.made);
}

TEST_F(DiffAttack, NetworkPoliciesCannotBecomeAKey) {
  Made changed = made("kubernetes");
  Json& policies = changed.artifact["files"][0];
  Words lines = lines_of(policies["contents"]);
  const auto last = std::find(lines.rbegin(), lines.rend(), "---");
  ASSERT_NE(last, lines.rend());
  const auto cut = last.base() - 1;
  const Words tail(cut, lines.end());
  lines.erase(cut, lines.end());
  policies["contents"] = text_of(lines);
  const std::string name = "file " + policies["name"].text();
  changed.artifact.insert(0, "argv", Json::array({}));
  changed.artifact[name] = tail;
  expect_found(changed);
}

TEST_F(DiffAttack, ADescriptorCannotBecomeAKey) {
  Made changed = made("bwrap");
  const Json gone = changed.artifact["fds"].take(0);
  changed.artifact["descriptor " + gone["purpose"].text()] = Words{"fd " + gone["fd"].text()};
  expect_found(changed);
}

TEST_F(DiffAttack, APartOfAPlanCannotBecomeAKey) {
  const Made whole = made("plan");
  Made changed = whole;
  const Json hidden = changed.artifact["plan"].take("hidden");
  changed.artifact["plan hidden"] = hidden;
  expect_found(changed);
  changed.artifact.take("plan hidden");
  changed.artifact["plan"]["hidden "] = hidden;
  expect_found(changed);
}

TEST_F(DiffAttack, ALineIsNotAHash) {
  Made changed = made("seccomp");
  Json& files = changed.artifact["files"];
  const Json second = files.take(1);
  std::string shown;
  for (const Part& part : judge(changed.artifact, changed.expected).parts) {
    if (part.part == "file seccomp.bpf") shown = part.shown;
  }
  EXPECT_TRUE(shown.starts_with("contents sha256:")) << shown;
  files.insert(1, Json::object({{"name", "seccomp.bpf"}, {"contents", shown + "\n"}}));
  expect_found(changed);
}

TEST_F(DiffAttack, AnEmptyMemberIsAMember) {
  const Made whole = made("apparmor");
  for (const auto& [key, value] : {std::pair<std::string, Json>("hooks", Json::array({})),
                                   std::pair<std::string, Json>("hooks", Json::object({})),
                                   std::pair<std::string, Json>("argv", Json::array({}))}) {
    Made changed = whole;
    changed.artifact[key] = value;
    expect_found(changed);
  }
  Made changed = made("bwrap");
  changed.artifact["provenance"]["hook"] = "x";
  expect_found(changed);
}

TEST_F(DiffAttack, AMissingMemberIsFound) {
  Made changed = made("bwrap");
  changed.artifact.take("egress");
  expect_found(changed);
}

TEST_F(DiffAttack, AnExtraWordIsAProgram) {
  struct Row {
    std::string target, before;
    std::vector<Json> words;
  };
  const std::vector<Json> image = {"--cap-drop", "CHOWN", "evil/image", "sh"};
  for (const Row& row :
       {Row{"docker", "--cap-drop", image},
        Row{"docker", "--cap-drop", {"--read-only", "evil/image"}},
        Row{"docker", "--cap-drop", {"--cap-drop", "--privileged"}},
        Row{"docker", "--cap-drop", {"--read-only=false"}}, Row{"podman", "--cap-drop", image},
        Row{"bwrap", "--proc", {"--remount-ro", "/usr", "/bin/sh", "/srv/notes/x.sh"}},
        Row{"bwrap", "--unshare-user", {"--cap-drop", "CAP_CHOWN", "/bin/sh", "/srv/evil.sh"}},
        Row{"bwrap", "--unshare-user", {"--unshare-net", "/bin/sh"}},
        Row{"bwrap", "--", {"--seccomp", "9"}}, Row{"bwrap", "--chdir", {"--clearenv"}}}) {
    SCOPED_TRACE(row.target + " " + row.words[0].text());
    Made changed = made(row.target);
    Json& argv = changed.artifact["argv"];
    const std::size_t at = argv.index_of(row.before);
    ASSERT_LT(at, argv.size());
    argv.items().insert(argv.items().begin() + static_cast<std::ptrdiff_t>(at), row.words.begin(),
                        row.words.end());
    expect_found(changed);
  }
}

TEST_F(DiffAttack, ARestraintAmongTheWordsOfTheProgramIsNone) {
  Made changed = made("bwrap");
  Json& argv = changed.artifact["argv"];
  ASSERT_LT(argv.index_of("--"), argv.size());
  argv.insert(argv.index_of("--") + 1, "--unshare-net");
  expect_found(changed);
}

TEST_F(DiffAttack, ACompleteRestraintNarrows) {
  for (const auto& [target, option, value] :
       {std::tuple("bwrap", "--remount-ro", "/opt"), std::tuple("bwrap", "--cap-drop", "CAP_CHOWN"),
        std::tuple("docker", "--cap-drop", "CHOWN")}) {
    Made changed = made(target);
    changed.artifact["argv"].insert(0, {option, value});
    const Judged judged = judge(changed.artifact, changed.expected);
    EXPECT_EQ(judged.code, Exit::ok);
    ASSERT_EQ(judged.parts.size(), 1U);
    EXPECT_EQ(judged.parts[0].kind, "narrowed");
    EXPECT_EQ(judged.parts[0].part, "argv");
    EXPECT_EQ(judged.parts[0].shown, std::string(option) + " " + value);
  }
}

TEST_F(DiffAttack, ALineOfApparmorHasOneRule) {
  for (const char* line : {"  deny /x w, /** mrwkix, network, capability,",
                           R"(  deny "/x" w, "/**" mrwkix,)", "  deny", R"(  deny "/x" w #,)",
                           R"(  deny "/x\" w,)", R"(  deny "/x" w, # ,)", "deny network,"}) {
    expect_found_with_line(line);
  }
  Made changed = made("apparmor");
  Json& contents = changed.artifact["files"][0]["contents"];
  contents = replaced(contents.text(), "\n}", "\n  deny \"/x{,/,/**}\" wl,\n}");
  EXPECT_EQ(judge(changed.artifact, changed.expected).code, Exit::ok);
}

TEST_F(DiffAttack, TheOrderAndTheNumberOfLinesCount) {
  const auto append = [](const std::string& line) -> Lines {
    return [line](Words& lines) { lines.push_back(line); };
  };
  const auto prepend = [](const std::string& line) -> Lines {
    return [line](Words& lines) { lines.insert(lines.begin(), line); };
  };
  const auto move_last_to = [](std::ptrdiff_t at) -> Lines {
    return [at](Words& lines) { std::rotate(lines.begin() + at, lines.end() - 1, lines.end()); };
  };
  const Lines reverse = [](Words& lines) { std::ranges::reverse(lines); };
  const Lines swap = [](Words& lines) { std::swap(lines.at(3), lines.at(4)); };
  const Words squid = {"--egress-target", "squid"};
  const Words node = {"--", "/usr/bin/node", "a b"};
  struct Row {
    std::string target;
    Words words;
    std::size_t number;
    Lines change;
  };
  for (const Row& row :
       {Row{"systemd", node, 1, append("ExecStart=")},
        Row{"systemd", node, 1, append("BindReadOnlyPaths=")}, Row{"systemd", node, 1, reverse},
        Row{"systemd", node, 1, append("InaccessiblePaths=/x")},
        Row{"egress", squid, 0, prepend("http_access deny all")}, Row{"egress", squid, 0, reverse},
        Row{"egress", {"--egress-target", "envoy"}, 0, move_last_to(0)},
        Row{"egress", {"--egress-target", "nftables"}, 0, swap},
        Row{"seatbelt", {}, 0, append("(deny default)")},
        Row{"firejail", {}, 0, prepend("blacklist /x")}, Row{"seccomp", {}, 0, move_last_to(2)}}) {
    SCOPED_TRACE(row.target + " " + join(row.words, " "));
    Made changed = made(row.target, row.words);
    Json& contents = changed.artifact["files"][row.number]["contents"];
    Words lines = lines_of(contents);
    ASSERT_GT(lines.size(), 4U);
    row.change(lines);
    contents = text_of(lines);
    expect_found(changed);
  }
}

TEST_F(DiffAttack, ARuleBeforeAWiderOneIsMissed) {
  write_manifest(support::server(
      {"net:connect:api.example.com:443?proto=http", "net:connect:*.example.com:443?proto=tls"}));
  const Made whole = made("plan");
  const auto take = [](Json& array, const auto& is_it) {
    const auto found = std::ranges::find_if(array.items(), is_it);
    ASSERT_NE(found, array.items().end());
    array.items().erase(found);
  };
  Made changed = whole;
  take(changed.artifact["egress"],
       [](const Json& each) { return each["host"] == "api.example.com"; });
  expect_found(changed);
  changed = whole;
  take(changed.artifact["plan"]["network"]["rules"],
       [](const Json& each) { return each["capability"].text().starts_with("net:connect:api."); });
  expect_found(changed);
}

TEST_F(DiffAttack, AnArtifactThatAdmitsFewerGapsIsNotNarrower) {
  Made changed = made("firejail");
  EXPECT_GT(changed.artifact["notCovered"].size(), 0U);
  changed.artifact["notCovered"] = Json::array({});
  expect_found(changed);
}

TEST_F(DiffAttack, TwoPromisesOfOneName) {
  Made changed = made("bwrap");
  changed.artifact["assertions"].insert(
      0, Json::object({{"id", "data.stays"}, {"description", "anywhere"}}));
  expect_found(changed);
}

// ---- options that only the caller can confirm ---------------------------------------------------

TEST_F(DiffAttack, AnOptionDiffersUntilItIsExpected) {
  for (const auto& [words, shown] :
       {std::pair<Words, std::string>({"--user", "0:0"}, "user 0:0"),
        std::pair<Words, std::string>({"--writable-root"}, "writableRoot true"),
        std::pair<Words, std::string>({"--egress-dir", "/home/me"}, "egressDir /home/me"),
        std::pair<Words, std::string>({"--set", "HOME=/odd"}, "home /odd")}) {
    SCOPED_TRACE(shown);
    file("artifact.json", compile_accepting("docker", words));
    const auto [code, json] = compare({"notes.json", "artifact.json"});
    EXPECT_EQ(code, Exit::widened);
    const std::vector<Part> found = parts(json);
    ASSERT_EQ(found.size(), 1U) << json.dump();
    EXPECT_EQ(found[0].kind + " " + found[0].part, "differs options");
    EXPECT_EQ(found[0].shown, shown);
    const auto expected = compare({"notes.json", "artifact.json", "--expect", shown});
    EXPECT_EQ(expected.code, Exit::ok);
    EXPECT_EQ(expected.json["changed"], false);
    EXPECT_EQ(diff({"artifact.json", "notes.json"}).code, Exit::ok);
  }
  const Words pair = {"notes.json", "artifact.json"};  // with HOME=/odd
  EXPECT_EQ(diff(support::joined(pair, {"--set", "HOME=/odd"})).code, Exit::ok);
  EXPECT_EQ(diff(support::joined(pair, {"--set", "HOME=/other"})).code, Exit::widened);
}

TEST_F(DiffAttack, AnAcceptedGapDiffersUntilItIsExpected) {
  write_manifest(support::server({"limit:memory:512M"}));
  file("artifact.json", compile({"--accept-unenforced", "limit:memory:512M"}));
  const Words pair = {"notes.json", "artifact.json"};
  EXPECT_EQ(diff(pair).code, Exit::widened);
  EXPECT_EQ(diff(support::joined(pair, {"--expect", "unenforced limit:memory:512M"})).code,
            Exit::ok);
}

TEST_F(DiffAttack, TwoArtifactsWithOtherOptions) {
  file("a.json", compile({"--target", "docker"}));
  file("b.json", compile({"--target", "docker", "--user", "0:0", "--writable-root"}));
  const auto [code, json] = compare({"a.json", "b.json"});
  EXPECT_EQ(code, Exit::widened);
  std::set<std::string> shown;
  for (const Part& part : parts(json, {"differs"})) shown.insert(part.shown);
  EXPECT_TRUE(shown.contains("user 0:0") && shown.contains("writableRoot true")) << json.dump();
  EXPECT_EQ(diff({"a.json", "b.json", "--expect", "user 0:0"}).code, Exit::usage);
  EXPECT_EQ(diff({"notes.json", "notes.json", "--expect", "user 0:0"}).code, Exit::usage);
}

}  // namespace
}  // namespace capgate::cli
