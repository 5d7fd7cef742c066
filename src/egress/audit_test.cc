#include "egress/audit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/digest.h"
#include "base/text.h"
#include "egress/audit_read.h"
#include "support/temp_directory.h"
#include "sys/fd.h"
#include "sys/lines.h"

namespace capgate::egress {
namespace {

using Kind = AuditEvent::Kind;

const AuditLog::Origin github{.sandbox = "5f2c9a11", .server = "github"};

class AuditLogTest : public testing::Test {
 protected:
  [[nodiscard]] sys::Fd open() const {
    return sys::Fd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(std::string_view text) const { std::ofstream(path_, std::ios::binary) << text; }

  // The lines without their newlines; the file must end with one.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> found;
    const std::string whole = text();
    for (const std::string_view line : split(whole, '\n')) found.emplace_back(line);
    EXPECT_EQ(found.back(), "");
    found.pop_back();
    return found;
  }
  [[nodiscard]] AuditRecord record(std::size_t index) const {
    const auto read = read_audit_line(lines().at(index));
    EXPECT_TRUE(read) << read.error().message << " at " << read.error().offset << " of "
                      << lines().at(index);
    return read.value_or(AuditRecord{});
  }
  // The whole file is a chain without a fault; returns the lines that a crash cut.
  [[nodiscard]] std::vector<std::uint64_t> check_chain() const {
    AuditChain chain;
    for (const std::string& line : lines()) {
      const auto fault = chain.feed(line);
      EXPECT_FALSE(fault) << fault->line << ": " << fault->message;
    }
    EXPECT_FALSE(chain.finish(true));
    return chain.cut_lines();
  }

  test::TempDirectory directory_;
  std::string path_ = directory_.path("log.jsonl");
};

void append_all(AuditLog& log, std::initializer_list<AuditEvent> events) {
  for (const AuditEvent& event : events) EXPECT_TRUE(log.append(event)) << log.problem();
}

TEST_F(AuditLogTest, WritesEveryField) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::connect,
                    .flow = 7,
                    .host = "api.github.com",
                    .port = 443,
                    .address = "140.82.112.5",
                    .server_name = "api.github.com",
                    .protocol = "tls",
                    .allowed = false,
                    .rule = "net:connect:api.github.com:443",
                    .position = "github.json:12:7",
                    .reason = "no-rule",
                    .text = "a sentence",
                    .remedy = "net:connect:x:1",
                    .sent = 0,
                    .received = 18446744073709551615U,
                    .milliseconds = 12,
                    .count = 3}});
  const std::string line = lines().at(0);
  const std::string time = record(0).time;
  EXPECT_EQ(line, R"({"seq":1,"time":")" + time +
                      R"(","sandbox":"5f2c9a11","server":"github","event":"connect","flow":7,)"
                      R"("host":"api.github.com","port":443,"address":"140.82.112.5",)"
                      R"("serverName":"api.github.com","protocol":"tls","verdict":"denied",)"
                      R"("rule":"net:connect:api.github.com:443","at":"github.json:12:7",)"
                      R"("reason":"no-rule","text":"a sentence","remedy":"net:connect:x:1",)"
                      R"("sent":0,"received":18446744073709551615,"ms":12,"count":3,"prev":")" +
                      std::string(64, '0') + R"("})");
}

TEST_F(AuditLogTest, LeavesOutWhatIsNotThere) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::restart}});
  EXPECT_EQ(lines().at(0), R"({"seq":1,"time":")" + record(0).time +
                               R"(","sandbox":"5f2c9a11","server":"github","event":"restart",)"
                               R"("prev":")" +
                               std::string(64, '0') + R"("})");
}

TEST_F(AuditLogTest, TheTimeIsNow) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  const auto before = static_cast<std::uint64_t>(::time(nullptr)) * 1000;
  append_all(log, {{.kind = Kind::start}});
  const auto written = parse_audit_time(record(0).time);
  ASSERT_TRUE(written);
  EXPECT_GE(*written, before);
  EXPECT_LE(*written, static_cast<std::uint64_t>(::time(nullptr)) * 1000 + 1000);
}

TEST_F(AuditLogTest, EachLineHoldsTheHashOfTheOneBefore) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::start}, {.kind = Kind::dns, .host = "a"}, {.kind = Kind::end}});
  EXPECT_EQ(record(0).previous, std::string(64, '0'));
  EXPECT_EQ(record(1).previous, sha256_hex(lines().at(0)));
  EXPECT_EQ(record(2).previous, sha256_hex(lines().at(1)));
  EXPECT_EQ(record(2).sequence, 3U);
  EXPECT_TRUE(check_chain().empty());
}

TEST_F(AuditLogTest, ARestartedBrokerGoesOn) {
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    EXPECT_FALSE(log.goes_on());
    // Flows are not always decided in the order of their numbers.
    append_all(log, {{.kind = Kind::start},
                     {.kind = Kind::connect, .flow = 9},
                     {.kind = Kind::connect, .flow = 8},
                     {.kind = Kind::dns}});
  }
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  EXPECT_TRUE(log.goes_on());
  EXPECT_EQ(log.last_flow(), 9U);
  append_all(log, {{.kind = Kind::restart}, {.kind = Kind::end}});
  EXPECT_EQ(record(4).sequence, 5U);
  EXPECT_TRUE(check_chain().empty());
}

TEST_F(AuditLogTest, FindsTheLastFlowManyBlocksBack) {
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    append_all(log, {{.kind = Kind::start}, {.kind = Kind::connect, .flow = 77}});
    for (int i = 0; i < 2000; ++i) append_all(log, {{.kind = Kind::dns, .host = "a.test"}});
  }
  const sys::Fd file = open();
  EXPECT_EQ(AuditLog(file.get(), github).last_flow(), 77U);
}

TEST_F(AuditLogTest, AnotherRunInTheSameFileContinuesTheChain) {
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    append_all(log,
               {{.kind = Kind::start}, {.kind = Kind::connect, .flow = 4}, {.kind = Kind::end}});
  }
  const sys::Fd file = open();
  AuditLog log(file.get(), {.sandbox = "00000002", .server = "other"});
  EXPECT_FALSE(log.goes_on());
  EXPECT_EQ(log.last_flow(), 0U);
  append_all(log, {{.kind = Kind::start}, {.kind = Kind::end}});
  EXPECT_EQ(record(3).sequence, 4U);
  EXPECT_TRUE(check_chain().empty());
}

class TornLineTest : public AuditLogTest, public testing::WithParamInterface<std::size_t> {};

// However much of the last line a crash left: the chain goes on over it.
TEST_P(TornLineTest, IsEndedAndCounted) {
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    append_all(log,
               {{.kind = Kind::start}, {.kind = Kind::connect, .flow = 3}, {.kind = Kind::dns}});
  }
  const std::string whole = text();
  write(whole.substr(0, whole.size() - GetParam()));
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    EXPECT_TRUE(log.goes_on());
    EXPECT_EQ(log.last_flow(), 3U);
    append_all(log, {{.kind = Kind::restart}, {.kind = Kind::end}});
  }
  EXPECT_EQ(read_audit_line(lines().at(3))->sequence, 4U);
  const bool is_cut = GetParam() > 1;  // a line without its newline has lost nothing
  EXPECT_EQ(check_chain(), is_cut ? std::vector<std::uint64_t>{3} : std::vector<std::uint64_t>{});
}
INSTANTIATE_TEST_SUITE_P(LostBytes, TornLineTest, testing::Values(1, 2, 3, 40, 100, 150));

TEST_F(AuditLogTest, AFirstLineThatWasTornIsEndedToo) {
  write(R"({"seq":1,"time":"2026-11-)");
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::start}, {.kind = Kind::end}});
  EXPECT_EQ(check_chain(), std::vector<std::uint64_t>{1});
}

TEST_F(AuditLogTest, ASecondTornLineIsTakenBack) {
  {
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    append_all(log, {{.kind = Kind::start}});
  }
  write(text() + "{\"seq\":2,\"ti\n{\"seq\":3");
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::restart}, {.kind = Kind::end}});
  EXPECT_EQ(lines().at(1), "{\"seq\":2,\"ti");
  EXPECT_EQ(check_chain(), std::vector<std::uint64_t>{2});
}

TEST_F(AuditLogTest, LeavesAFileAloneThatIsNoAuditLog) {
  for (const std::string_view foreign :
       {"notes\n", "notes", "\n", "a\nb\nc", "{\"seq\":2,", "{\"seq\":1,\n{"}) {
    write(foreign);
    const sys::Fd file = open();
    AuditLog log(file.get(), github);
    EXPECT_FALSE(log.append({.kind = Kind::start})) << foreign;
    EXPECT_NE(log.problem(), "") << foreign;
    EXPECT_EQ(text(), foreign);
  }
  write(std::string(1 << 20, 'x'));
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  EXPECT_FALSE(log.append({.kind = Kind::start}));
}

TEST_F(AuditLogTest, ForeignTextIsPrintableAndCut) {
  EXPECT_EQ(audit_text("plain"), "plain");
  EXPECT_EQ(audit_text("a\nb\x7f\xff\\"), "a\\x0ab\\x7f\\xff\\x5c");
  EXPECT_EQ(audit_text(std::string(256, 'a')), std::string(256, 'a'));
  EXPECT_EQ(audit_text(std::string(257, 'a')), std::string(253, 'a') + "...");
  EXPECT_EQ(audit_text(std::string(64, '\n')).size(), 256U);
  // A cut never leaves half an escape.
  EXPECT_EQ(audit_text(std::string(65, '\n')).substr(248), "\\x0a...");
}

TEST_F(AuditLogTest, NoTextCanEndItsStringOrItsLine) {
  const std::string nasty = "a\",\"verdict\":\"allowed\"}\n{\"seq\":9\x1b[2J\xc3\xa4";
  const sys::Fd file = open();
  AuditLog log(file.get(), {.sandbox = nasty, .server = nasty});
  append_all(log, {{.kind = Kind::start,
                    .host = nasty,
                    .address = nasty,
                    .server_name = nasty,
                    .protocol = nasty,
                    .allowed = false,
                    .rule = nasty,
                    .position = nasty,
                    .reason = nasty,
                    .text = nasty,
                    .remedy = nasty}});
  ASSERT_EQ(lines().size(), 1U);
  const AuditRecord read = record(0);
  EXPECT_EQ(read.host, audit_text(nasty));
  EXPECT_EQ(read.server, audit_text(nasty));
  EXPECT_EQ(read.remedy, audit_text(nasty));
  EXPECT_EQ(read.allowed, false);
}

TEST_F(AuditLogTest, ALineIsBounded) {
  for (const char c : {'a', '"', '\\', '\n', '\xff'}) {
    const std::string huge(100'000, c);
    const sys::Fd file = open();
    AuditLog log(file.get(), {.sandbox = huge, .server = huge});
    append_all(log, {{.kind = Kind::restart,
                      .flow = UINT64_MAX,
                      .host = huge,
                      .port = 65535,
                      .address = huge,
                      .server_name = huge,
                      .protocol = huge,
                      .allowed = true,
                      .rule = huge,
                      .position = huge,
                      .reason = huge,
                      .text = huge,
                      .remedy = huge,
                      .sent = UINT64_MAX,
                      .received = UINT64_MAX,
                      .milliseconds = UINT64_MAX,
                      .count = UINT64_MAX}});
    EXPECT_LT(lines().back().size(), longest_audit_line / 2 + longest_audit_line / 4);
    (void)record(lines().size() - 1);
  }
}

// Runs `body` in a child whose files can have no more than `most` bytes. True if it returned true.
template <typename Body>
bool in_child_with_file_limit(std::size_t most, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    const bool is_good = ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && body();
    ::_exit(is_good ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(AuditLogTest, WhatIsWrittenOfALineIsTakenBack) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::start}});
  const std::string before = text();
  // Room for one more line, and for a part of another.
  const bool refused = in_child_with_file_limit(before.size() * 5 / 2, [&] {
    const bool second = log.append({.kind = Kind::restart});
    const bool third = log.append({.kind = Kind::restart});
    const bool fourth = log.append({.kind = Kind::restart});
    return second && !third && !fourth && !log.problem().empty();
  });
  EXPECT_TRUE(refused);
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_TRUE(check_chain().empty());
}

TEST_F(AuditLogTest, GoesOnWhenThereIsRoomAgain) {
  const sys::Fd file = open();
  AuditLog log(file.get(), github);
  append_all(log, {{.kind = Kind::start}});
  const std::string before = text();
  const bool went_on = in_child_with_file_limit(before.size() * 5 / 2, [&] {
    const std::string long_name(250, 'a');
    const bool is_refused = !log.append({.kind = Kind::dns, .host = long_name, .text = long_name});
    return is_refused && log.append({.kind = Kind::restart});
  });
  EXPECT_TRUE(went_on);
  AuditLog later(file.get(), github);
  append_all(later, {{.kind = Kind::end}});
  EXPECT_EQ(lines().size(), 3U);
  EXPECT_TRUE(check_chain().empty());
}

// A part of a line that cannot be removed would make one line of it and the next.
TEST_F(AuditLogTest, WritesNothingBehindAPartThatStays) {
  const sys::Fd file(::memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  AuditLog log(file.get(), github);
  ASSERT_TRUE(log.append({.kind = Kind::start}));
  const auto size = static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END));
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const bool refused = in_child_with_file_limit(RLIM_INFINITY, [&] {
    const rlimit little{.rlim_cur = size * 3 / 2, .rlim_max = RLIM_INFINITY};
    const rlimit enough{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    const bool first = ::setrlimit(RLIMIT_FSIZE, &little) == 0 && log.append({.kind = Kind::end});
    const bool second = ::setrlimit(RLIMIT_FSIZE, &enough) == 0 && log.append({.kind = Kind::end});
    return !first && !second && !log.problem().empty();
  });
  EXPECT_TRUE(refused);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), static_cast<off_t>(size * 3 / 2));
}

TEST_F(AuditLogTest, AFullDeviceIsAnError) {
  const sys::Fd full(::open("/dev/full", O_RDWR | O_APPEND | O_CLOEXEC));
  AuditLog log(full.get(), github);
  EXPECT_FALSE(log.append({.kind = Kind::start}));
  EXPECT_EQ(log.problem(), "No space left on device");
}

TEST_F(AuditLogTest, AFileThatCannotBeWrittenIsAnError) {
  write("");
  const sys::Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  AuditLog log(file.get(), github);
  EXPECT_FALSE(log.append({.kind = Kind::start}));
  AuditLog closed(-1, github);
  EXPECT_FALSE(closed.append({.kind = Kind::start}));
  EXPECT_EQ(closed.problem(), "Bad file descriptor");
}

// Another process reads while lines are written. The kernel may show a line that crosses a page
// before all of it is there, but never with its newline.
TEST_F(AuditLogTest, AReaderSeesWholeLines) {
  constexpr std::uint64_t count = 20'000;
  const sys::Fd file = open();
  const pid_t writer = ::fork();
  if (writer == 0) {
    AuditLog log(file.get(), github);
    bool is_good = log.append({.kind = Kind::start});
    for (std::uint64_t i = 1; i < count; ++i) is_good &= log.append({.kind = Kind::dns});
    ::_exit(is_good ? 0 : 1);
  }
  sys::LineReader reader(open(), longest_audit_line);
  AuditChain chain;
  int status = -1;
  bool is_over = false;
  while (chain.lines() < count && !is_over) {
    is_over = ::waitpid(writer, &status, WNOHANG) == writer;
    for (auto line = reader.next(); line && *line && (*line)->is_ended; line = reader.next()) {
      ASSERT_FALSE(chain.feed((*line)->text)) << (*line)->text;
    }
  }
  if (!is_over) ::waitpid(writer, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(chain.lines(), count);
}

}  // namespace
}  // namespace capgate::egress
