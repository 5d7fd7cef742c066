#include "egress/credential.h"

#include <gtest/gtest.h>

#include "base/digest.h"

namespace capgate::egress {
namespace {

TEST(Credential, IsShownByTheUserAndThePasswordAlone) {
  const std::string credential = proxy_credential("capgate", "token");
  const std::string right = base64("capgate:token");
  EXPECT_TRUE(shows_credential(credential, "Basic " + right));
  EXPECT_TRUE(shows_credential(credential, "bASIC   " + right));
  const std::string wrong[] = {"",
                               "Basic",
                               "Basic ",
                               "Bearer " + right,
                               right,
                               "Basic " + base64("capgate:toke"),
                               "Basic " + base64("capgate:token "),
                               "Basic " + base64("other:token"),
                               "Basic " + right + "=",
                               "Basic " + credential};
  for (const std::string& text : wrong) EXPECT_FALSE(shows_credential(credential, text)) << text;
}

TEST(Credential, TellsWhereUserAndPasswordMeet) {
  // RFC 7617: a user has no colon, so these two are the same and no others are.
  EXPECT_EQ(proxy_credential("a", "b:c"), proxy_credential("a:b", "c"));
  EXPECT_NE(proxy_credential("a", "bc"), proxy_credential("ab", "c"));
  EXPECT_FALSE(is_same_credential("", "x"));
  EXPECT_TRUE(is_same_credential("x", "x"));
}

}  // namespace
}  // namespace capgate::egress
