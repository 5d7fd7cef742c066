#include "egress/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using support::count_of;
using support::empty_file;
using support::host_of;
using support::policy_of;
using support::text_of;

class JournalTest : public testing::Test {
 protected:
  static DnsReply refused_name(std::string name) {
    return {.kind = DnsReply::Kind::denied, .name = std::move(name)};
  }
  void deny(const Flow& flow) {
    const FlowRecord record{.number = 1, .host = flow.host.text, .port = flow.port};
    journal.deny(record, flow, decide(policy, flow));
  }
  [[nodiscard]] std::string log() const { return text_of(audit); }
  [[nodiscard]] std::string said() const { return text_of(diagnostics); }

  Loop loop;
  Policy policy = policy_of({"a.test:80?paths=/v1/**"});
  sys::Fd audit = empty_file();
  sys::Fd diagnostics = empty_file();
  Journal journal{loop, policy, audit.get(), diagnostics.get()};
};

TEST_F(JournalTest, BeginsAndEnds) {
  ASSERT_TRUE(journal.begin());
  EXPECT_EQ(journal.next_flow(), 1U);
  EXPECT_EQ(journal.next_flow(), 2U);
  journal.end();
  EXPECT_EQ(count_of("\n", log()), 2U);
  EXPECT_NE(log().find(R"("event":"start")"), std::string::npos) << log();
  EXPECT_NE(log().find(R"("event":"end","count":2)"), std::string::npos) << log();
}

TEST_F(JournalTest, GoesOnWhereAnotherBrokerStopped) {
  ASSERT_TRUE(journal.begin());
  const Flow flow{.host = host_of("b.test"), .port = 443};
  const FlowRecord record{.number = 7, .host = "b.test", .port = 443};
  journal.deny(record, flow, decide(policy, flow));
  Journal next(loop, policy, audit.get(), diagnostics.get());
  ASSERT_TRUE(next.begin());
  EXPECT_NE(log().find(R"("event":"restart")"), std::string::npos) << log();
  EXPECT_EQ(next.next_flow(), 8U);
}

// They cost a server nothing.
TEST_F(JournalTest, TellsOfSoManyRefusedRequestsAMinute) {
  const FlowRecord record{.number = 1, .host = "a.test", .port = 443};
  const auto refuse = [&] {
    (void)journal.request(record, {.method = "GET", .path = "/", .reason = "other-path"});
  };
  for (int i = 0; i < 1200; ++i) refuse();
  EXPECT_EQ(count_of(R"("reason":"other-path")", log()), 1000U);
  EXPECT_EQ(count_of(R"("reason":"requests")", log()), 1U);
  EXPECT_TRUE(journal.request(record, {.method = "GET", .path = "/", .status = 200}));
  EXPECT_EQ(count_of(R"("status":200)", log()), 1U);
}

TEST_F(JournalTest, KnowsThatTheLastLineWasNotWritten) {
  EXPECT_TRUE(journal.is_written());
  ASSERT_TRUE(journal.begin());
  Journal full(loop, policy, audit.get(), diagnostics.get());
  ASSERT_EQ(::fcntl(audit.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  const FlowRecord record{.number = 1, .host = "a.test", .port = 443};
  EXPECT_FALSE(full.request(record, {.method = "GET", .path = "/", .status = 200}));
  EXPECT_FALSE(full.is_written());
}

TEST_F(JournalTest, TellsASubjectOnceAMinuteAndItsRepeatsAtTheEnd) {
  for (int i = 0; i < 5; ++i) journal.tell_dns(refused_name("evil.test"));
  journal.tell_dns(refused_name("other.test"));
  for (int i = 0; i < 3; ++i) journal.tell_limit("rate", "too many");
  const RefusedPort port{.address = loopback_ipv4, .port = 9, .protocol = "udp"};
  for (int i = 0; i < 2; ++i) journal.tell_refused(host_of("127.0.0.1"), port);
  EXPECT_EQ(count_of("\n", log()), 4U) << log();
  EXPECT_EQ(count_of(R"("count":1)", log()), 4U) << log();
  journal.end();
  EXPECT_EQ(count_of("\n", log()), 8U) << log();
  EXPECT_EQ(count_of("evil.test", said()), 2U) << said();  // the name, and the remedy
  const std::string lines = log();
  const std::string_view after = std::string_view(lines).substr(lines.find(R"("seq":5)"));
  EXPECT_NE(after.find(R"("event":"dns","host":"evil.test","verdict":"denied")"), after.npos);
  EXPECT_EQ(count_of(R"("count":4)", after), 1U) << after;
  EXPECT_EQ(count_of(R"("reason":"rate")", after), 1U) << after;
  EXPECT_EQ(count_of(R"("reason":"no-udp")", after), 1U) << after;
  EXPECT_EQ(count_of("other.test", after), 0U) << after;
}

struct HintCase {
  std::vector<std::string> rules;
  std::vector<std::string> lacking;
  std::string hint;
};

// A question for a name has no port.
TEST_F(JournalTest, NamesWhatWouldAllowAName) {
  const HintCase cases[] = {
      {{}, {}, "net:connect:db.test:443, or the port that it needs,"},
      {{"a.test:80", "b.test"}, {}, "net:connect:db.test:443, or the port that it needs,"},
      {{"a.test:5432", "b.test:443"}, {}, "net:connect:db.test:443, or the port that it needs,"},
      {{"a.test:5432", "localhost:8080"},
       {},
       "net:connect:db.test:5432, or the port that it needs,"},
      {{"a.test:80"}, {"db.test:5432?proto=tcp"}, "net:connect:db.test:5432?proto=tcp"},
      {{}, {"other.test:1", "*.test:6379"}, "net:connect:db.test:6379"},
      {{}, {"*"}, "net:connect:db.test:443, or the port that it needs,"},
  };
  for (const HintCase& each : cases) {
    policy = policy_of(each.rules);
    for (const Rule& rule : policy_of(each.lacking).rules) policy.lacking.push_back(rule.connect);
    const sys::Fd words = empty_file();
    Journal(loop, policy, audit.get(), words.get()).tell_dns(refused_name("db.test"));
    EXPECT_EQ(text_of(words), format("capgate: name db.test refused: no rule covers it; {} would "
                                     "allow it\n",
                                     each.hint));
  }
}

// A line for each would let a server fill the disk.
TEST_F(JournalTest, TellsOfEndlessNamesThatTheyAreTooMany) {
  for (int i = 0; i < 2; ++i) journal.tell_dns(refused_name("evil.test"));
  for (int i = 0; i < 3'000; ++i) journal.tell_dns(refused_name(format("n{}.test", i)));
  EXPECT_LT(count_of("\n", log()), 600U);
  EXPECT_LT(count_of("\n", said()), 600U);
  EXPECT_EQ(count_of(R"("host":"n0.test")", log()), 1U);
  EXPECT_EQ(count_of(R"("reason":"subjects")", log()), 1U);
  journal.tell_limit("connections", "too many connections at once");
  EXPECT_EQ(count_of(R"("reason":"connections")", log()), 1U);
  EXPECT_EQ(count_of("too many connections at once", said()), 1U);
  journal.end();
  EXPECT_EQ(count_of(R"("host":"evil.test")", log()), 2U) << "its repeat is told at the end";
}

TEST_F(JournalTest, TellsEveryConnectionInTheLogAndADestinationOnceOnStderr) {
  for (int i = 0; i < 3; ++i) deny({.host = host_of("b.test"), .port = 443});
  EXPECT_EQ(count_of("\n", log()), 3U);
  EXPECT_EQ(said(),
            "capgate: connection to b.test:443 refused: no rule covers b.test:443; "
            "net:connect:b.test:443 would allow it\n");
}

TEST_F(JournalTest, KeepsTheRemedyAfterALongReason) {
  const std::string label(60, 'x');
  const std::string name = format("{0}.{0}.{0}.{0}.test", label);
  deny({.host = host_of(name), .port = 443});
  EXPECT_TRUE(said().ends_with(format("; net:connect:{}:443 would allow it\n", name))) << said();
}

TEST_F(JournalTest, CutsAndEscapesWhatOthersSay) {
  Flow flow{.host = host_of("a.test"), .port = 80, .speech = Speech::http};
  flow.said = flow.host;
  flow.method = "GET";
  flow.path = "/" + std::string(60'000, 'x') + "\x1b[31m\n";
  deny(flow);
  EXPECT_LT(said().size(), 1000U);
  EXPECT_EQ(count_of("\n", said()), 1U);
  EXPECT_EQ(count_of("\x1b", said()), 0U);
  EXPECT_EQ(count_of("would allow", said()), 0U) << said();
  flow.path = "/\x1b[31m";
  flow.port = 81;  // another destination
  deny(flow);
  EXPECT_EQ(count_of("\x1b", said()), 0U);
}

// Whoever reads stderr may have stopped; this test hangs if that matters.
TEST_F(JournalTest, DoesNotWaitForStderr) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const sys::Fd reader(ends[0]);
  const sys::Fd writer(ends[1]);
  ASSERT_EQ(::fcntl(writer.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string bytes(4096, 'x');
  while (::write(writer.get(), bytes.data(), bytes.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(writer.get(), F_SETFL, 0), 0);
  Journal other(loop, policy, audit.get(), writer.get());
  other.tell_dns(refused_name("evil.test"));
  EXPECT_NE(log().find("evil.test"), std::string::npos);
}

}  // namespace
}  // namespace capgate::egress
