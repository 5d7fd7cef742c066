// The table of codes. That its examples are really refused with their codes is tested where they
// can be parsed: src/core/code_examples_test.cc.
#include "base/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"

namespace capgate {
namespace {

TEST(Codes, EveryCodeHasItsEntryInOrder) {
  const auto codes = all_codes();
  ASSERT_EQ(codes.size(), static_cast<std::size_t>(Code::accept_unused) + 1);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(codes[i].code), i) << codes[i].name;
    EXPECT_EQ(&code_info(codes[i].code), &codes[i]);
    EXPECT_EQ(code_name(codes[i].code), codes[i].name);
  }
}

TEST(Codes, NamesAreUniqueAndFindable) {
  std::set<std::string_view> names;
  for (const CodeInfo& info : all_codes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(find_code(info.name), info.code);
    EXPECT_TRUE(std::ranges::all_of(info.name, [](char c) { return is_upper(c) || c == '_'; }))
        << info.name;
  }
  EXPECT_FALSE(find_code("CAP_NO_SUCH_CODE"));
  EXPECT_FALSE(find_code("cap_fs_path"));
  EXPECT_FALSE(find_code(""));
}

TEST(Codes, EveryEntrySaysWhatIsWrongAndWhatToWrite) {
  for (const CodeInfo& info : all_codes()) {
    SCOPED_TRACE(info.name);
    for (const std::string_view text : {info.summary, info.detail, info.wrong, info.right}) {
      EXPECT_FALSE(text.empty());
      EXPECT_EQ(trim(text), text);
      EXPECT_FALSE(text.contains('\n'));
      EXPECT_FALSE(find_invalid_utf8(text));
    }
    EXPECT_FALSE(info.summary.ends_with('.'));
    EXPECT_TRUE(info.detail.ends_with('.'));
    EXPECT_NE(info.wrong, info.right);
  }
}

TEST(Codes, DocumentCodesAreTheOnesOfTheText) {
  for (const CodeInfo& info : all_codes()) {
    const bool about_text = info.name.starts_with("DOC_") || info.name.starts_with("YAML_");
    EXPECT_EQ(is_document_code(info.code), about_text) << info.name;
  }
}

}  // namespace
}  // namespace capgate
