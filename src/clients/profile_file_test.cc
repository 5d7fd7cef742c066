#include "clients/profile_file.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "base/text.h"
#include "text/yaml.h"

namespace capgate::clients {
namespace {

using Words = std::vector<std::string>;

// The file read back as any YAML: the one entry of `servers`.
class Entry {
 public:
  explicit Entry(const Profile& profile) : text_(print_profile(profile)) {
    auto parsed = text::parse_yaml(text_);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error()[0].message) << "\n" << text_;
    if (parsed) document_ = std::make_unique<text::Document>(*std::move(parsed));
  }

  [[nodiscard]] std::string name() const { return std::string((*member()).key.text()); }
  [[nodiscard]] std::optional<text::Value> find(std::string_view key) const {
    return (*member()).value.find(key);
  }
  [[nodiscard]] Words words(std::string_view key) const {
    Words out;
    for (const text::Value each : find(key)->elements()) out.emplace_back(each.text());
    return out;
  }
  [[nodiscard]] std::uint32_t entries() const { return servers().count(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] text::Value servers() const {
    EXPECT_EQ(document_->root().count(), 1U);
    return *document_->root().find("servers");
  }
  [[nodiscard]] text::Children<text::Member>::Iterator member() const {
    return servers().members().begin();
  }

  std::string text_;
  std::unique_ptr<text::Document> document_;
};

Profile known() {
  return {.name = "files",
          .client = "Claude Desktop",
          .server = "files",
          .command = {"npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/me/a b"},
          .manifest = "catalog:filesystem",
          .variables = {{.name = "ROOTS", .values = {"/home/me/a b", "/srv"}},
                        {.name = "HOME_DIR", .values = {"/home/me"}}},
          .policy = {"fs:write:\"/home/me/a b\"/**"}};
}

TEST(ProfileFile, AKnownServerComesBackAsItWasWritten) {
  const Entry entry(known());
  EXPECT_EQ(entry.name(), "files");
  EXPECT_EQ(entry.words("command"), known().command);
  EXPECT_EQ(entry.find("manifest")->text(), "catalog:filesystem");
  const auto variables = *entry.find("variables");
  EXPECT_EQ(variables.find("ROOTS")->count(), 2U);
  EXPECT_EQ(variables.find("HOME_DIR")->text(), "/home/me");
  EXPECT_FALSE(entry.find("capabilities"));
  EXPECT_FALSE(entry.find("seal"));
  EXPECT_NE(entry.text().find("#   fs:write:\"/home/me/a b\"/**\n"), std::string::npos);
}

TEST(ProfileFile, AnUnknownServerGetsNothingAndTheNextStep) {
  const Entry entry({.name = "notes", .client = "Zed", .server = "notes", .command = {"notes"}});
  EXPECT_EQ(entry.find("capabilities")->count(), 0U);
  EXPECT_FALSE(entry.find("manifest"));
  EXPECT_NE(entry.text().find("capgate run --profile notes --trace -"), std::string::npos);
}

TEST(ProfileFile, SecretsAreNamedAndTheUnusedOnesOnlyInAComment) {
  Profile profile = known();
  profile.secrets = {"GITHUB_TOKEN"};
  profile.unused_secrets = {"OTHER_KEY"};
  profile.seal = true;
  const Entry entry(profile);
  EXPECT_EQ(entry.find("secrets")->count(), 1U);
  EXPECT_EQ(entry.find("secrets")->find("GITHUB_TOKEN")->text(), "store:GITHUB_TOKEN");
  EXPECT_EQ(entry.find("seal")->text(), "true");
  EXPECT_NE(entry.text().find("# secrets: {OTHER_KEY: \"store:OTHER_KEY\"}"), std::string::npos);
}

TEST(ProfileFile, NothingInANameOrAWordCanLeaveItsPlace) {
  const Words evil = {"a\nservers: {x: {}}",
                      "\"",
                      "\\",
                      "a\xc2\x85"
                      "b: c",
                      "x\xe2\x80\xa8servers: 1",
                      "#",
                      "\x7f\x01\x1b",
                      "\xef\xbb\xbf",
                      "\xff\xfe broken",
                      "",
                      "- a",
                      "\xe2\x80\xa9"};
  for (const std::string& word : evil) {
    Profile profile = known();
    profile.server = word;
    profile.client = word;
    profile.notes = {word};
    profile.policy = {word};
    profile.command = {word, word};
    profile.variables = {{.name = "V", .values = {word}}};
    const Entry entry(profile);
    EXPECT_EQ(entry.entries(), 1U);
    if (!word.starts_with('\xff')) {
      EXPECT_EQ(entry.words("command"), profile.command);
      EXPECT_EQ(entry.find("variables")->find("V")->text(), word);
    }
  }
}

TEST(ProfileFile, AnyWordsComeBack) {
  EXPECT_TRUE(rc::check([] {
    const auto codes = *rc::gen::container<std::vector<char32_t>>(
        rc::gen::map(rc::gen::inRange(1, 0x3000), [](int c) { return static_cast<char32_t>(c); }));
    std::string word;
    for (const char32_t code : codes) append_utf8(word, code);
    Profile profile = known();
    profile.command = {"x", word};
    profile.server = word;
    const Entry entry(profile);
    RC_ASSERT(entry.entries() == 1U);
    RC_ASSERT(entry.words("command") == profile.command);
  }));
}

TEST(ProfileFile, NamesThatYamlWouldTakeForSomethingElseAreQuoted) {
  for (const std::string name : {"true", "NO", "1.5", "null", "on", "github", "a.b-c_d", "_x"}) {
    Profile profile = known();
    profile.name = name;
    EXPECT_EQ(Entry(profile).name(), name);
  }
}

TEST(ProfileFile, AFileThatNobodyChangedIsKnown) {
  const std::string text = print_profile(known());
  EXPECT_TRUE(is_as_printed(text));
  EXPECT_FALSE(is_as_printed(text + "\n"));
  EXPECT_FALSE(is_as_printed("#\n" + text));
  EXPECT_FALSE(is_as_printed(""));
  std::string changed = text;
  changed.replace(changed.find("/srv"), 4, "/etc");
  EXPECT_FALSE(is_as_printed(changed));
}

TEST(ProfileFile, TheSamePolicyForTheSameCommand) {
  Profile other = known();
  other.name = "other";
  other.client = "Zed";
  EXPECT_TRUE(known().says_the_same(other));
  other.variables[0].values.push_back("/etc");
  EXPECT_FALSE(known().says_the_same(other));
  other = known();
  other.command.push_back("/etc");
  EXPECT_FALSE(known().says_the_same(other));
}

TEST(ProfileName, KeepsWhatItCanAndIsAlwaysValid) {
  EXPECT_EQ(profile_name("github"), "github");
  EXPECT_EQ(profile_name("My Server!"), "My-Server");
  EXPECT_EQ(profile_name("../../etc"), "etc");
  EXPECT_EQ(profile_name("@scope/name"), "scope-name");
  EXPECT_EQ(profile_name(".."), "server");
  EXPECT_EQ(profile_name("--yes"), "yes");
  EXPECT_EQ(profile_name(""), "server");
  EXPECT_EQ(profile_name("\xc3\xbc"), "server");
  EXPECT_EQ(profile_name(std::string(200, 'a')).size(), 64U);
}

TEST(PrintCommand, NoTwoCommandsLookAlike) {
  const std::vector<std::vector<std::string>> commands = {
      {"a\nb"},   {"a\\x0ab"}, {"a\\nb"},      {"a", "b"},   {"a b"},         {"'a' 'b'"},
      {"$'a'"},   {"a"},       {"$'a\\x0ab'"}, {"a\u202eb"}, {"a\\u{202e}b"}, {"a\xff"},
      {"a\\xff"}, {"a", ""},   {"a\n'b"},      {"a\n\\'b"}};
  std::set<std::string> shown;
  for (const auto& command : commands) {
    EXPECT_TRUE(shown.insert(print_command(command)).second) << print_command(command);
  }
}

TEST(PrintCommand, CutsNothingAndQuotesForAShell) {
  EXPECT_EQ(print_command({"npx", "-y", "@a/b@^1.0", "/srv"}), "npx -y @a/b@^1.0 /srv");
  EXPECT_EQ(print_command({"a b", "", "it's", "$HOME"}), "'a b' '' 'it'\\''s' '$HOME'");
  EXPECT_EQ(print_command({"a\x1b[2J'\\"}), "$'a\\x1b[2J\\'\\\\'");
  EXPECT_EQ(print_command({"\u202e\xff"}), "$'\\xe2\\x80\\xae\\xff'");
  const std::string longest(100'000, 'x');
  EXPECT_EQ(print_command({longest}), longest);
}

}  // namespace
}  // namespace capgate::clients
