#include "secrets/sealable.h"

#include <gtest/gtest.h>

namespace capgate::secrets {
namespace {

TEST(Sealable, AToken) {
  EXPECT_FALSE(why_not_sealable("TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"));
  EXPECT_FALSE(why_not_sealable("TOKEN", "user:password with spaces"));
}

TEST(Sealable, AKeyThatSignsIsNot) {
  for (const char* value :
       {"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEA\\n-----END PRIVATE KEY-----\\n",
        " {\"type\": \"service_account\", \"private_key\": \"...\"}"}) {
    const auto problem = why_not_sealable("KEY", value);
    ASSERT_TRUE(problem) << value;
    EXPECT_TRUE(problem->message.contains("signs requests")) << problem->message;
    EXPECT_FALSE(problem->message.contains("MIIE"));
  }
}

TEST(Sealable, NeitherIsWhatNoHeaderCarries) {
  for (const char* value : {"two\nlines-of-it", "a-carriage\rreturn", "an-escape\x1b[0m"}) {
    const auto problem = why_not_sealable("TOKEN", value);
    ASSERT_TRUE(problem) << value;
    EXPECT_TRUE(problem->message.contains("control character")) << problem->message;
  }
}

TEST(Sealable, NorWhatIsTooShortToBeFound) {
  EXPECT_TRUE(why_not_sealable("TOKEN", "1234567"));
  EXPECT_FALSE(why_not_sealable("TOKEN", "12345678"));
}

}  // namespace
}  // namespace capgate::secrets
