#include "core/unsealable.h"

#include <gtest/gtest.h>

namespace capgate::core {
namespace {

TEST(Unsealable, WhatSignsIsKnownByItsName) {
  for (const std::string_view name :
       {"AWS_SECRET_ACCESS_KEY", "R2_SECRET_ACCESS_KEY", "SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "GITHUB_APP_PRIVATE_KEY", "PRIVATE_KEY", "SLACK_SIGNING_SECRET", "JWT_SECRET",
        "TWITTER_ACCESS_TOKEN_SECRET", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"}) {
    EXPECT_TRUE(why_unsealable(name)) << name;
  }
}

TEST(Unsealable, FilesAndDatabasesHaveReasonsOfTheirOwn) {
  EXPECT_TRUE(why_unsealable("GOOGLE_APPLICATION_CREDENTIALS")->contains("file"));
  EXPECT_TRUE(why_unsealable("GITHUB_TOKEN_FILE")->contains("file"));
  EXPECT_TRUE(why_unsealable("DATABASE_URL")->contains("HTTP"));
  EXPECT_TRUE(why_unsealable("PROD_DATABASE_URL")->contains("HTTP"));
}

TEST(Unsealable, WhatIsSentIsNotAmongThem) {
  for (const std::string_view name :
       {"GITHUB_TOKEN", "GITHUB_PERSONAL_ACCESS_TOKEN", "OPENAI_API_KEY", "STRIPE_SECRET_KEY",
        "BRAVE_API_KEY", "SLACK_BOT_TOKEN", "GOOGLE_CLIENT_SECRET", "NOTION_API_SECRET",
        "AWS_ACCESS_KEY_ID", "JIRA_PASSWORD", "PROFILE", "XPATH", "FILE_TOKEN"}) {
    EXPECT_FALSE(why_unsealable(name)) << name;
  }
}

}  // namespace
}  // namespace capgate::core
