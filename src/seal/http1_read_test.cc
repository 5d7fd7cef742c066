#include "seal/http1_read.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "seal/http1_body.h"

namespace capgate::seal {
namespace {

using namespace std::string_literals;
using Kind = Framing::Kind;

std::string request_with(std::string_view line) {
  return "GET /a HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n";
}
std::string_view flaw_of(std::string_view bytes) {
  const auto head = read_request_head(bytes);
  return head ? "" : head.error();
}
std::string_view response_flaw_of(std::string_view bytes) {
  const auto head = read_response_head(bytes);
  return head ? "" : head.error();
}

TEST(FindHeadEnd, IsWhereTheMostLenientReaderEnds) {
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n\r\nrest", 0), 24U);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\n\nrest", 0), 16U);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\n\r\nrest", 0), 17U);
  EXPECT_EQ(find_head_end("\r\nGET", 0), 2U);
  EXPECT_EQ(find_head_end("\nGET", 0), 1U);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n\r", 0), 0U);
  EXPECT_EQ(find_head_end("", 0), 0U);
}

TEST(FindHeadEnd, GoesOnWhereItWas) {
  const std::string bytes = "GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
  for (std::size_t size = 0; size < 24; ++size) {
    EXPECT_EQ(find_head_end(bytes.substr(0, size), 0), 0U);
    EXPECT_EQ(find_head_end(bytes, size), 24U) << size;
  }
}

TEST(RequestHead, IsWrittenAsItWasRead) {
  const std::string bytes =
      "POST /a?b=%20 HTTP/1.1\r\nhOST:a\r\nX-Odd:  \t two words \t\r\nX-None:\r\nx-none: \r\n"
      "X-Twice: 1\r\nX-Twice: 2\r\nX-Latin: \xe9\r\nContent-Length: 5\r\n\r\n";
  const auto head = read_request_head(bytes);
  ASSERT_TRUE(head) << head.error();
  EXPECT_EQ(head->request.method, "POST");
  EXPECT_EQ(head->request.target, "/a?b=%20");
  EXPECT_EQ(head->request.authority, "a");
  EXPECT_EQ(head->request.fields[1].value, "two words");
  EXPECT_EQ(head->body, (Framing{.kind = Kind::length, .length = 5}));
  EXPECT_EQ(write_request_head(head->request, head->request.fields, head->spacing), bytes);
}

TEST(RequestHead, KeepsTheSpacingOfWhatIsLeft) {
  auto head = read_request_head("GET / HTTP/1.1\r\nHost:a\r\nRange:b\r\nC:  d\r\nE:f\r\n\r\n");
  ASSERT_TRUE(head);
  const std::vector<Field> as_read = head->request.fields;
  auto& fields = head->request.fields;
  fields.erase(fields.begin() + 1);
  fields[1].value = "other";
  fields.push_back({.name = "New", .value = "g"});
  EXPECT_EQ(write_request_head(head->request, as_read, head->spacing),
            "GET / HTTP/1.1\r\nHost:a\r\nC:  other\r\nE:f\r\nNew: g\r\n\r\n");
}

TEST(RequestHead, SaysHowTheConnectionGoesOn) {
  using enum RequestHead::Upgrade;
  EXPECT_EQ(read_request_head(request_with("Upgrade: WebSocket"))->upgrade, websocket);
  EXPECT_EQ(read_request_head(request_with("Upgrade: h2c"))->upgrade, other);
  EXPECT_EQ(read_request_head(request_with("Upgrade: websocket, h2c"))->upgrade, other);
  EXPECT_EQ(read_request_head(request_with("Upgrade: websocket\r\nUpgrade: h2c"))->upgrade, other);
  EXPECT_EQ(read_request_head(request_with("A: b"))->upgrade, none);
  EXPECT_TRUE(read_request_head(request_with("Expect: 100-Continue"))->expects_continue);
  EXPECT_EQ(read_request_head(request_with("Transfer-Encoding: Chunked"))->body.kind,
            Kind::chunked);
  EXPECT_EQ(read_request_head(request_with("Content-Length: 0"))->body.kind, Kind::none);
}

TEST(RequestHead, AbsoluteTargetsOfTheSameHostBecomeOriginForm) {
  const auto with = [](std::string_view target) {
    return read_request_head("GET " + std::string(target) + " HTTP/1.1\r\nHost: a.b:443\r\n\r\n");
  };
  EXPECT_EQ(with("https://A.b:443/c?d")->request.target, "/c?d");
  EXPECT_EQ(with("https://a.b:443")->request.target, "/");
  EXPECT_EQ(with("https://a.b:443?d")->request.target, "/?d");
  for (const std::string_view target :
       {"https://a.c/", "https://a.b/", "http://a.b:443/", "https:///", "https://u@a.b:443/",
        "ftp://a.b:443/", "a.b:443", "*", "/a#b", "/a b", "/\xe9", ""}) {
    EXPECT_FALSE(with(target)) << target;
  }
}

TEST(RequestHead, IsRefusedWhereReadersDiffer) {
  const std::string_view lines[] = {
      "Content-Length: 1\r\nContent-Length: 1",
      "Content-Length: 1\r\nTransfer-Encoding: chunked",
      "Transfer-Encoding: chunked\r\nContent-Length: 1",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
      "Transfer-Encoding: gzip, chunked",
      "Transfer-Encoding: xchunked",
      "Transfer-Encoding:",
      "Content-Length: +1",
      "Content-Length: 1, 1",
      "Content-Length: 0x1",
      "Content-Length:",
      "Content-Length: 99999999999999999999",
      "Content-Length: 9223372036854775808",
      "Host: a",
      "hOsT: b",
      "A: b\nC: d",
      "A: b\rC: d",
      "A: b\r\n c",
      "A: b\r\n\tc",
      "A : b",
      " A: b",
      "A\t: b",
      ": b",
      "A",
      "A: \x01",
      "A: \x7f",
      "A(: b",
      "A\xe9: b",
  };
  EXPECT_EQ(flaw_of(request_with("A: b")), "");
  for (const std::string_view line : lines) EXPECT_NE(flaw_of(request_with(line)), "") << line;
  EXPECT_NE(flaw_of(request_with("A: \0"s)), "");
}

TEST(RequestHead, OtherFirstLinesAreRefused) {
  const std::string_view lines[] = {
      "GET / HTTP/1.0\r\n",  "GET / HTTP/2.0\r\n",         "GET /\r\n",
      "GET  / HTTP/1.1\r\n", "GET / HTTP/1.1 \r\n",        "GET / HTTP/1.1\n",
      " GET / HTTP/1.1\r\n", "\r\nGET / HTTP/1.1\r\n",     "G(T / HTTP/1.1\r\n",
      "GET\t/ HTTP/1.1\r\n", "CONNECT a:443 HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n",
      "GET / http/1.1\r\n",  "GET * HTTP/1.1\r\n",
  };
  for (const std::string_view line : lines) {
    EXPECT_NE(flaw_of(std::string(line) + "Host: a\r\n\r\n"), "") << line;
  }
  EXPECT_EQ(flaw_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  EXPECT_EQ(flaw_of("GET / HTTP/1.1\r\n\r\n"), "has no Host");
}

TEST(ResponseHead, IsWrittenAsItWasRead) {
  for (const std::string_view bytes :
       {"HTTP/1.1 200 OK\r\nA:b\r\nSet-Cookie: c  \r\n\r\n", "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 \r\n\r\n", "HTTP/1.0 404 Not  Found\xe9\r\nConnection: keep-alive\r\n\r\n"}) {
    const auto head = read_response_head(bytes);
    ASSERT_TRUE(head) << bytes;
    EXPECT_EQ(write_response_head(*head), bytes);
  }
}

TEST(ResponseHead, SaysWhereTheBodyEnds) {
  const auto with = [](std::string_view line) {
    return *read_response_head("HTTP/1.1 200 OK\r\n" + std::string(line) + "\r\n\r\n");
  };
  EXPECT_EQ(with("A: b").body.kind, Kind::until_close);
  EXPECT_EQ(with("Content-Length: 7").body, (Framing{.kind = Kind::length, .length = 7}));
  EXPECT_EQ(with("Transfer-Encoding: chunked").body.kind, Kind::chunked);
  EXPECT_TRUE(with("Connection: x, Close").is_last);
  EXPECT_FALSE(with("Connection: keep-alive").is_last);
  EXPECT_TRUE(read_response_head("HTTP/1.0 200 OK\r\n\r\n")->is_last);
}

TEST(ResponseHead, IsRefusedWhereReadersDiffer) {
  const std::string_view heads[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\nA: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1  200 OK\r\n\r\n",
      "HTTP/2 200\r\n\r\n",
      "HTTP/1.1 200 O\x01K\r\n\r\n",
      "ICY 200 OK\r\n\r\n",
      "\r\n",
  };
  for (const std::string_view head : heads) EXPECT_NE(response_flaw_of(head), "") << head;
}

TEST(Trailers, AreFieldsThatDoNotFrame) {
  EXPECT_EQ(write_trailers(*read_trailers("A:b\r\nC: d\r\n\r\n")), "A:b\r\nC: d\r\n\r\n");
  EXPECT_EQ(write_trailers(*read_trailers("\r\n")), "\r\n");
  EXPECT_FALSE(read_trailers("Content-Length: 1\r\n\r\n"));
  EXPECT_FALSE(read_trailers("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_FALSE(read_trailers("Host: b\r\n\r\n"));
  EXPECT_FALSE(read_trailers("A: b\n\r\n"));
}

TEST(Sendable, IsWhatStaysAValue) {
  const auto with = [](std::string name, std::string value) {
    return Request{
        .method = "GET",
        .target = "/",
        .authority = "a",
        .fields = {{.name = std::move(name), .value = std::move(value), .is_secret = true}}};
  };
  EXPECT_TRUE(is_sendable(with("Authorization", "Bearer x")));
  EXPECT_FALSE(is_sendable(with("Authorization", "Bearer x\r\nHost: b")));
  EXPECT_FALSE(is_sendable(with("Content-Length", "5")));
  Request request{.method = "GET", .target = "/x HTTP/1.1\r\n", .target_is_secret = true};
  EXPECT_FALSE(is_sendable(request));
  request.target = "/x";
  EXPECT_TRUE(is_sendable(request));
}

// ---- Bodies -------------------------------------------------------------------------------------

struct Taken {
  std::string data;
  std::size_t size = 0;
  bool is_malformed = false;
  bool has_stopped = false;
};
Taken take(std::string_view bytes, Framing framing, std::size_t step = std::string::npos) {
  Unframer unframer(framing);
  Taken taken;
  while (taken.size < bytes.size() && !unframer.has_stopped()) {
    const auto piece = unframer.next(bytes.substr(taken.size, step));
    taken.data += piece.data;
    taken.size += piece.size;
  }
  taken.is_malformed = unframer.is_malformed();
  taken.has_stopped = unframer.has_stopped();
  return taken;
}
constexpr Framing chunked{.kind = Kind::chunked};

TEST(Unframer, TakesTheDataOutOfTheFraming) {
  EXPECT_EQ(take("abcdef", {.kind = Kind::length, .length = 3}).data, "abc");
  EXPECT_EQ(take("abcdef", {.kind = Kind::until_close}).data, "abcdef");
  EXPECT_EQ(take("abcdef", {}).data, "");
  const Taken taken = take("3;a=\"b\"\r\nabc\r\n0F\r\n0123456789abcde\r\n0\r\n\r\nnext", chunked);
  EXPECT_EQ(taken.data, "abc0123456789abcde");
  EXPECT_EQ(taken.size, 38U);  // up to the trailers
  EXPECT_TRUE(taken.has_stopped && !taken.is_malformed);
}

TEST(Unframer, RefusesChunksThatReadersTakeDifferently) {
  for (const std::string_view bytes :
       {"\r\n", "g\r\n", "3 \r\nabc", "+3\r\nabc", "0x3\r\nabc", "3\nabc", "3\r\nabcd\r\n",
        "3\r\nabc\n", "3\r\rabc", " 3\r\nabc", "-1\r\n", "8000000000000000\r\n",
        "00000000000000001\r\n", ";a\r\n", "3;a\nb\r\n", "3;\x01\r\n"}) {
    EXPECT_TRUE(take(bytes, chunked).is_malformed) << bytes;
  }
  EXPECT_TRUE(take("3;" + std::string(1000, 'x'), chunked).is_malformed);
}

RC_GTEST_PROP(UnframerProperty, ChunksComeOutAsTheyWentIn, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
  std::string bytes;
  std::string all;
  for (const std::string& piece : pieces) {
    append_chunk(bytes, piece);
    all += piece;
  }
  bytes += last_chunk;
  const std::size_t step = *rc::gen::inRange<std::size_t>(1, 20);
  const Taken taken = take(bytes + "\r\nmore", chunked, step);
  RC_ASSERT(taken.data == all);
  RC_ASSERT(taken.size == bytes.size());
  RC_ASSERT(taken.has_stopped && !taken.is_malformed);
}

}  // namespace
}  // namespace capgate::seal
