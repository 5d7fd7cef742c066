#include "seal/spelling.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/digest.h"

namespace capgate::seal {
namespace {

using namespace std::string_literals;

TEST(Spelling, PercentEncodesAllButUnreserved) {
  EXPECT_EQ(percent_encoded("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(percent_encoded("a/b c+\xff?"), "a%2Fb%20c%2B%FF%3F");
  EXPECT_EQ(percent_encoded("/\xff", HexCase::lower), "%2f%ff");
}

TEST(Spelling, PercentDecodesOnce) {
  EXPECT_EQ(percent_decoded("a%2fb%2F%25%34"), "a/b/%4");
  EXPECT_EQ(percent_decoded("plain"), std::nullopt);
  EXPECT_EQ(percent_decoded("%zz%4"), std::nullopt);
  EXPECT_EQ(percent_decoded("%%41"), "%A");
  EXPECT_EQ(percent_decoded("%41"), "A");
}

TEST(Spelling, EscapesForJson) {
  EXPECT_EQ(json_escaped("a\"b\\c\n\x01/\x7f\xc3\xa9"), "a\\\"b\\\\c\\n\\u0001/\x7f\xc3\xa9");
  EXPECT_EQ(json_escaped("a/b", Slash::escaped), "a\\/b");
}

TEST(Spelling, DecodesCanonicalBase64Only) {
  EXPECT_EQ(base64_decoded(""), "");
  EXPECT_EQ(base64_decoded("YWJj"), "abc");
  EXPECT_EQ(base64_decoded("YQ=="), "a");
  EXPECT_EQ(base64_decoded("YWI="), "ab");
  for (const char* bad : {"YR==", "YWJ=", "YQ", "YQ=", "Y===", "====", "YWJj\n", "YW-j",
                          "YQ==YQ==", "Y=Jj", " YWJj"}) {
    EXPECT_EQ(base64_decoded(bad), std::nullopt) << bad;
  }
}

TEST(Spelling, ReplacesAndAppends) {
  std::string text = "Bearer old.";
  replace_wiping(text, 7, 3, "a much longer value");
  EXPECT_EQ(text, "Bearer a much longer value.");
  append_wiping(text, std::string(100, 'x'));
  EXPECT_EQ(text, "Bearer a much longer value." + std::string(100, 'x'));
}

RC_GTEST_PROP(SpellingProperty, PercentRoundTrips, (const std::string& text)) {
  const std::string encoded = percent_encoded(text);
  RC_ASSERT(percent_decoded(encoded).value_or(encoded) == text);
}

RC_GTEST_PROP(SpellingProperty, Base64RoundTrips, (const std::string& text)) {
  RC_ASSERT(base64_decoded(base64(text)) == text);
}

RC_GTEST_PROP(SpellingProperty, DecodedBase64IsWhatWasEncoded, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::element('A', 'Q', 'g', '9', '/', '='));
  if (const auto decoded = base64_decoded(text)) RC_ASSERT(base64(*decoded) == text);
}

// Whatever stands around it, the base64 of the whole shows base64_inside(); and no more of it is
// certain: another character more would depend on what stands around it.
RC_GTEST_PROP(SpellingProperty, Base64InsideIsFoundInTheWhole,
              (const std::string& before, const std::string& after)) {
  const std::string text = *rc::gen::nonEmpty<std::string>();
  std::string whole = base64(before + text + after);
  const std::size_t offset = before.size() % 3;
  RC_ASSERT(whole.contains(base64_inside(text, offset, Alphabet::standard)));
  std::ranges::replace(whole, '+', '-');
  std::ranges::replace(whole, '/', '_');
  const std::string inside = base64_inside(text, offset, Alphabet::url_safe);
  RC_ASSERT(whole.contains(inside));
  RC_ASSERT(inside.size() * 6 + 12 > text.size() * 8);
}

}  // namespace
}  // namespace capgate::seal
