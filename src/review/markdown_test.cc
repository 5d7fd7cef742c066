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

TEST(Markdown, NoReferenceAndNoPicture) {
  EXPECT_EQ(markdown_text("GH-12, gh-1"), "GH-&#8203;12, gh-&#8203;1");
  EXPECT_EQ(markdown_text("GH-x high-5 utf-8"), "GH-x high-5 utf-8");
  EXPECT_EQ(markdown_text("601f3c3"), "601f3c&#8203;3");
  EXPECT_EQ(markdown_text("at 601F3C3601f3c3 and"), "at 601F3C&#8203;3601f3&#8203;c3 and");
  EXPECT_EQ(markdown_text("601f3c 123456 a facade"), "601f3c 123456 a facade");
  EXPECT_EQ(markdown_text(":white_check_mark: ok"), ":&#8203;white\\_check\\_mark: ok");
  EXPECT_EQ(markdown_text(":+1::-1:"), ":&#8203;+1::&#8203;-1:");
  EXPECT_EQ(markdown_text("a: b, c:443 d::1"), "a: b, c:443 d::1");
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
