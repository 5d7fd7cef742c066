#include "egress/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "gtest/gtest.h"
#include "sys/fd.h"

namespace capgate::egress {
namespace {

std::string contents(const sys::Fd& file) {
  std::string text(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

struct Written {
  Loop loop;
  Policy policy{.server = "test", .sandbox = "1", .hash = "0"};
  sys::Fd log{::memfd_create("audit", MFD_CLOEXEC)};
  sys::Fd errors{::memfd_create("stderr", MFD_CLOEXEC)};
  Journal journal{loop, policy, log.get(), errors.get()};
};

DnsReply denied(std::string name) {
  return {.kind = DnsReply::Kind::denied, .size = 12, .name = std::move(name), .type = 1};
}

// A line for each would let a server fill the disk.
TEST(Journal, TellsOfEndlessNamesThatTheyAreTooMany) {
  Written written;
  for (int i = 0; i < 20'000; ++i) written.journal.tell_dns(denied(format("n{}.test", i)));
  const std::string log = contents(written.log);
  EXPECT_LT(std::ranges::count(log, '\n'), 600);
  EXPECT_LT(std::ranges::count(contents(written.errors), '\n'), 600);
  EXPECT_NE(log.find("\"n0.test\""), std::string::npos);
  const std::size_t limit = log.find("\"reason\":\"subjects\"");
  EXPECT_NE(limit, std::string::npos);
  EXPECT_EQ(log.find("\"reason\":\"subjects\"", limit + 1), std::string::npos);
}

TEST(Journal, TellsOfALimitAfterEndlessNames) {
  Written written;
  for (int i = 0; i < 20'000; ++i) written.journal.tell_dns(denied(format("n{}.test", i)));
  written.journal.tell_limit("connections", "too many connections at once");
  EXPECT_NE(contents(written.log).find("\"reason\":\"connections\""), std::string::npos);
  EXPECT_NE(contents(written.errors).find("too many connections at once"), std::string::npos);
}

}  // namespace
}  // namespace capgate::egress
