#include "egress/hello.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "support/hellos.h"
#include "support/prefixes.h"

namespace capgate::egress {
namespace {

using support::append;
using support::ByteVector;
using support::concat;
using support::extension;
using support::hello_body;
using support::hello_message;
using support::hello_with;
using support::HelloParts;
using support::name_entry;
using support::record;
using support::server_name;
using support::vector;

HelloReading read(const ByteVector& bytes) { return read_client_hello(bytes); }
Progress progress(const ByteVector& bytes) { return read(bytes).progress; }
Progress progress(const HelloParts& parts) {
  return progress(record(hello_message(hello_body(parts))));
}

auto prefix_reader(const ByteVector& bytes) {
  return [&bytes](std::size_t size) {
    return read_client_hello(std::span(bytes).first(size)).progress;
  };
}

// One record for each size, the rest in a last one.
ByteVector in_records(const ByteVector& message, const std::vector<std::size_t>& sizes) {
  ByteVector bytes;
  auto at = message.begin();
  for (const std::size_t size : sizes) {
    const auto left = static_cast<std::size_t>(message.end() - at);
    const auto end = at + static_cast<std::ptrdiff_t>(std::min(size, left));
    if (end != at) append(bytes, record(ByteVector(at, end)));
    at = end;
  }
  if (at != message.end()) append(bytes, record(ByteVector(at, message.end())));
  return bytes;
}

ByteVector message_of(const ByteVector& one_record) {
  return {one_record.begin() + 5, one_record.end()};
}

// ---- Valid hellos -------------------------------------------------------------------------------

TEST(ClientHello, OfRealClientsIsRead) {
  const HelloReading newer = read(support::from_hex(support::openssl_tls13));
  EXPECT_EQ(newer.progress, Progress::done);
  EXPECT_TRUE(newer.hello.has_server_name);
  EXPECT_EQ(newer.hello.server_name, "api.github.com");
  EXPECT_FALSE(newer.hello.encrypted_hello);

  const HelloReading older = read(support::from_hex(support::openssl_tls12));
  EXPECT_EQ(older.progress, Progress::done);
  EXPECT_EQ(older.hello.server_name, "objects.github.com");

  const HelloReading nameless = read(support::from_hex(support::openssl_nameless));
  EXPECT_EQ(nameless.progress, Progress::done);
  EXPECT_FALSE(nameless.hello.has_server_name);
  EXPECT_EQ(nameless.hello.server_name, "");
}

TEST(ClientHello, OfABrowserTellsOfItsEncryptedPart) {
  const HelloReading reading = read(support::browser_hello("www.example.org"));
  EXPECT_EQ(reading.progress, Progress::done);
  EXPECT_EQ(reading.hello.server_name, "www.example.org");
  EXPECT_TRUE(reading.hello.encrypted_hello);
}

TEST(ClientHello, MayHaveNoExtensionsAtAll) {
  EXPECT_EQ(progress(hello_with({})), Progress::done);
  ByteVector body = hello_body({});
  body.resize(body.size() - 2);
  const HelloReading reading = read(record(hello_message(body)));
  EXPECT_EQ(reading.progress, Progress::done);
  EXPECT_FALSE(reading.hello.has_server_name);
}

TEST(ClientHello, IsDoneAtItsLastByte) {
  for (const std::string_view digits :
       {support::openssl_tls13, support::openssl_tls12, support::openssl_nameless}) {
    const ByteVector bytes = support::from_hex(digits);
    EXPECT_EQ(support::find_decision(bytes.size(), prefix_reader(bytes)), bytes.size());
  }
}

TEST(ClientHello, IsReadFromRecordsOfOneByte) {
  const ByteVector message = message_of(support::browser_hello("a.example"));
  const HelloReading reading = read(in_records(message, std::vector<std::size_t>(4096, 1)));
  EXPECT_EQ(reading.progress, Progress::done);
  EXPECT_EQ(reading.hello.server_name, "a.example");
}

TEST(ClientHello, MayBeFollowedByOtherRecords) {
  ByteVector bytes = hello_with({server_name("a.example")});
  append(bytes, record({1, 2, 3}, 23, 0x0303));  // early data
  EXPECT_EQ(read(bytes).hello.server_name, "a.example");
}

RC_GTEST_PROP(ClientHello, IsTheSameInAnyRecords, ()) {
  const auto name = *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::map(rc::gen::inRange(1, 256), [](int byte) {  //
        return static_cast<char>(byte);
      })));
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 90));
  std::vector<ByteVector> extensions = {extension(0x2a2a, {}), server_name(name)};
  const bool encrypted = *rc::gen::arbitrary<bool>();
  if (encrypted) extensions.push_back(extension(0xfe0d, {0, 1, 2}));
  const ByteVector bytes = in_records(message_of(hello_with(extensions)), sizes);

  const HelloReading reading = read(bytes);
  RC_ASSERT(reading.progress == Progress::done);
  RC_ASSERT(reading.hello.server_name == name);
  RC_ASSERT(reading.hello.encrypted_hello == encrypted);
  RC_ASSERT(support::find_decision(bytes.size(), prefix_reader(bytes)) == bytes.size());
}

RC_GTEST_PROP(ClientHello, DecidesOnce, ()) {
  ByteVector bytes = hello_with({server_name("a.example"), extension(0xfe0d, {1})});
  bytes = in_records(message_of(bytes), {*rc::gen::inRange<std::size_t>(1, 40)});
  const auto changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  }
  append(bytes, *rc::gen::arbitrary<ByteVector>());
  RC_ASSERT(support::keeps_decision(bytes.size(), prefix_reader(bytes)));
}

// ---- Other protocols ----------------------------------------------------------------------------

TEST(ClientHello, IsToldFromOtherProtocolsAtTheFirstByte) {
  EXPECT_EQ(progress(ByteVector{}), Progress::more);
  EXPECT_EQ(progress(ByteVector{0x16}), Progress::more);
  EXPECT_EQ(progress(ByteVector{0x16, 0x03}), Progress::more);
  EXPECT_EQ(progress(ByteVector{'G'}), Progress::other);
  EXPECT_EQ(progress(ByteVector{0x80, 0x2e, 0x01, 0x03, 0x01}), Progress::other);  // SSL 2
  EXPECT_EQ(progress(ByteVector{0x15, 0x03}), Progress::more);  // an alert may come before it
  EXPECT_EQ(progress(ByteVector{0x15, 0x03, 0x01, 0x00}), Progress::malformed);
  EXPECT_EQ(progress(ByteVector{0x15, 0x03, 0x00, 0x01}), Progress::other);
  EXPECT_EQ(progress(ByteVector{0x16, 0x02}), Progress::other);
  EXPECT_EQ(progress(ByteVector{0x16, 0x04}), Progress::other);
}

// ---- Malformed records --------------------------------------------------------------------------

TEST(ClientHello, HasAVersionOfTls) {
  const ByteVector message = hello_message(hello_body({}));
  for (const std::size_t version : {0x0301U, 0x0302U, 0x0303U}) {
    EXPECT_EQ(progress(record(message, 22, version)), Progress::done);
    EXPECT_EQ(progress(HelloParts{.version = version}), Progress::done);
  }
  for (const std::size_t version : {0x0300U, 0x0304U, 0x03ffU}) {
    EXPECT_EQ(progress(record(message, 22, version)), Progress::malformed);
    EXPECT_EQ(progress(HelloParts{.version = version}), Progress::malformed);
  }
  EXPECT_EQ(progress(HelloParts{.version = 0x0203}), Progress::malformed);
  EXPECT_EQ(progress(ByteVector{0x16, 0x03, 0x00}), Progress::malformed);
}

TEST(ClientHello, HasRecordsOfAnAllowedSize) {
  EXPECT_EQ(progress(ByteVector{22, 3, 1, 0, 0}), Progress::malformed);
  EXPECT_EQ(progress(ByteVector{22, 3, 1, 0x40, 0x00}), Progress::more);
  EXPECT_EQ(progress(ByteVector{22, 3, 1, 0x40, 0x01}), Progress::malformed);
  const ByteVector message = message_of(hello_with({server_name("a.example")}));
  ByteVector interrupted = record({message.begin(), message.begin() + 9});
  append(interrupted, record({}));
  append(interrupted, record({message.begin() + 9, message.end()}));
  EXPECT_EQ(progress(interrupted), Progress::malformed);
}

TEST(ClientHello, IsNotInterruptedByOtherRecords) {
  const ByteVector message = message_of(hello_with({server_name("a.example")}));
  const ByteVector begin = record({message.begin(), message.begin() + 9});
  for (const std::uint8_t type : ByteVector{20, 21, 23, 24, 0, 0x80}) {
    EXPECT_EQ(progress(concat({begin, {type}})), Progress::malformed);
  }
  EXPECT_EQ(progress(concat({begin, {22, 2}})), Progress::malformed);
  EXPECT_EQ(progress(concat({begin, {22, 3, 0}})), Progress::malformed);
}

TEST(ClientHello, IsAloneInItsLastRecord) {
  ByteVector message = hello_message(hello_body({}));
  append(message, {11, 0, 0, 0});
  EXPECT_EQ(progress(record(message)), Progress::malformed);
  EXPECT_EQ(progress(in_records(message, {7})), Progress::malformed);
}

TEST(ClientHello, IsTheFirstMessage) {
  EXPECT_EQ(progress(record({2})), Progress::malformed);
  EXPECT_EQ(progress(record({0, 0, 0, 0})), Progress::malformed);
}

TEST(ClientHello, IsNotLongerThan64Kilobytes) {
  EXPECT_EQ(progress(record({1, 1, 0, 0})), Progress::more);
  EXPECT_EQ(progress(record({1, 1, 0, 1})), Progress::malformed);
  EXPECT_EQ(progress(record({1, 0xff, 0xff, 0xff})), Progress::malformed);
  const std::size_t other_parts = hello_body({.extensions = {extension(21, {})}}).size();
  const HelloParts longest{.extensions = {extension(21, ByteVector(65536 - other_parts))}};
  const ByteVector bytes =
      in_records(hello_message(hello_body(longest)), std::vector<std::size_t>(4, 16384));
  EXPECT_EQ(progress(bytes), Progress::done);
  EXPECT_EQ(progress(ByteVector(bytes.begin(), bytes.end() - 1)), Progress::more);
}

// ---- Malformed messages -------------------------------------------------------------------------

TEST(ClientHello, HasFieldsOfAllowedSizes) {
  EXPECT_EQ(progress(HelloParts{.session = {}}), Progress::done);
  EXPECT_EQ(progress(HelloParts{.session = ByteVector(33)}), Progress::malformed);
  EXPECT_EQ(progress(HelloParts{.suites = {}}), Progress::malformed);
  EXPECT_EQ(progress(HelloParts{.suites = {0x13, 0x01, 0x13}}), Progress::malformed);
  EXPECT_EQ(progress(HelloParts{.compressions = {}}), Progress::malformed);
  EXPECT_EQ(progress(HelloParts{.after = {0}}), Progress::malformed);
  EXPECT_EQ(progress(record(hello_message({}))), Progress::malformed);
}

TEST(ClientHello, EndsNowhereButAtTheEndOfAField) {
  const ByteVector body = hello_body({.extensions = {server_name("a.example")}});
  std::size_t without_extensions = hello_body({}).size() - 2;
  for (std::size_t size = 0; size < body.size(); ++size) {
    const ByteVector cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size));
    const Progress expected = size == without_extensions ? Progress::done : Progress::malformed;
    EXPECT_EQ(progress(record(hello_message(cut))), expected) << size;
  }
}

TEST(ClientHello, HasExactExtensions) {
  EXPECT_EQ(progress(hello_with({{0}})), Progress::malformed);
  EXPECT_EQ(progress(hello_with({{0, 21, 0}})), Progress::malformed);
  EXPECT_EQ(progress(hello_with({{0, 21, 0, 1}})), Progress::malformed);
  EXPECT_EQ(progress(hello_with({{0, 21, 0, 1, 0, 9}})), Progress::malformed);
}

TEST(ClientHello, HasOneNameAtMost) {
  const ByteVector name = server_name("a.example");
  EXPECT_EQ(progress(hello_with({name, name})), Progress::malformed);
  EXPECT_EQ(progress(hello_with({name, extension(21, {}), server_name("b.example")})),
            Progress::malformed);
  const auto named = [](const ByteVector& list) {
    return progress(hello_with({extension(0, list)}));
  };
  EXPECT_EQ(named(vector(2, name_entry("a.example"))), Progress::done);
  EXPECT_EQ(named(vector(2, concat({name_entry("a.example"), name_entry("b.example")}))),
            Progress::malformed);
  EXPECT_EQ(named(vector(2, concat({name_entry("a.example"), name_entry("b.example", 1)}))),
            Progress::malformed);
  EXPECT_EQ(named(vector(2, name_entry("a.example", 1))), Progress::malformed);
  EXPECT_EQ(named({}), Progress::malformed);
  EXPECT_EQ(named(vector(2, {})), Progress::malformed);
  EXPECT_EQ(named(vector(2, name_entry(""))), Progress::malformed);
  EXPECT_EQ(named(concat({vector(2, name_entry("a.example")), {0}})), Progress::malformed);
  EXPECT_EQ(named(vector(2, concat({name_entry("a.example"), {0}}))), Progress::malformed);
}

TEST(ClientHello, HasNoNulInItsName) {
  using namespace std::string_view_literals;
  for (const std::string_view name : {"\0"sv, "a.example\0.b.example"sv, "a.example\0"sv}) {
    EXPECT_EQ(progress(hello_with({server_name(name)})), Progress::malformed);
  }
}

TEST(ClientHello, HasOneEncryptedPartAtMost) {
  const ByteVector encrypted = extension(0xfe0d, {0});
  EXPECT_EQ(progress(hello_with({encrypted, encrypted})), Progress::malformed);
  EXPECT_TRUE(read(hello_with({encrypted})).hello.encrypted_hello);
  EXPECT_FALSE(read(hello_with({extension(0xfe0c, {0})})).hello.encrypted_hello);
}

}  // namespace
}  // namespace capgate::egress
