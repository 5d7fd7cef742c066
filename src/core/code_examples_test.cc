// The examples in the table of codes are true: what is shown as wrong is refused with that code,
// and what is shown as right is accepted. They are what `capgate explain CODE` prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/codes.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/scope.h"
#include "support/manifests.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::core {
namespace {

// One capability, and not a sentence about several.
bool is_capability(std::string_view text) {
  constexpr std::string_view kinds[] = {
      "fs:", "net:", "exec:", "env:", "ipc:", "clock:", "limit:", "assert:"};
  const bool starts = std::ranges::any_of(kinds, [&](auto kind) { return text.starts_with(kind); });
  return starts && !text.contains(" and ") && !text.contains(" with ") && !text.contains(" for ");
}

// The code with which the string is refused, or "accepted".
std::string_view verdict(std::string_view text) {
  const auto parsed = parse_capability(text, {});
  if (!parsed) return code_name(parsed.error().code);
  const auto allowed = check_scope(parsed->front(), "");
  return allowed ? "accepted" : code_name(allowed.error().code);
}

TEST(CodeExamples, WrongCapabilitiesAreRefusedWithThatCode) {
  std::size_t count = 0;
  for (const CodeInfo& info : all_codes()) {
    // "gpu:access:nvidia0" starts with no kind, which is the point; "fs" is no capability at all.
    const bool about_strings = info.name.starts_with("CAP_");
    if (!is_capability(info.wrong) && !about_strings) continue;
    EXPECT_EQ(verdict(info.wrong), info.name) << info.wrong;
    ++count;
  }
  EXPECT_GE(count, 27U);
}

TEST(CodeExamples, RightCapabilitiesAreAccepted) {
  std::size_t count = 0;
  for (const CodeInfo& info : all_codes()) {
    if (!is_capability(info.right)) continue;
    EXPECT_EQ(verdict(info.right), "accepted") << info.name << ": " << info.right;
    ++count;
  }
  EXPECT_GE(count, 25U);
}

TEST(CodeExamples, DocumentsAreRefusedAndAccepted) {
  for (const Code code : {Code::doc_syntax, Code::doc_encoding, Code::doc_duplicate_key}) {
    const auto wrong = text::parse_json(std::string(code_info(code).wrong));
    ASSERT_FALSE(wrong) << code_name(code);
    EXPECT_EQ(code_name(wrong.error().front().code), code_name(code));
    EXPECT_TRUE(text::parse_json(std::string(code_info(code).right))) << code_name(code);
  }
  const auto wrong = text::parse_yaml(std::string(code_info(Code::yaml_feature).wrong));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(code_name(wrong.error().front().code), "YAML_FEATURE");
  EXPECT_TRUE(text::parse_yaml(std::string(code_info(Code::yaml_feature).right)));
}

TEST(CodeExamples, ManifestsAreRefusedAndAccepted) {
  const CodeInfo& shape = code_info(Code::manifest_shape);
  const auto wrong = support::read_manifest(std::string(shape.wrong));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(code_name(wrong.error().front().code), shape.name);
  EXPECT_TRUE(support::read_manifest(std::string(shape.right)));

  const CodeInfo& key = code_info(Code::manifest_unknown_key);
  const std::string before = R"({"name": "x", "version": "1", "tools": [)";
  const auto misspelt = support::read_manifest(before + std::string(key.wrong) + "]}");
  ASSERT_FALSE(misspelt);
  EXPECT_TRUE(std::ranges::any_of(misspelt.error(), [](const Diagnostic& mistake) {
    return mistake.code == Code::manifest_unknown_key;
  }));
  EXPECT_TRUE(support::read_manifest(before + std::string(key.right) + "]}"));

  const CodeInfo& version = code_info(Code::grammar_version_mismatch);
  const std::string after = R"(, "name": "x", "version": "1", "tools": []})";
  const auto newer = support::read_manifest("{" + std::string(version.wrong) + after);
  ASSERT_FALSE(newer);
  EXPECT_EQ(code_name(newer.error().front().code), version.name);
  EXPECT_TRUE(support::read_manifest("{" + std::string(version.right) + after));
}

}  // namespace
}  // namespace capgate::core
