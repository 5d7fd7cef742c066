#include "sandbox/terminal_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace capgate::sandbox {
namespace {

std::string shown(std::string_view text) {
  TerminalText filter;
  std::string out;
  filter.add(text, out);
  filter.end(out);
  return out;
}

TEST(TerminalText, OrdinaryWordsPass) {
  const std::string_view text = "listening\n\tGrüße, 世界 🙂\ncapgate is a word\n";
  EXPECT_EQ(shown(text), text);
}

TEST(TerminalText, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(shown("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(shown("a\b\b\x9b!"), "a\\x08\\x08\\x9b!");
}

TEST(TerminalText, NothingIsOverwritten) {
  EXPECT_EQ(shown("one\r\ntwo\rthree\r"), "one\ntwo\nthree\n");
}

TEST(TerminalText, NoLineOfCapgatesIsImitated) {
  EXPECT_EQ(shown("capgate: refused\n"), "capgate\\x3a refused\n");
  EXPECT_EQ(shown("  CapGate: capgate:x"), "  CapGate\\x3a capgate\\x3ax");
  EXPECT_EQ(shown("capcapgate:"), "capcapgate\\x3a");
  // A zero-width space between the words is seen.
  EXPECT_EQ(shown("capgate\u200b: x"), "capgate\\u{200b}: x");
}

RC_GTEST_PROP(TerminalText, PiecesAreShownAsTheWhole, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("cap", "gate", ":", "capgate:", "c", "\r", "\n", "\x1b",
                                    "\xf0\x9f", "\x99\x82", "\xe4", "x"));
  TerminalText filter;
  std::string out;
  std::string whole;
  for (const std::string& piece : pieces) {
    filter.add(piece, out);
    whole += piece;
  }
  filter.end(out);
  RC_ASSERT(out == shown(whole));
  RC_ASSERT(out.find("capgate:") == std::string::npos);
  RC_ASSERT(std::ranges::none_of(out, [](char c) { return c == '\r' || c == '\x1b'; }));
}

}  // namespace
}  // namespace capgate::sandbox
