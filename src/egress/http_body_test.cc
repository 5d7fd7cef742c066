#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "egress/http.h"
#include "support/prefixes.h"

namespace capgate::egress {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

BodyReader chunked() { return BodyReader(HttpHead{.body = HttpHead::Body::chunked}); }
BodyReader of_length(std::uint64_t length) {
  return BodyReader(HttpHead{.body = HttpHead::Body::length, .length = length});
}

TEST(HttpBody, MayBeAbsent) {
  for (BodyReader reader : {BodyReader(), BodyReader(HttpHead{}), of_length(0)}) {
    EXPECT_TRUE(reader.is_done());
    EXPECT_EQ(reader.take("GET"), 0U);
    EXPECT_FALSE(reader.is_malformed());
  }
}

TEST(HttpBody, OfALengthEndsThere) {
  BodyReader reader = of_length(5);
  EXPECT_EQ(reader.take("abc"), 3U);
  EXPECT_FALSE(reader.is_done());
  EXPECT_EQ(reader.take(""), 0U);
  EXPECT_EQ(reader.take("deGET"), 2U);
  EXPECT_TRUE(reader.is_done());
  EXPECT_EQ(reader.take("GET"), 0U);
}

TEST(HttpBody, OfChunksEndsAfterTheLast) {
  constexpr auto body = "3\r\nabc\r\n00A\r\n0123456789\r\na\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"sv;
  BodyReader reader = chunked();
  EXPECT_EQ(reader.take(std::string(body) + "GET / "), body.size());
  EXPECT_TRUE(reader.is_done());
}

TEST(HttpBody, OfChunksIsStrict) {
  // Each is malformed at its last byte.
  constexpr std::string_view cases[] = {
      "\r",                 // no size
      ";",                  //
      " ",                  //
      "3 ",                 //
      "3;",                 // extension
      "3\n",                //
      "3\r\r",              //
      "0x",                 //
      "-",                  //
      "g",                  //
      "1\r\nab",            // longer than its size
      "1\r\na\n",           //
      "1\r\na\rx",          //
      "0\r\nA",             // trailer
      "0\r\n\n",            //
      "0\r\n\rx",           //
      "00000000000000003",  // 17 digits
      "8000000000000000",   // negative, for some
      "ffffffffffffffff",   //
  };
  for (const std::string_view bytes : cases) {
    BodyReader reader = chunked();
    EXPECT_EQ(reader.take(bytes), bytes.size() - 1) << bytes;
    EXPECT_TRUE(reader.is_malformed()) << bytes;
    EXPECT_FALSE(reader.is_done()) << bytes;
    EXPECT_EQ(reader.take("3\r\n"), 0U) << bytes;
    EXPECT_TRUE(reader.is_malformed()) << bytes;
  }
}

TEST(HttpBody, HasLargeChunks) {
  BodyReader reader = chunked();
  EXPECT_EQ(reader.take("7fffffffffffffff\r\nabc"), 21U);
  EXPECT_FALSE(reader.is_malformed());
  BodyReader padded = chunked();
  EXPECT_EQ(padded.take("0000000000000001\r\na\r\n0\r\n\r\nGET"), 26U);
  EXPECT_TRUE(padded.is_done());
}

RC_GTEST_PROP(HttpBody, EndsAtTheSameByteHoweverItIsCut, ()) {
  const auto chunks = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::arbitrary<std::string>()));
  std::string bytes;
  for (const std::string& chunk : chunks)
    bytes += format("{:x}\r\n", chunk.size()) + chunk + "\r\n";
  bytes += "0\r\n\r\n";
  const std::size_t size = bytes.size();
  bytes += "GET / HTTP/1.1\r\n";

  BodyReader reader = chunked();
  std::size_t taken = 0;
  while (!reader.is_done()) {
    RC_ASSERT(taken < size);
    const auto piece = *rc::gen::inRange<std::size_t>(1, 20);
    taken += reader.take(std::string_view(bytes).substr(taken, piece));
    RC_ASSERT(!reader.is_malformed());
  }
  RC_ASSERT(taken == size);
}

RC_GTEST_PROP(HttpBody, IsMalformedAtTheSameByteHoweverItIsCut, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::elementOf("012\r\n;a"s));
  BodyReader whole = chunked();
  const std::size_t size = whole.take(bytes);
  BodyReader single = chunked();
  std::size_t taken = 0;
  for (const char c : bytes) taken += single.take({&c, 1});
  RC_ASSERT(taken == size);
  RC_ASSERT(single.is_done() == whole.is_done());
  RC_ASSERT(single.is_malformed() == whole.is_malformed());
}

TEST(HttpStatus, IsInTheFirstBytes) {
  EXPECT_EQ(read_http_status("HTTP/1.1 101 Switching Protocols\r\n").status, 101);
  EXPECT_EQ(read_http_status("HTTP/1.0 200 OK").status, 200);
  EXPECT_EQ(read_http_status("HTTP/1.1 204\r").status, 204);
  EXPECT_EQ(read_http_status("HTTP/1.1 999 ").progress, Progress::done);
  const auto bytes = "HTTP/1.1 101 "sv;
  const auto read = [bytes](std::size_t size) {
    return read_http_status(bytes.substr(0, size)).progress;
  };
  EXPECT_EQ(support::find_decision(bytes.size(), read), bytes.size());
  for (const auto other :
       {"X"sv, "http"sv, "HTTP/2"sv, "HTTP/1.2"sv, "HTTP/1.1\t"sv, "HTTP/1.1 x"sv,
        "HTTP/1.1 1011"sv, "HTTP/1.1 099"sv, "HTTP/1.1  "sv, "HTTP/1.1 101\n"sv, "\0"sv}) {
    EXPECT_EQ(read_http_status(other).progress, Progress::other) << other;
  }
}

}  // namespace
}  // namespace capgate::egress
