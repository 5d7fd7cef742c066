#include "cli/audit_view.h"

#include <gtest/gtest.h>

namespace capgate::cli {
namespace {

using egress::AuditRecord;
using Kind = egress::AuditEvent::Kind;

AuditRecord denied() {
  return {.time = "2026-11-15T12:00:00.123Z",
          .sandbox = "5f2c9a11",
          .server = "github",
          .kind = Kind::connect,
          .flow = 2,
          .host = "evil.test",
          .port = 443,
          .allowed = false,
          .reason = "no-rule",
          .remedy = "net:connect:evil.test:443"};
}

constexpr std::uint64_t noon = 1794744000000;

TEST(AuditFilterTest, EveryPartMustMatch) {
  EXPECT_TRUE(matches({}, denied()));
  EXPECT_TRUE(matches({.host = "evil.test",
                       .port = 443,
                       .server = "github",
                       .allowed = false,
                       .since = noon,
                       .event = Kind::connect},
                      denied()));
  EXPECT_FALSE(matches({.host = "other.test"}, denied()));
  EXPECT_FALSE(matches({.port = 80}, denied()));
  EXPECT_FALSE(matches({.server = "git"}, denied()));
  EXPECT_FALSE(matches({.allowed = true}, denied()));
  EXPECT_FALSE(matches({.since = noon + 124}, denied()));
  EXPECT_TRUE(matches({.since = noon + 123}, denied()));
  EXPECT_FALSE(matches({.event = Kind::dns}, denied()));
}

TEST(AuditFilterTest, WithoutAVerdictNothingIsAllowedOrDenied) {
  const AuditRecord start{.kind = Kind::start};
  EXPECT_FALSE(matches({.allowed = true}, start));
  EXPECT_FALSE(matches({.allowed = false}, start));
  EXPECT_TRUE(matches({.allowed = false}, AuditRecord{.kind = Kind::refused}));
}

TEST(AuditFilterTest, HostsArePatterns) {
  const auto matches_host = [](std::string_view pattern, std::string_view host) {
    return matches({.host = std::string(pattern)}, AuditRecord{.host = std::string(host)});
  };
  EXPECT_TRUE(matches_host("*.GitHub.com", "api.github.com"));
  EXPECT_FALSE(matches_host("*.github.com", "github.com"));
  EXPECT_FALSE(matches_host("*.github.com", "api.github.com.evil.test"));
  EXPECT_TRUE(matches_host("*git*com", "a.git.git.com"));
  EXPECT_TRUE(matches_host("*", ""));
  EXPECT_TRUE(matches_host("a**", "a"));
  EXPECT_FALSE(matches_host("a", "ab"));
  EXPECT_FALSE(matches_host("", "ab"));
}

TEST(AuditSinceTest, IsADurationOrATime) {
  EXPECT_EQ(parse_since("90s", noon), noon - 90'000);
  EXPECT_EQ(parse_since("15m", noon), noon - 900'000);
  EXPECT_EQ(parse_since("1h", noon), noon - 3'600'000);
  EXPECT_EQ(parse_since("7d", noon), noon - 604'800'000);
  EXPECT_EQ(parse_since("2026-11-15", 0), noon - 43'200'000);
  EXPECT_EQ(parse_since("2026-11-15T12:00", 0), noon);
  EXPECT_EQ(parse_since("2026-11-15T12:00:05", 0), noon + 5000);
  EXPECT_EQ(parse_since("2026-11-15T12:00:05Z", 0), noon + 5000);
  EXPECT_EQ(parse_since("2026-11-15T12:00:05.006Z", 0), noon + 5006);
  for (const std::string_view bad : {"", "h", "1", "-1h", "1w", "1.5h", "99999999999999d", "today",
                                     "2026-11", "2026-11-31", "2026-11-15T12"}) {
    EXPECT_FALSE(parse_since(bad, noon)) << bad;
  }
}

TEST(AuditRowTest, SaysWhatHappenedAndWhy) {
  EXPECT_EQ(row(denied()),
            "2026-11-15T12:00:00.123Z  github        connect  denied   evil.test:443"
            "                 no-rule, to allow it: net:connect:evil.test:443");
  AuditRecord close = denied();
  close.kind = Kind::close;
  close.host = "2001:db8::1";
  close.allowed.reset();
  close.reason = close.remedy = "";
  close.sent = 12;
  close.received = 34;
  close.milliseconds = 56;
  EXPECT_EQ(row(close),
            "2026-11-15T12:00:00.123Z  github        close    -        [2001:db8::1]:443"
            "             12 bytes sent, 34 bytes received, 56 ms");
}

TEST(AuditRowTest, IsSafeForATerminal) {
  AuditRecord record = denied();
  record.host = "a\x1b[2Jb";
  EXPECT_EQ(row(record).find('\x1b'), std::string::npos);
}

TEST(AuditStatsTest, AddsUpByServerAndHost) {
  AuditStats stats;
  AuditRecord allowed = denied();
  allowed.host = "api.github.com";
  allowed.flow = 1;
  allowed.allowed = true;
  allowed.remedy = "";
  // A close line need not name the host: the flow does.
  const AuditRecord close{.sandbox = "5f2c9a11",
                          .server = "github",
                          .kind = Kind::close,
                          .flow = 1,
                          .sent = 10,
                          .received = 20};
  AuditRecord refused = denied();
  refused.kind = Kind::refused;
  refused.allowed.reset();
  refused.count = 4;
  for (const AuditRecord& record : {allowed, denied(), close, refused, close}) stats.add(record);
  EXPECT_EQ(stats.text(),
            "server  host            connections  allowed  denied  sent  received\n"
            "github  api.github.com            1        1       0    10        20\n"
            "github  evil.test                 0        0       5     0         0\n"
            "\n"
            "what would have allowed the most that was denied:\n"
            "       5  github  net:connect:evil.test:443\n");
  EXPECT_NE(stats.json().find("\"times\": 5"), std::string::npos);
}

}  // namespace
}  // namespace capgate::cli
