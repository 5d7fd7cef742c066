#include "review/lint_tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/host.h"

namespace capgate::review {
namespace {

TEST(LintTables, AreSortedAndUnique) {
  EXPECT_EQ(
      std::ranges::adjacent_find(shared_suffixes(), std::greater_equal(), &SharedSuffix::suffix),
      shared_suffixes().end());
  EXPECT_EQ(std::ranges::adjacent_find(registry_suffixes(), std::greater_equal()),
            registry_suffixes().end());
  EXPECT_EQ(std::ranges::adjacent_find(exfiltration_services(), std::greater_equal(),
                                       &ExfiltrationService::host),
            exfiltration_services().end());
}

TEST(LintTables, HoldCanonicalNames) {
  const auto is_canonical = [](std::string_view name) {
    const auto host = core::parse_host(name);
    return host && host->text == name && name.contains('.');
  };
  for (const SharedSuffix& each : shared_suffixes()) {
    std::string plain(each.suffix);
    std::ranges::replace(plain, '*', 'x');
    EXPECT_TRUE(is_canonical(plain)) << each.suffix;
    EXPECT_TRUE(each.what.starts_with("a")) << each.suffix;
  }
  for (const std::string_view each : registry_suffixes()) EXPECT_TRUE(is_canonical(each)) << each;
  for (const auto& each : exfiltration_services())
    EXPECT_TRUE(is_canonical(each.host)) << each.host;
}

TEST(LintTables, StrangersAreBelowSharedSuffixes) {
  for (const char* name : {"s3.amazonaws.com", "s3.eu-west-1.amazonaws.com", "amazonaws.com", "com",
                           "co.uk", "github.io", "core.windows.net", "cloudfront.net"}) {
    EXPECT_TRUE(why_shared(name)) << name;
  }
  EXPECT_EQ(why_shared("s3.amazonaws.com"), "an S3 bucket");
  for (const char* name : {"github.com", "bucket.s3.amazonaws.com", "me.github.io", "bbc.co.uk",
                           "bedrock.eu-west-1.amazonaws.com"}) {
    EXPECT_FALSE(why_shared(name)) << name;
  }
}

TEST(LintTables, ASiteIsWhatOnePartyHolds) {
  EXPECT_EQ(site_of("api.github.com"), "github.com");
  EXPECT_EQ(site_of("github.com"), "github.com");
  EXPECT_EQ(site_of("www.news.bbc.co.uk"), "bbc.co.uk");
  EXPECT_EQ(site_of("a.b.s3.eu-west-1.amazonaws.com"), "b.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(site_of("me.github.io"), "me.github.io");
  EXPECT_EQ(site_of("raw.githubusercontent.com"), "github.com");
  EXPECT_EQ(site_of("localhost"), "localhost");
}

TEST(LintTables, ServicesHoldTheirSubdomains) {
  ASSERT_NE(exfiltration_service("abc.ngrok.io"), nullptr);
  EXPECT_EQ(exfiltration_service("abc.ngrok.io")->what, "a tunnel");
  EXPECT_EQ(exfiltration_service("ngrok.io.example.com"), nullptr);
  EXPECT_EQ(exfiltration_service("mywebhook.site"), nullptr);
  EXPECT_EQ(exfiltration_service("io"), nullptr);
}

TEST(LintTables, RunnersAreKnownByName) {
  for (const char* name : {"bash", "/bin/sh", "python3", "python3.11", "node", "/usr/bin/env",
                           "npx", "uvx", "pwsh", "Rscript"}) {
    EXPECT_TRUE(runs_any_code(name)) << name;
  }
  for (const char* name : {"git", "rg", "ffmpeg", "chromium", "bashful", "7z"}) {
    EXPECT_FALSE(runs_any_code(name)) << name;
  }
}

}  // namespace
}  // namespace capgate::review
