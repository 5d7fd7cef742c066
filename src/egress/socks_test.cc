#include "egress/socks.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "support/prefixes.h"

namespace capgate::egress {
namespace {

using ByteVector = std::vector<std::uint8_t>;

SocksGreeting greeting(const ByteVector& bytes) { return read_socks_greeting(bytes); }
SocksRequest request(const ByteVector& bytes) { return read_socks_request(bytes); }

auto greeting_reader(const ByteVector& bytes) {
  return [&bytes](std::size_t size) {
    return read_socks_greeting(std::span(bytes).first(size)).progress;
  };
}
auto request_reader(const ByteVector& bytes) {
  return [&bytes](std::size_t size) {
    return read_socks_request(std::span(bytes).first(size)).progress;
  };
}

ByteVector request_for(std::string_view name, std::uint16_t port) {
  ByteVector bytes = {5, 1, 0, 3, static_cast<std::uint8_t>(name.size())};
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.push_back(static_cast<std::uint8_t>(port >> 8U));
  bytes.push_back(static_cast<std::uint8_t>(port & 0xffU));
  return bytes;
}

// ---- The greeting -------------------------------------------------------------------------------

TEST(SocksGreeting, OffersMethods) {
  const SocksGreeting plain = greeting({5, 1, 0});
  EXPECT_EQ(plain.progress, Progress::done);
  EXPECT_EQ(plain.size, 3U);
  EXPECT_TRUE(plain.without_authentication);

  const SocksGreeting both = greeting({5, 2, 2, 0, 5, 1});
  EXPECT_EQ(both.size, 4U);
  EXPECT_TRUE(both.without_authentication);

  const SocksGreeting password = greeting({5, 1, 2, 0});
  EXPECT_EQ(password.progress, Progress::done);
  EXPECT_FALSE(password.without_authentication);
  EXPECT_TRUE(password.with_password);
  EXPECT_FALSE(plain.with_password);
}

TEST(SocksPassword, IsReadInAnyPieces) {
  const ByteVector bytes = {1, 2, 'm', 'e', 3, 'a', 'b', 'c', 5};
  for (std::size_t size = 0; size < 8; ++size) {
    EXPECT_EQ(read_socks_password(std::span(bytes).first(size)).progress, Progress::more) << size;
  }
  const SocksPassword read = read_socks_password(bytes);
  EXPECT_EQ(read.progress, Progress::done);
  EXPECT_EQ(read.size, 8U);
  EXPECT_EQ(read.user, "me");
  EXPECT_EQ(read.password, "abc");
  const ByteVector empty = {1, 0, 0};
  EXPECT_EQ(read_socks_password(empty).size, 3U);
  const ByteVector other = {5, 0, 0};
  EXPECT_EQ(read_socks_password(other).progress, Progress::malformed);
}

TEST(SocksGreeting, IsToldFromOtherProtocols) {
  EXPECT_EQ(greeting({}).progress, Progress::more);
  EXPECT_EQ(greeting({5}).progress, Progress::more);
  EXPECT_EQ(greeting({4}).progress, Progress::other);  // SOCKS 4
  EXPECT_EQ(greeting({'C', 'O', 'N'}).progress, Progress::other);
  EXPECT_EQ(greeting({5, 0}).progress, Progress::malformed);
}

RC_GTEST_PROP(SocksGreeting, IsDoneAtItsLastByte, ()) {
  auto methods = *rc::gen::nonEmpty(rc::gen::arbitrary<ByteVector>());
  if (methods.size() > 255) methods.resize(255);
  ByteVector bytes = {5, static_cast<std::uint8_t>(methods.size())};
  bytes.insert(bytes.end(), methods.begin(), methods.end());
  const std::size_t size = bytes.size();
  RC_ASSERT(support::find_decision(size, greeting_reader(bytes)) == size);
  const auto more = *rc::gen::arbitrary<ByteVector>();
  bytes.insert(bytes.end(), more.begin(), more.end());
  RC_ASSERT(support::keeps_decision(bytes.size(), greeting_reader(bytes)));
  RC_ASSERT(greeting(bytes).size == size);
}

// ---- The request --------------------------------------------------------------------------------

TEST(SocksRequest, NamesAHost) {
  const SocksRequest read = request(request_for("api.github.com", 443));
  EXPECT_EQ(read.progress, Progress::done);
  EXPECT_EQ(read.problem, SocksReply::succeeded);
  EXPECT_EQ(read.host, "api.github.com");
  EXPECT_EQ(read.port, 443);
  EXPECT_EQ(read.size, 21U);
}

TEST(SocksRequest, NamesAnAddress) {
  const SocksRequest ipv4 = request({5, 1, 0, 1, 192, 0, 2, 255, 0x15, 0x38, 'x'});
  EXPECT_EQ(ipv4.progress, Progress::done);
  EXPECT_EQ(ipv4.host, "192.0.2.255");
  EXPECT_EQ(ipv4.port, 5432);
  EXPECT_EQ(ipv4.size, 10U);

  ByteVector bytes = {5, 1, 0, 4, 0x20, 0x01, 0x0d, 0xb8};
  bytes.resize(19);
  bytes.insert(bytes.end(), {1, 0, 80});
  const SocksRequest ipv6 = request(bytes);
  EXPECT_EQ(ipv6.progress, Progress::done);
  EXPECT_EQ(ipv6.host, "[2001:db8::1]");
  EXPECT_EQ(ipv6.port, 80);
  EXPECT_EQ(ipv6.size, 22U);
}

TEST(SocksRequest, KeepsTheNameAsSent) {
  using namespace std::string_view_literals;
  EXPECT_EQ(request(request_for("a\0b"sv, 1)).host, "a\0b"sv);
  EXPECT_EQ(request(request_for(std::string(255, 'a'), 1)).host, std::string(255, 'a'));
}

TEST(SocksRequest, WantsACommandThatIsServed) {
  for (const std::uint8_t command : ByteVector{0, 2, 3, 4, 255}) {
    ByteVector bytes = request_for("a.example", 443);
    bytes[1] = command;
    const SocksRequest read = request(bytes);
    EXPECT_EQ(read.progress, Progress::done);
    EXPECT_EQ(read.problem, SocksReply::command_not_supported);
    EXPECT_EQ(read.size, bytes.size());
  }
}

TEST(SocksRequest, WantsAKnownAddressType) {
  for (const std::uint8_t type : ByteVector{0, 2, 5, 255}) {
    const SocksRequest read = request({5, 1, 0, type, 1, 2, 3});
    EXPECT_EQ(read.progress, Progress::done);
    EXPECT_EQ(read.problem, SocksReply::address_type_not_supported);
    EXPECT_EQ(read.size, 4U);
  }
  EXPECT_EQ(request({5, 2, 0, 9}).problem, SocksReply::command_not_supported);
}

TEST(SocksRequest, IsRefusedWhereItIsMalformed) {
  EXPECT_EQ(request({4}).progress, Progress::malformed);
  EXPECT_EQ(request({5, 1, 1}).progress, Progress::malformed);
  EXPECT_EQ(request({5, 1, 0, 3, 0}).progress, Progress::malformed);
}

RC_GTEST_PROP(SocksRequest, IsDoneAtItsLastByte, ()) {
  auto name = *rc::gen::nonEmpty(rc::gen::arbitrary<std::string>());
  if (name.size() > 255) name.resize(255);
  const auto port = *rc::gen::arbitrary<std::uint16_t>();
  ByteVector bytes = request_for(name, port);
  const std::size_t size = bytes.size();
  RC_ASSERT(support::find_decision(size, request_reader(bytes)) == size);
  bytes.push_back(5);
  const SocksRequest read = request(bytes);
  RC_ASSERT(read.progress == Progress::done);
  RC_ASSERT(read.size == size);
  RC_ASSERT(read.host == name);
  RC_ASSERT(read.port == port);
}

RC_GTEST_PROP(SocksRequest, DecidesOnce, ()) {
  ByteVector bytes = request_for("a.example", 443);
  const auto at = *rc::gen::inRange<std::size_t>(0, 8);
  bytes[at] = *rc::gen::inRange<std::uint8_t>(0, 12);
  RC_ASSERT(support::keeps_decision(bytes.size(), request_reader(bytes)));
}

// ---- The answer ---------------------------------------------------------------------------------

TEST(SocksAnswer, HasTenBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(socks_answer(SocksReply::succeeded), "\5\0\0\1\0\0\0\0\0\0"sv);
  EXPECT_EQ(socks_answer(SocksReply::address_type_not_supported), "\5\10\0\1\0\0\0\0\0\0"sv);
}

}  // namespace
}  // namespace capgate::egress
