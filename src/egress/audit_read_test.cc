#include "egress/audit_read.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/digest.h"
#include "base/format.h"

namespace capgate::egress {
namespace {

using What = AuditChain::Fault::What;

const std::string zeros(64, '0');

// One line with these members between server and prev.
std::string line(std::uint64_t sequence, std::string_view members, std::string_view previous,
                 std::string_view sandbox = "5f2c9a11") {
  return format(
      R"({{"seq":{},"time":"2026-11-15T12:00:00.123Z","sandbox":"{}","server":"github",{},"prev":"{}"}})",
      sequence, sandbox, members, previous);
}

// Lines of these members, rightly chained.
std::vector<std::string> chain_of(const std::vector<std::string>& members) {
  std::vector<std::string> lines;
  for (const std::string& part : members) {
    lines.push_back(line(lines.size() + 1, part, lines.empty() ? zeros : sha256_hex(lines.back())));
  }
  return lines;
}

const std::string start = R"("event":"start")";
const std::string restart = R"("event":"restart")";
const std::string dns = R"("event":"dns","host":"a.test")";
const std::string end = R"("event":"end","count":0)";

std::optional<AuditChain::Fault> first_fault(AuditChain& chain,
                                             const std::vector<std::string>& lines) {
  std::optional<AuditChain::Fault> first;
  for (const std::string& text : lines) {
    auto fault = chain.feed(text);
    EXPECT_FALSE(first && fault) << "a second fault is told";
    if (fault) first = std::move(fault);
  }
  auto last = chain.finish(true);
  return first ? first : last;
}

void expect_fault(const std::vector<std::string>& lines, std::uint64_t number, What what) {
  AuditChain chain;
  const auto fault = first_fault(chain, lines);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->line, number) << fault->message;
  EXPECT_EQ(fault_name(fault->what), fault_name(what)) << fault->message;
  EXPECT_NE(fault->message, "");
  EXPECT_EQ(chain.lines(), lines.size());
}

TEST(AuditLineTest, IsReadWithItsFields) {
  const auto read = read_audit_line(
      line(3, R"("event":"close","flow":2,"host":"a\"\\b","port":443,"verdict":"denied","ms":0)",
           zeros));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->sequence, 3U);
  EXPECT_EQ(read->kind, AuditEvent::Kind::close);
  EXPECT_EQ(read->flow, 2U);
  EXPECT_EQ(read->host, "a\"\\b");
  EXPECT_EQ(read->port, 443U);
  EXPECT_EQ(read->allowed, false);
  EXPECT_EQ(read->milliseconds, 0U);
  EXPECT_EQ(read->sent, std::nullopt);
  EXPECT_EQ(read->previous, zeros);
}

TEST(AuditLineTest, AnythingElseIsRefused) {
  const std::string good = line(1, dns, zeros);
  ASSERT_TRUE(read_audit_line(good));
  std::vector<std::string> bad = {"",          "{}",
                                  "null",      "[]",
                                  " " + good,  good + " ",
                                  good + "\n", good.substr(0, good.size() - 1),
                                  good + good, std::string(longest_audit_line, 'x')};
  for (const std::string_view members : {R"("event":"else")",
                                         R"("event":"dns","flow":0)",
                                         R"("event":"dns","flow":01)",
                                         R"("event":"dns","flow":-1)",
                                         R"("event":"dns","flow":1.5)",
                                         R"("event":"dns","flow":18446744073709551616)",
                                         R"("event":"dns","flow":"1")",
                                         R"("event":"dns","port":65536)",
                                         R"("event":"dns","port":0)",
                                         R"("event":"dns","host":"")",
                                         R"("event":"dns","host":1)",
                                         R"("event":"dns","host":"a\u0041")",
                                         R"("event":"dns","host":"a\n")",
                                         "\"event\":\"dns\",\"host\":\"a\x7f\"",
                                         "\"event\":\"dns\",\"host\":\"\xc3\xa4\"",
                                         R"("event":"dns","verdict":"maybe")",
                                         R"("event":"dns","unknown":1)",
                                         R"("event":"dns","port":1,"host":"a")",
                                         R"("event":"dns","host":"a","host":"a")",
                                         R"("event": "dns")",
                                         R"("flow":1,"event":"dns")",
                                         R"("event":"dns","host":"a)",
                                         R"("event":"dns","host":"a\)"}) {
    bad.push_back(line(1, members, zeros));
  }
  bad.push_back(line(1, dns, zeros.substr(1)));
  bad.push_back(line(1, dns, zeros.substr(1) + "A"));
  bad.push_back(line(1, dns, zeros, ""));
  for (const std::string& text : bad) {
    const auto read = read_audit_line(text);
    EXPECT_FALSE(read) << text;
    if (!read) EXPECT_LE(read.error().offset, text.size());
  }
}

TEST(AuditLineTest, AMistakeHasItsPlace) {
  const auto read = read_audit_line(R"({"seq":1,"time":"now"})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "not a time");
  EXPECT_EQ(read.error().offset, 21U);
}

TEST(AuditTimeTest, IsMillisecondsSince1970) {
  EXPECT_EQ(parse_audit_time("1970-01-01T00:00:00.000Z"), 0U);
  EXPECT_EQ(parse_audit_time("2026-11-15T12:00:00.123Z"), 1794744000123U);
  EXPECT_EQ(parse_audit_time("2024-02-29T23:59:59.999Z"), 1709251199999U);
  for (const std::string_view bad :
       {"2023-02-29T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "2026-13-01T00:00:00.000Z",
        "2026-11-15T24:00:00.000Z", "2026-11-15T12:60:00.000Z", "2026-11-15T12:00:60.000Z",
        "2026-11-15 12:00:00.000Z", "2026-11-15T12:00:00.000", "2026-11-15T12:00:00.+00Z", ""}) {
    EXPECT_FALSE(parse_audit_time(bad)) << bad;
  }
}

RC_GTEST_PROP(AuditTimeTest, ComesBackAsItWasWritten, ()) {
  const auto time = *rc::gen::inRange<std::uint64_t>(0, 253402300800000U);
  std::string text;
  append_audit_time(text, time);
  RC_ASSERT(parse_audit_time(text) == time);
}

TEST(AuditChainTest, AWholeRunHasNoFault) {
  AuditChain chain;
  EXPECT_FALSE(first_fault(chain, chain_of({start, dns, restart, dns, end})));
  EXPECT_EQ(chain.runs(), 1U);
  EXPECT_EQ(chain.lines(), 5U);
  EXPECT_FALSE(chain.is_running());
}

TEST(AuditChainTest, ARunWithoutItsEndIsSaidToRun) {
  AuditChain chain;
  EXPECT_FALSE(first_fault(chain, chain_of({start, dns, end, start, dns})));
  EXPECT_TRUE(chain.is_running());
  EXPECT_EQ(chain.unended_runs(), 0U);
}

TEST(AuditChainTest, ARunThatWasKilledIsCounted) {
  AuditChain chain;
  EXPECT_FALSE(first_fault(chain, chain_of({start, dns, start, end})));
  EXPECT_FALSE(chain.is_running());
  EXPECT_EQ(chain.unended_runs(), 1U);
  EXPECT_EQ(chain.runs(), 2U);
}

TEST(AuditChainTest, EveryChangedByteIsFound) {
  const std::vector<std::string> good = chain_of({start, dns, dns, end});
  for (std::size_t number = 0; number + 1 < good.size(); ++number) {
    for (std::size_t at = 0; at < good[number].size(); ++at) {
      std::vector<std::string> lines = good;
      lines[number][at] = lines[number][at] == '1' ? '2' : '1';
      AuditChain chain;
      const auto fault = first_fault(chain, lines);
      ASSERT_TRUE(fault) << lines[number];
      EXPECT_LE(fault->line, number + 2);
      EXPECT_GE(fault->line, number + 1);
    }
  }
}

TEST(AuditChainTest, TellsAChangedLineByTheHashInTheNext) {
  std::vector<std::string> lines = chain_of({start, dns, dns, end});
  lines[1].replace(lines[1].find("a.test"), 6, "b.test");
  expect_fault(lines, 3, What::hash);
}

TEST(AuditChainTest, TellsMissingAddedAndSwappedLines) {
  const std::vector<std::string> good = chain_of({start, dns, dns, restart, end});
  expect_fault({good[1], good[2]}, 1, What::sequence);
  expect_fault({good[0], good[2], good[3]}, 2, What::sequence);
  expect_fault({good[0], good[1], good[1], good[2]}, 3, What::sequence);
  expect_fault({good[0], good[2], good[1], good[3]}, 2, What::sequence);
}

TEST(AuditChainTest, TellsLinesOutsideOfARun) {
  expect_fault(chain_of({dns, end}), 1, What::start);
  expect_fault(chain_of({start, end, dns}), 3, What::start);
  std::vector<std::string> lines = chain_of({start});
  lines.push_back(line(2, dns, sha256_hex(lines.back()), "another"));
  expect_fault(lines, 2, What::start);
  expect_fault({line(1, start, sha256_hex("something"))}, 1, What::hash);
}

TEST(AuditChainTest, ACutLineIsNoFaultIfTheNextRunHoldsItsHash) {
  for (const std::string& after : {start, restart}) {
    std::vector<std::string> lines = chain_of({start});
    lines.emplace_back(R"({"seq":2,"ti)");
    lines.push_back(line(3, after, sha256_hex(lines.back())));
    AuditChain chain;
    EXPECT_FALSE(first_fault(chain, lines));
    EXPECT_EQ(chain.cut_lines(), std::vector<std::uint64_t>{2});
  }
}

TEST(AuditChainTest, GarbageIsAFaultOtherwise) {
  const std::string cut = R"({"seq":2,"ti)";
  std::vector<std::string> lines = chain_of({start});
  lines.push_back(cut);
  expect_fault(lines, 2, What::unreadable);
  // Only a start or restart follows a crash.
  expect_fault({lines[0], cut, line(3, dns, sha256_hex(cut))}, 2, What::unreadable);
  // Its bytes are held by the next line.
  expect_fault({lines[0], cut + "x", line(3, restart, sha256_hex(cut))}, 3, What::hash);
  // Of two in a row the first one is held by nothing.
  expect_fault({lines[0], cut, cut, line(4, restart, sha256_hex(cut))}, 2, What::unreadable);
}

TEST(AuditChainTest, AnEmptyLogHasLostItsStart) { expect_fault({}, 1, What::start); }

TEST(AuditChainTest, ALineThatIsBeingWrittenIsNoFault) {
  AuditChain chain;
  EXPECT_FALSE(chain.feed(chain_of({start})[0]));
  EXPECT_FALSE(chain.feed(R"({"seq":2)"));
  EXPECT_FALSE(chain.finish(false));
  EXPECT_EQ(chain.cut_lines(), std::vector<std::uint64_t>{2});
}

}  // namespace
}  // namespace capgate::egress
