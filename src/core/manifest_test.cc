#include "core/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "support/manifests.h"
#include "text/yaml.h"

namespace capgate::core {
namespace {

using support::read_manifest;
using support::Strings;

// Each mistake as CODE@"what stands there", in the order reported.
Strings mistakes_in(const std::string& source, const Bindings& bindings = {}) {
  const auto manifest = read_manifest(source, bindings);
  Strings out;
  if (manifest) return out;
  for (const Diagnostic& mistake : manifest.error()) {
    EXPECT_LE(mistake.where.end, source.size());
    EXPECT_FALSE(mistake.message.empty());
    EXPECT_FALSE(mistake.help.empty());
    out.push_back(std::string(code_name(mistake.code)) + "@" +
                  source.substr(mistake.where.begin, mistake.where.end - mistake.where.begin));
  }
  return out;
}

std::string with_tool(std::string_view tool) {
  return R"({"name":"n","version":"1","tools":[)" + std::string(tool) + "]}";
}

std::string with_capability(std::string_view json_string) {
  return with_tool(R"({"name":"t","capabilities":[)" + std::string(json_string) + "]}");
}

TEST(Manifest, KnowsToolsOwnersAndPlaces) {
  const std::string source =
      R"({"name":"n","version":"1","serverCapabilities":["clock:system"],"tools":[)"
      R"({"name":"a","capabilities":["fs:read:/w","env:read:A"]},{"name":"b","capabilities":[]}]})";
  const auto manifest = read_manifest(source);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->name, "n");
  EXPECT_EQ(manifest->version, "1");
  EXPECT_EQ(manifest->grammar, "0.1");
  EXPECT_TRUE(manifest->notes.empty());
  ASSERT_EQ(manifest->tools.size(), 2U);
  EXPECT_EQ(manifest->find_tool("b"), 1U);
  EXPECT_FALSE(manifest->find_tool("c"));
  ASSERT_EQ(manifest->declared.size(), 3U);
  const Strings owners = {"serverCapabilities", "a", "a"};
  const Strings texts = {"clock:system", "fs:read:/w", "env:read:A"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Declared& declared = manifest->declared[i];
    EXPECT_EQ(manifest->owner(declared), owners[i]);
    EXPECT_EQ(print(declared.capability), texts[i]);
    EXPECT_EQ(source.substr(declared.where.begin, declared.where.end - declared.where.begin),
              texts[i]);
  }
}

// ---- Shape -----------------------------------------------------------------------------------

TEST(Manifest, EachShapeErrorHasItsPlace) {
  struct Row {
    std::string source;
    Strings mistakes;
  };
  const std::string tools = R"("tools":[])";
  const Row table[] = {
      {"null", {"MANIFEST_SHAPE@null"}},
      {"[]", {"MANIFEST_SHAPE@[]"}},
      {"\"x\"", {"MANIFEST_SHAPE@\"x\""}},
      {"7", {"MANIFEST_SHAPE@7"}},
      {R"({"version":"1",)" + tools + "}", {"MANIFEST_SHAPE@{"}},
      {R"({"name":"","version":"1",)" + tools + "}", {"MANIFEST_SHAPE@\"\""}},
      {R"({"name":7,"version":"1",)" + tools + "}", {"MANIFEST_SHAPE@7"}},
      {R"({"name":null,"version":"1",)" + tools + "}", {"MANIFEST_SHAPE@null"}},
      {R"({"name":"a\nb","version":"1",)" + tools + "}", {R"(MANIFEST_SHAPE@"a\nb")"}},
      {R"({"name":"n",)" + tools + "}", {"MANIFEST_SHAPE@{"}},
      {R"({"name":"n","version":1.0,)" + tools + "}", {"MANIFEST_SHAPE@1.0"}},
      {R"({"name":"n","version":"1"})", {"MANIFEST_SHAPE@{"}},
      {R"({"name":"n","version":"1","tools":{}})", {"MANIFEST_SHAPE@{}"}},
      {R"({"name":"n","version":"1","tools":null})", {"MANIFEST_SHAPE@null"}},
      {with_tool("null"), {"MANIFEST_SHAPE@null"}},
      {with_tool("\"t\""), {"MANIFEST_SHAPE@\"t\""}},
      {with_tool(R"({"capabilities":[]})"), {"MANIFEST_SHAPE@{"}},
      {with_tool(R"({"name":"","capabilities":[]})"), {"MANIFEST_SHAPE@\"\""}},
      {with_tool(R"({"name":"t"})"), {"MANIFEST_SHAPE@{"}},
      {with_tool(R"({"name":"t","capabilities":null})"), {"MANIFEST_SHAPE@null"}},
      {with_tool(R"({"name":"t","capabilities":"fs:read:/w"})"), {"MANIFEST_SHAPE@\"fs:read:/w\""}},
      {with_capability("7"), {"MANIFEST_SHAPE@7"}},
      {with_capability("[\"fs:read:/w\"]"), {"MANIFEST_SHAPE@[\"fs:read:/w\"]"}},
  };
  for (const Row& row : table) EXPECT_EQ(mistakes_in(row.source), row.mistakes) << row.source;
}

TEST(Manifest, SealIsABoolean) {
  const auto with = [](std::string_view value) {
    return R"({"name":"n","version":"1","tools":[],"seal":)" + std::string(value) + "}";
  };
  for (const std::string value : {"null", "1", "\"true\"", "[]"}) {
    EXPECT_EQ(mistakes_in(with(value)), Strings{"MANIFEST_SHAPE@" + value});
  }
  EXPECT_TRUE(support::read_manifest(with("true"))->seal);
  EXPECT_FALSE(support::read_manifest(with("false"))->seal);
  EXPECT_EQ(mistakes_in(R"({"grammar":"0.0","name":"n","version":"1","tools":[],"seal":true})"),
            Strings{"GRAMMAR_FEATURE@true"});
  for (const std::string_view value : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    const auto document =
        text::parse_yaml("name: n\nversion: '1'\ntools: []\nseal: " + std::string(value) + "\n");
    ASSERT_TRUE(document) << value;
    EXPECT_EQ(parse_manifest(*document, {})->seal, to_lower(value) == "true") << value;
  }
}

TEST(Manifest, D26ServerCapabilitiesAreAListOrAbsent) {
  const auto with = [](std::string_view value) {
    return R"({"name":"n","version":"1","tools":[],"serverCapabilities":)" + std::string(value) +
           "}";
  };
  for (const std::string value : {"\"\"", "0", "false", "{}", "true", "\"fs:read:/w\"", "1.5"}) {
    EXPECT_EQ(mistakes_in(with(value)), Strings{"MANIFEST_SHAPE@" + value});
  }
  EXPECT_EQ(mistakes_in(with("[1]")), Strings{"MANIFEST_SHAPE@1"});
  EXPECT_EQ(mistakes_in(with("null")), Strings{});
  EXPECT_EQ(mistakes_in(with("[]")), Strings{});
}

TEST(Manifest, ReportsAllMistakesInTheOrderOfTheText) {
  const std::string source =
      R"({"grammar":7,"name":"","tools":[)"
      R"({"name":"t","capabilities":["fs:read:w","fs:read:/w",5,"net:connect:a:0","fs:read:/"]},)"
      R"("x",{"name":"t","capabilites":[]}],"serverCapabilities":["gpu:x:y"]})";
  EXPECT_EQ(
      mistakes_in(source),
      (Strings{"MANIFEST_SHAPE@{", "MANIFEST_SHAPE@7", "MANIFEST_SHAPE@\"\"", "CAP_FS_RELATIVE@w",
               "MANIFEST_SHAPE@5", "CAP_NET_PORT@0", "CAP_SCOPE_REFUSED@fs:read:/",
               "MANIFEST_SHAPE@\"x\"", "MANIFEST_SHAPE@{", "MANIFEST_DUPLICATE_TOOL@\"t\"",
               "MANIFEST_UNKNOWN_KEY@\"capabilites\"", "CAP_UNKNOWN_KIND@gpu"}));
}

TEST(Manifest, PlacesInsideAStringFollowItsEscapes) {
  EXPECT_EQ(mistakes_in(with_capability(R"("fs:read:\/a\/..\/b")")), Strings{"CAP_FS_PATH@.."});
  EXPECT_EQ(mistakes_in(with_capability(R"("net:connect:\u0061:\u0030")")),
            Strings{R"(CAP_NET_PORT@\u0030)"});
  EXPECT_EQ(mistakes_in(with_capability(R"("fs:read:/a\u0000b")")),
            Strings{R"(CAP_FS_PATH@\u0000)"});
}

// ---- Keys and names --------------------------------------------------------------------------

TEST(Manifest, AKeyCloseToAKnownOneIsAMistake) {
  const std::string rest = R"("name":"n","version":"1","tools":[])";
  for (const std::string key : {"tool", "Tools", "servercapabilities", "gramar", "Version"}) {
    EXPECT_EQ(mistakes_in("{\"" + key + "\":[]," + rest + "}"),
              Strings{"MANIFEST_UNKNOWN_KEY@\"" + key + "\""});
  }
  EXPECT_EQ(mistakes_in(with_tool(R"({"name":"t","capabilities":[],"capability":[]})")),
            Strings{"MANIFEST_UNKNOWN_KEY@\"capability\""});
}

TEST(Manifest, OtherKeysAreNotedOrKnown) {
  const auto noted = read_manifest(
      R"({"name":"n","version":"1","vendor":"acme","tools":[{"name":"t","capabilities":[],"xyz":1}]})");
  ASSERT_TRUE(noted);
  ASSERT_EQ(noted->notes.size(), 2U);
  EXPECT_TRUE(noted->notes[0].contains("\"vendor\""));
  EXPECT_TRUE(noted->notes[1].contains("\"xyz\""));
  const auto known = read_manifest(
      R"({"$schema":"s","description":"d","name":"n","version":"1","_meta":{},"tools":[
         {"name":"t","title":"T","description":"d","inputSchema":{},"outputSchema":{},
          "annotations":{},"icons":[],"_meta":{},"capabilities":[]}]})");
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->notes.empty());
}

TEST(Manifest, ToolNamesAreUnique) {
  EXPECT_EQ(mistakes_in(R"({"name":"n","version":"1","tools":[{"name":"b","capabilities":[]},
                          {"name":"a","capabilities":[]},{"name":"b","capabilities":[]},
                          {"name":"b","capabilities":[]},{"name":"B","capabilities":[]}]})"),
            (Strings{"MANIFEST_DUPLICATE_TOOL@\"b\"", "MANIFEST_DUPLICATE_TOOL@\"b\""}));
  // Tools without a name are one mistake each, not duplicates of each other.
  EXPECT_EQ(mistakes_in(R"({"name":"n","version":"1","tools":[{"name":"","capabilities":[]},
                          {"name":"","capabilities":[]}]})"),
            (Strings{"MANIFEST_SHAPE@\"\"", "MANIFEST_SHAPE@\"\""}));
}

// ---- Grammar versions ------------------------------------------------------------------------

std::string with_grammar(std::string_view grammar, std::string_view capability) {
  return format(
      R"({{"grammar":{},"name":"n","version":"1","tools":[{{"name":"t","capabilities":["{}"]}}]}})",
      grammar, capability);
}

TEST(Manifest, KnowsItsGrammars) {
  EXPECT_EQ(mistakes_in(with_grammar("\"0.1\"", "limit:pids:5")), Strings{});
  EXPECT_EQ(mistakes_in(with_grammar("\"0.0\"", "fs:read:/w")), Strings{});
  EXPECT_EQ(read_manifest(with_grammar("\"0.0\"", "fs:read:/w"))->grammar, "0.0");
  for (const std::string grammar : {"\"9.9\"", "\"\"", "\"0.10\"", "\"0.1 \"", "\"v0.1\""}) {
    EXPECT_EQ(mistakes_in(with_grammar(grammar, "fs:read:/w")),
              Strings{"GRAMMAR_VERSION_MISMATCH@" + grammar});
  }
  for (const std::string grammar : {"0.1", "null", "[]"}) {
    EXPECT_EQ(mistakes_in(with_grammar(grammar, "fs:read:/w")),
              Strings{"MANIFEST_SHAPE@" + grammar});
  }
}

TEST(Manifest, TheEarlierGrammarRefusesWhatIsNew) {
  for (const std::string text :
       {"limit:pids:5", "net:listen:80", "net:connect:*.a.com:443", "ipc:connect:self",
        "env:inject:T?to=a.com:443", "ipc:connect:dbus:session", "net:connect:[::1]:80"}) {
    EXPECT_EQ(mistakes_in(with_grammar("\"0.0\"", text)),
              Strings{"GRAMMAR_FEATURE@\"" + text + "\""});
    EXPECT_EQ(mistakes_in(with_grammar("\"0.1\"", text)), Strings{});
  }
}

// ---- Variables and YAML ----------------------------------------------------------------------

TEST(Manifest, AVariableWithSeveralValuesDeclaresSeveralCapabilities) {
  const Bindings bindings = {{.name = "R", .values = {"/a", "/b"}}};
  const auto manifest = read_manifest(with_capability("\"fs:read:${R}/**\""), bindings);
  ASSERT_TRUE(manifest);
  ASSERT_EQ(manifest->declared.size(), 2U);
  EXPECT_EQ(print(manifest->declared[1].capability), "fs:read:/b/**");
  EXPECT_EQ(manifest->declared[0].where, manifest->declared[1].where);
}

TEST(Manifest, TheScopeOfEveryValueIsChecked) {
  const Bindings bindings = {{.name = "R", .values = {"/a", "/etc", "/"}}};
  EXPECT_EQ(mistakes_in(with_capability("\"fs:read:${R}\""), bindings),
            (Strings{"CAP_SCOPE_REFUSED@fs:read:${R}", "CAP_SCOPE_REFUSED@fs:read:${R}"}));
  EXPECT_EQ(mistakes_in(with_capability("\"fs:read:/data/me\""),
                        {{.name = "HOME", .values = {"/data/me"}}}),
            Strings{"CAP_SCOPE_REFUSED@fs:read:/data/me"});
}

TEST(Manifest, ReadsYaml) {
  const auto yaml = text::parse_yaml(
      "name: n\nversion: 1.2.3\n# a comment\nserverCapabilities:\ntools:\n- name: t\n"
      "  capabilities:\n  - fs:read:/w/**\n  - \"net:connect:a.com:443\"\n");
  ASSERT_TRUE(yaml);
  const auto manifest = parse_manifest(*yaml, {});
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->version, "1.2.3");
  ASSERT_EQ(manifest->declared.size(), 2U);
  EXPECT_EQ(print(manifest->declared[0].capability), "fs:read:/w/**");
}

TEST(Manifest, PlacesInYamlAreExact) {
  const std::string source =
      "name: n\nversion: 1.2\ntools:\n- name: t\n  capabilities: [fs:read:w, 7]\n";
  const auto yaml = text::parse_yaml(source);
  ASSERT_TRUE(yaml);
  const auto manifest = parse_manifest(*yaml, {});
  ASSERT_FALSE(manifest);
  Strings places;
  for (const Diagnostic& mistake : manifest.error()) {
    places.push_back(source.substr(mistake.where.begin, mistake.where.end - mistake.where.begin));
  }
  EXPECT_EQ(places, (Strings{"1.2", "w", "7"}));
  EXPECT_TRUE(manifest.error()[0].help.contains("\"1.2\""));
}

}  // namespace
}  // namespace capgate::core
