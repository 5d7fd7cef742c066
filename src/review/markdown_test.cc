#include "review/markdown.h"

#include <gtest/gtest.h>

namespace capgate::review {
namespace {

TEST(Markdown, ForeignTextIsProseAndNothingElse) {
  EXPECT_EQ(markdown_text("read /workspace and github.com"), "read /workspace and github.com");
  EXPECT_EQ(markdown_text("<img src=x>&"), "&lt;img src\\=x&gt;&amp;");
  EXPECT_EQ(markdown_text("[a](b)"), "\\[a\\](b)");
  EXPECT_EQ(markdown_text("*a* _b_ `c` ~d~ $e$ |"), "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\$e\\$ \\|");
  EXPECT_EQ(markdown_text("@me #12"), "\\@&#8203;me \\#&#8203;12");
  EXPECT_EQ(markdown_text("http://a www.b"), "http\\://a www\\.b");
  EXPECT_EQ(markdown_text("a\nb\r"), "a\\\\x0ab\\\\x0d");
  EXPECT_EQ(markdown_text("\xe2\x80\xae"), "\\\\u\\{202e\\}") << "a right-to-left override";
  EXPECT_EQ(markdown_text("<!-- -->"), "&lt;\\!-- --&gt;");
}

TEST(Markdown, NothingEndsCode) {
  EXPECT_EQ(markdown_code("a"), "`a`");
  EXPECT_EQ(markdown_code("a`b"), "``a`b``");
  EXPECT_EQ(markdown_code("``"), "``` `` ```");
  EXPECT_EQ(markdown_code("a\n\nb"), "`a\\x0a\\x0ab`");
  EXPECT_EQ(markdown_code(""), "`  `");
}

TEST(Markdown, LongTextIsCutInSight) {
  const std::string text = markdown_code(std::string(10000, 'a'));
  EXPECT_LT(text.size(), 500U);
  EXPECT_TRUE(text.ends_with("...`"));
}

}  // namespace
}  // namespace capgate::review
