#include "seal/escape.h"

#include <gtest/gtest.h>

#include <string>

namespace capgate::seal {
namespace {

using State = Escape::State;

// What it says and how long it is, "none" or "incomplete".
std::string read(std::string_view text, Layers layers = Layers::one) {
  const Escape escape = read_escape(text, 0, layers);
  if (escape.state == State::incomplete) return "incomplete";
  if (escape.state == State::none) return "none";
  return std::string(escape.view()) + " " + std::to_string(escape.size);
}

TEST(Escape, ReadsWhatLibrariesWrite) {
  const struct {
    std::string_view text;
    std::string_view said;
  } cases[] = {
      {"%2Fx", "/ 3"},
      {"%2f", "/ 3"},
      {"%e9", "\xe9 3"},
      {"\\/", "/ 2"},
      {"\\\"", "\" 2"},
      {"\\'", "' 2"},
      {"\\\\", "\\ 2"},
      {"\\n", "\n 2"},
      {"\\u002f", "/ 6"},
      {"\\u002F", "/ 6"},
      {"\\u00e9", "\xc3\xa9 6"},
      {"\\u20AC", "\xe2\x82\xac 6"},
      {"\\ud83d\\ude00", "\xf0\x9f\x98\x80 12"},
      {"\\x2f", "/ 4"},
      {"&amp;", "& 5"},
      {"&lt;", "< 4"},
      {"&gt;", "> 4"},
      {"&quot;", "\" 6"},
      {"&apos;", "' 6"},
      {"&sol;", "/ 5"},
      {"&UnderBar;", "_ 10"},
      {"&#47;", "/ 5"},
      {"&#047;", "/ 6"},
      {"&#x2f;", "/ 6"},
      {"&#X2F;", "/ 6"},
      {"&#x0000002F;", "/ 12"},
      {"&#233;", "\xc3\xa9 6"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(read(text), said) << text;
}

TEST(Escape, LeavesOtherTextAlone) {
  for (const std::string_view text :
       {"a", "/", "%zz", "%2 ", "%2g", "\\q", "\\u00g0", "\\ud83dabcdef", "&;", "& a", "&nbsp;",
        "&a=b", "&#;", "&#x;", "&#a;", "&#000000047;", "&#1114112;", "&notanentity;"}) {
    EXPECT_EQ(read(text), "none") << text;
  }
}

TEST(Escape, KnowsWhatMayGoOn) {
  for (const std::string_view whole :
       {"%2F", "\\n", "\\u002f", "\\ud83d\\ude00", "&amp;", "&#47;", "&#x2f;"}) {
    for (std::size_t size = 1; size < whole.size(); ++size) {
      EXPECT_EQ(read(whole.substr(0, size)), "incomplete") << whole.substr(0, size);
    }
  }
  EXPECT_EQ(read(""), "incomplete");
}

TEST(Escape, ReadsTwoLayers) {
  const struct {
    std::string_view text;
    std::string_view said;
  } cases[] = {
      {"%252F", "/ 5"},     {"\\\\u002f", "/ 7"}, {"\\\\\\/", "/ 4"},
      {"&amp;#47;", "/ 9"}, {"%5Cu002f", "/ 8"},  {"\\u005cu002f", "/ 11"},
      {"\\&quot;", "\" 7"}, {"%26amp%3B", "& 9"}, {"\\u0026#x2f;", "/ 11"},
      {"%%32%46", "/ 7"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(read(text, Layers::two), said) << text;
  EXPECT_EQ(read("%2F", Layers::two), "none");
  EXPECT_EQ(read("%252", Layers::two), "incomplete");
}

TEST(Escape, SaysWhichByteLatin1Means) {
  EXPECT_EQ(read_escape("\\u00c3", 0, Layers::one).as_byte, '\xc3');
  EXPECT_EQ(read_escape("&#195;", 0, Layers::one).as_byte, '\xc3');
  EXPECT_EQ(read_escape("\\u0041", 0, Layers::one).as_byte, 0);
  EXPECT_EQ(read_escape("%c3", 0, Layers::one).as_byte, 0);
}

}  // namespace
}  // namespace capgate::seal
