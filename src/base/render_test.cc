#include "base/render.h"

#include <gtest/gtest.h>

namespace capgate {
namespace {

std::string render_at(std::string_view text, Span where, Colour colour = Colour::off) {
  const Diagnostic diagnostic{
      .code = Code::cap_fs_relative, .where = where, .message = "wrong", .help = "do it right"};
  return render(diagnostic, Source("f.json", text), colour);
}

// The two lines under the heading: the source and the carets.
std::string excerpt_at(std::string_view text, Span where) {
  const std::string shown = render_at(text, where);
  const std::size_t begin = shown.find('\n') + 1;
  return shown.substr(begin, shown.find("help:") - begin);
}

TEST(Render, PrintsPlaceCodeMessageLineCaretsAndHelp) {
  EXPECT_EQ(render_at("{\n  \"a\": \"bc\"\n}\n", Span::at(9, 13)),
            "f.json:2:8: error[CAP_FS_RELATIVE]: wrong\n"
            "    2 |   \"a\": \"bc\"\n"
            "      |        ^^^^\n"
            "help: do it right\n");
}

TEST(Render, LeavesOutAnEmptyHelp) {
  const Diagnostic diagnostic{.code = Code::cap_fs_relative, .message = "wrong"};
  EXPECT_EQ(render(diagnostic, Source("f", "x"), Colour::off),
            "f:1:1: error[CAP_FS_RELATIVE]: wrong\n    1 | x\n      | ^\n");
}

TEST(Render, PaintsOnlyWhenAskedTo) {
  EXPECT_EQ(render_at("ab", Span::at(1, 2), Colour::on),
            "f.json:1:2: \x1b[1;31merror[CAP_FS_RELATIVE]\x1b[0m: wrong\n"
            "    1 | ab\n"
            "      |  \x1b[1;31m^\x1b[0m\n"
            "\x1b[1;36mhelp\x1b[0m: do it right\n");
  EXPECT_EQ(render_at("ab", Span::at(1, 2)).find('\x1b'), std::string::npos);
}

struct Case {
  std::string_view what;
  std::string_view text;
  Span where;
  std::string_view expected;
};

TEST(Render, PutsTheCaretUnderTheRightColumn) {
  const Case cases[] = {
      {"tab", "\t\tab", Span::at(2, 4), "    1 |   ab\n      |   ^^\n"},
      {"non-ASCII before and inside",
       "\xc3\xa9\xe2\x82\xac"
       "a\xc3\xa9"
       "b",
       Span::at(5, 8),
       "    1 | \xc3\xa9\xe2\x82\xac"
       "a\xc3\xa9"
       "b\n      |   ^^\n"},
      {"end of file", "ab", Span::at(2, 2), "    1 | ab\n      |   ^\n"},
      {"after the last line break", "ab\n", Span::at(3, 3), "    2 | \n      | ^\n"},
      {"empty file", "", Span::at(0, 0), "    1 | \n      | ^\n"},
      {"past the end", "ab", Span::at(7, 9), "    1 | ab\n      |   ^\n"},
      {"end before begin", "abc", Span::at(2, 1), "    1 | abc\n      |   ^\n"},
      {"several lines", "ab\ncd\nef", Span::at(1, 7), "    1 | ab\n      |  ^\n"},
      {"at a line break", "ab\ncd", Span::at(2, 3), "    1 | ab\n      |   ^\n"},
      {"CRLF", "ab\r\ncd\r\n", Span::at(5, 6), "    2 | cd\n      |  ^\n"},
      {"at the CR", "ab\r\ncd", Span::at(2, 4), "    1 | ab\n      |   ^\n"},
      {"control character marked",
       "a\x1b"
       "b",
       Span::at(1, 2), "    1 | a\\x1bb\n      |  ^^^^\n"},
      {"control character before",
       "\x01"
       "b",
       Span::at(1, 2), "    1 | \\x01b\n      |     ^\n"},
      {"bidi override",
       "a\xe2\x80\xae"
       "b",
       Span::at(4, 5), "    1 | a\\u{202e}b\n      |          ^\n"},
      {"invalid UTF-8",
       "a\xff"
       "b",
       Span::at(1, 2), "    1 | a\\xffb\n      |  ^^^^\n"},
  };
  for (const auto& [what, text, where, expected] : cases) {
    EXPECT_EQ(excerpt_at(text, where), expected) << what;
  }
}

TEST(Render, ShowsAWindowOfAVeryLongLine) {
  const std::string text = std::string(500, 'a') + "XY" + std::string(500, 'b');
  EXPECT_EQ(excerpt_at(text, Span::at(500, 502)), "    1 | ..." + std::string(40, 'a') + "XY" +
                                                      std::string(58, 'b') + "...\n" + "      | " +
                                                      std::string(43, ' ') + "^^\n");
}

TEST(Render, ShowsTheStartAndTheEndOfAVeryLongLine) {
  const std::string text(1000, 'a');
  EXPECT_EQ(excerpt_at(text, Span::at(0, 1)),
            "    1 | " + std::string(100, 'a') + "...\n      | ^\n");
  EXPECT_EQ(excerpt_at(text, Span::at(1000, 1000)),
            "    1 | ..." + std::string(40, 'a') + "\n      | " + std::string(43, ' ') + "^\n");
}

TEST(Render, CutsALongMarkAtTheWindow) {
  EXPECT_EQ(excerpt_at(std::string(1000, 'a'), Span::at(0, 1000)),
            "    1 | " + std::string(100, 'a') + "...\n      | " + std::string(100, '^') + "\n");
}

TEST(Render, CutsALongLineBetweenCharacters) {
  std::string text;
  while (text.size() < 900) {
    text += "\xe2\x82\xac";
  }
  for (std::uint32_t at = 0; at < 900; at += 3) {
    EXPECT_EQ(excerpt_at(text, Span::at(at, at + 3)).find("\\x"), std::string::npos) << at;
  }
}

// Found by fuzzing: there is no start of a character to step back to.
TEST(Render, TakesALongLineOfContinuationBytes) {
  const std::string text(300, '\x9f');
  for (std::uint32_t at = 0; at <= 300; ++at) {
    EXPECT_NE(render_at(text, Span::at(at, at + 1)).find('^'), std::string::npos);
  }
}

TEST(Render, KeepsTheCaretInPlaceBelowSixDigitLineNumbers) {
  const std::string text = std::string(123455, '\n') + "ab";
  EXPECT_EQ(excerpt_at(text, Span::at(123456, 123457)), "123456 | ab\n       |  ^\n");
}

TEST(Render, EscapesTheNameOfTheFile) {
  const Diagnostic diagnostic{.code = Code::cap_fs_relative, .message = "wrong"};
  const std::string shown = render(diagnostic, Source("a\x1b[2J\n", ""), Colour::off);
  EXPECT_TRUE(shown.starts_with("a\\x1b[2J\\x0a:1:1: error")) << shown;
}

TEST(Source, CountsLinesAndColumnsInCharacters) {
  const Source source("f",
                      "a\n\xc3\xa9\xe2\x82\xac"
                      "b\n\nd");
  struct Expected {
    std::size_t offset, line, column;
  };
  for (const auto& [offset, line, column] : {Expected{0, 1, 1},
                                             {1, 1, 2},
                                             {2, 2, 1},
                                             {4, 2, 2},
                                             {7, 2, 3},
                                             {8, 2, 4},
                                             {9, 3, 1},
                                             {10, 4, 1},
                                             {11, 4, 2},
                                             {99, 4, 2}}) {
    EXPECT_EQ(source.position(offset).line, line) << offset;
    EXPECT_EQ(source.position(offset).column, column) << offset;
  }
  EXPECT_EQ(source.line(2),
            "\xc3\xa9\xe2\x82\xac"
            "b");
  EXPECT_EQ(source.line(3), "");
  EXPECT_EQ(source.line_start(4), 10U);
}

TEST(SortDiagnostics, OrdersByPositionThenCodeThenMessage) {
  const auto at = [](std::size_t begin, std::size_t end, Code code, std::string message) {
    return Diagnostic{
        .code = code, .where = Span::at(begin, end), .message = std::move(message), .help = ""};
  };
  const Diagnostics sorted = {
      at(1, 2, Code::cap_fs_shape, ""), at(1, 3, Code::doc_syntax, "a"),
      at(1, 3, Code::doc_syntax, "b"),  at(1, 3, Code::cap_fs_shape, ""),
      at(2, 2, Code::doc_syntax, ""),
  };
  Diagnostics shuffled = {sorted[3], sorted[4], sorted[2], sorted[0], sorted[1]};
  sort_diagnostics(shuffled);
  EXPECT_EQ(shuffled, sorted);
}

}  // namespace
}  // namespace capgate
