#include "egress/http.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "support/generators.h"
#include "support/prefixes.h"

namespace capgate::egress {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using Body = HttpHead::Body;

constexpr std::size_t most = 8192;

HeadReading read(std::string_view bytes) { return read_http_head(bytes, most); }
Progress progress(std::string_view bytes) { return read(bytes).progress; }
// Of a request with one more field.
Progress with_field(std::string_view line) {
  return progress("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n");
}
Progress with_target(std::string_view target, std::string_view method = "GET") {
  return progress(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n");
}
HttpHead head(std::string_view bytes) {
  const HeadReading reading = read(bytes);
  EXPECT_EQ(reading.progress, Progress::done) << bytes;
  return reading.head;
}

auto prefix_reader(std::string_view bytes, std::size_t longest = most) {
  return [bytes, longest](std::size_t size) {
    return read_http_head(bytes.substr(0, size), longest).progress;
  };
}

// ---- Valid heads --------------------------------------------------------------------------------

TEST(HttpHead, OfAnOrdinaryRequest) {
  constexpr auto bytes =
      "POST /v1/items?limit=2 HTTP/1.1\r\nHost: api.github.com:8080\r\nUser-Agent: test\r\n"
      "content-length: \t12 \r\nX-Empty:\r\nX-Latin: caf\xe9\r\n\r\nhello, world"sv;
  const HttpHead read = head(bytes);
  EXPECT_EQ(read.method, "POST");
  EXPECT_EQ(read.target, "/v1/items?limit=2");
  EXPECT_EQ(read.path, "/v1/items");
  EXPECT_EQ(read.authority, "");
  EXPECT_TRUE(read.has_host);
  EXPECT_EQ(read.host, "api.github.com:8080");
  EXPECT_EQ(read.body, Body::length);
  EXPECT_EQ(read.length, 12U);
  EXPECT_FALSE(read.wants_upgrade);
  EXPECT_EQ(read.size, bytes.size() - 12);
}

TEST(HttpHead, MayHaveNoFields) {
  const HttpHead read = head("GET / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(read.has_host);
  EXPECT_EQ(read.body, Body::none);
  EXPECT_EQ(read.size, 18U);
}

TEST(HttpHead, HasATargetInOneOfFourForms) {
  const HttpHead absolute = head("GET HTTP://a.example:81/b/c?d HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(absolute.authority, "a.example:81");
  EXPECT_EQ(absolute.path, "/b/c");
  EXPECT_EQ(absolute.host, "a");
  EXPECT_EQ(head("GET http://a.example HTTP/1.1\r\n\r\n").path, "/");
  EXPECT_EQ(head("GET http://a.example?b HTTP/1.1\r\n\r\n").path, "/");
  EXPECT_EQ(head("GET http://a.example?b HTTP/1.1\r\n\r\n").authority, "a.example");
  EXPECT_EQ(head("OPTIONS * HTTP/1.1\r\n\r\n").path, "*");
  const HttpHead connect = head("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(connect.authority, "[2001:db8::1]:443");
  EXPECT_EQ(connect.path, "");
  EXPECT_EQ(head("GET //a/../b?c/d HTTP/1.1\r\n\r\n").path, "//a/../b");
}

TEST(HttpHead, TellsWhatItUpgradesTo) {
  const HttpHead socket = head("GET / HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n");
  EXPECT_TRUE(socket.wants_upgrade);
  EXPECT_TRUE(socket.wants_websocket);
  for (const auto fields : {"Upgrade: h2c"sv, "Upgrade: websocket, h2c"sv, "upgrade: a/1 , b/2"sv,
                            "Upgrade: websocket\r\nUpgrade: h2c"sv,
                            "Upgrade: h2c\r\nUpgrade: websocket"sv, "Upgrade: websocket/13"sv}) {
    const HttpHead read = head("GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n\r\n");
    EXPECT_TRUE(read.wants_upgrade) << fields;
    EXPECT_FALSE(read.wants_websocket) << fields;
  }
}

TEST(HttpHead, MayBeChunked) {
  EXPECT_EQ(head("PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n").body, Body::chunked);
}

// ---- Other protocols ----------------------------------------------------------------------------

TEST(HttpHead, IsToldFromOtherProtocols) {
  constexpr std::string_view others[] = {
      "GET key\r\n"sv,                            // Redis, as typed
      "*1\r\n$4\r\nPING\r\n"sv,                   // Redis
      "EHLO x\r\n"sv,                             //
      "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"sv,     //
      "CONNECT {\"verbose\":false}\r\n"sv,        // NATS
      "CONNECT\naccept-version:1.2\n"sv,          // STOMP
      "003egit-upload-pack /a\0host=b\0"sv,       //
      "\0\0\0\x08\x04\xd2\x16\x2f"sv,             // PostgreSQL
      "\x30\x0c\x02\x01\x01\x60"sv,               // LDAP
      "\x16\x03\x01"sv,                           // TLS
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"sv,       //
      "DESCRIBE rtsp://a/b RTSP/1.0\r\n"sv,       //
      "{\"jsonrpc\": \"2.0\"}"sv,                 //
      "GET /\r\n"sv,                              // HTTP/0.9 tells no host
      "SET key http/x\r\n"sv,                     //
      "GETGETGETGETGETGETGETGETGETGETGET / H"sv,  // 33 characters
      "\xff\xfe\xfd"sv,                           //
  };
  for (const std::string_view bytes : others) EXPECT_EQ(progress(bytes), Progress::other) << bytes;
}

TEST(HttpHead, IsWaitedForWhileItFits) {
  for (const auto bytes : {""sv, "G"sv, "GET"sv, "GET key"sv, "GET key\r"sv, "EHLO x"sv, "\r\n"sv,
                           "GETGETGETGETGETGETGETGETGETGETGE / "sv, "PRI * HTTP/2.0"sv,
                           "GET / HTTP/1.1\r\n"sv, "GET / HTTP/1.1\r\nHost"sv}) {
    EXPECT_EQ(progress(bytes), Progress::more) << bytes;
  }
}

// ---- Malformed first lines ----------------------------------------------------------------------

TEST(HttpHead, IsMalformedWhereALenientServerWouldReadIt) {
  constexpr std::string_view lines[] = {
      "GET / HTTP/1.0\r\n"sv,
      "GET / HTTP/1.2\r\n"sv,
      "GET / HTTP/2.0\r\n"sv,
      "GET / http/1.1\r\n"sv,
      "GET / HTTP/1.1\n"sv,
      "GET / HTTP/1.1 \r\n"sv,
      "GET  / HTTP/1.1\r\n"sv,
      "GET /  HTTP/1.1\r\n"sv,
      "GET\t/\tHTTP/1.1\r\n"sv,
      "\r\nGET / HTTP/1.1\r\n"sv,
      " GET / HTTP/1.1\r\n"sv,
      "\nGET / HTTP/1.1\r\n"sv,
      "GET /a b HTTP/1.1\r\n"sv,
      "GET HTTP/1.1\r\n"sv,
      "GET / HTTP/1.1\r\r\n"sv,
      "GET /\r HTTP/1.1\r\n"sv,
      "GET\x85/\x85HTTP/1.1\r\n"sv,
      "GET /\x01"sv,
      "POST /\0"sv,
      "GET / HTTP/1.1x\r\n"sv,
      "PRI / HTTP/2.0\r\n"sv,
  };
  for (const std::string_view line : lines) EXPECT_EQ(progress(line), Progress::malformed) << line;
}

TEST(HttpHead, HasATargetThatAllReadAlike) {
  for (const auto target : {"/#"sv,
                            "/a#b"sv,
                            "#"sv,
                            "a"sv,
                            "a.example"sv,
                            "a.example:80"sv,
                            "*"sv,
                            "?a"sv,
                            "/\xc3\xbc"sv,
                            "/\x7f"sv,
                            "https://a/"sv,
                            "ftp://a/"sv,
                            "http:/a"sv,
                            "http:///a"sv,
                            "http://"sv,
                            "http://?a"sv,
                            "http://user@a/"sv,
                            "http://user:word@a/"sv,
                            "http://a\\b/"sv,
                            "http://a%2eb/"sv,
                            "http://*/"sv,
                            "http://@a/"sv}) {
    EXPECT_EQ(with_target(target), Progress::malformed) << target;
  }
  for (const auto target : {"a"sv, "a:"sv, ":443"sv, "a:443x"sv, "a:123456"sv, "/"sv, "*"sv,
                            "http://a:443/"sv, "a:443/"sv, "b@a:443"sv, "a:443?"sv}) {
    EXPECT_EQ(with_target(target, "CONNECT"), Progress::malformed) << target;
  }
  EXPECT_EQ(with_target("*", "GET"), Progress::malformed);
  EXPECT_EQ(with_target("*", "OPTIONS"), Progress::done);
  EXPECT_EQ(with_target("/{a}|b?\"c\"", "x-Custom.1"), Progress::done);
  EXPECT_EQ(with_target("a:443", "CONNECT"), Progress::done);
}

TEST(HttpHead, HasAMethodOf32CharactersAtMost) {
  EXPECT_EQ(with_target("/", std::string(32, 'M')), Progress::done);
  EXPECT_EQ(with_target("/", std::string(33, 'M')), Progress::other);
}

// ---- Malformed fields ---------------------------------------------------------------------------

TEST(HttpHead, HasStrictFields) {
  for (const auto line : {"A: b\xff\t c"sv, "A:b"sv, "A:"sv, "a!#$%&'*+-.^_`|~9: b"sv, "A: :b"sv}) {
    EXPECT_EQ(with_field(line), Progress::done) << line;
  }
  for (const auto line : {" folded"sv, "\tfolded"sv, "A : b"sv, "A\t: b"sv, ": b"sv, "A"sv,
                          "A b: c"sv, "A: b\rc"sv, "A: b\r"sv, "A: b\0"sv, "A: \x01"sv, "A: \x7f"sv,
                          "A\xe9: b"sv, "(A): b"sv, "A: b\nB: c"sv, "\rA: b"sv, "A: \x0b"sv}) {
    EXPECT_EQ(with_field(line), Progress::malformed) << line;
  }
  EXPECT_EQ(progress("GET / HTTP/1.1\r\nHost: a\r\n\n"), Progress::malformed);
  EXPECT_EQ(progress("GET / HTTP/1.1\r\n\n"), Progress::malformed);
}

TEST(HttpHead, HasOneHost) {
  EXPECT_EQ(with_field("Host: a"), Progress::malformed);
  EXPECT_EQ(with_field("hOST: b"), Progress::malformed);
  EXPECT_EQ(with_field("X-Host: b"), Progress::done);
  const HttpHead empty = head("GET / HTTP/1.1\r\nHost:\r\n\r\n");
  EXPECT_TRUE(empty.has_host);
  EXPECT_EQ(empty.host, "");
}

TEST(HttpHead, HasOneLength) {
  for (const auto value : {"0"sv, "1"sv, "9223372036854775807"sv}) {
    EXPECT_EQ(with_field("Content-Length: " + std::string(value)), Progress::done) << value;
  }
  for (const auto value : {""sv, "+1"sv, "-1"sv, "1 1"sv, "0x1"sv, "1,1"sv, "1.0"sv, "01"sv,
                           "9223372036854775808"sv, "18446744073709551616"sv, "\"1\""sv}) {
    EXPECT_EQ(with_field("Content-Length: " + std::string(value)), Progress::malformed) << value;
  }
  for (const auto fields : {"Content-Length: 1\r\nContent-Length: 1"sv,
                            "Content-Length: 1\r\nTransfer-Encoding: chunked"sv,
                            "Transfer-Encoding: chunked\r\nContent-Length: 1"sv,
                            "Transfer-Encoding: chunked\r\ntransfer-encoding: chunked"sv}) {
    EXPECT_EQ(with_field(fields), Progress::malformed) << fields;
  }
  for (const auto coding : {""sv, "gzip"sv, "gzip, chunked"sv, "chunked, chunked"sv, "identity"sv,
                            "xchunked"sv, "chunked;a=b"sv, "\"chunked\""sv, "chunked,"sv}) {
    EXPECT_EQ(with_field("Transfer-Encoding: " + std::string(coding)), Progress::malformed)
        << coding;
  }
}

TEST(HttpHead, OfATunnelHasNoBody) {
  const std::string start = "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(progress(start + "Content-Length: 0\r\n\r\n"), Progress::done);
  EXPECT_EQ(progress(start + "Content-Length: 1\r\n\r\n"), Progress::malformed);
  EXPECT_EQ(progress(start + "Transfer-Encoding: chunked\r\n\r\n"), Progress::malformed);
}

TEST(HttpHead, UpgradesToProtocols) {
  for (const auto value : {""sv, ","sv, "a,"sv, "a b"sv, "/1"sv, "a/"sv, "a/1/2"sv}) {
    EXPECT_EQ(with_field("Upgrade: " + std::string(value)), Progress::malformed) << value;
  }
}

TEST(HttpHead, Has200FieldsAtMost) {
  std::string bytes = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) bytes += "A: b\r\n";
  EXPECT_EQ(progress(bytes + "\r\n"), Progress::done);
  EXPECT_EQ(progress(bytes + "A: b\r\n"), Progress::malformed);
}

TEST(HttpHead, IsNotLongerThanTheMost) {
  const auto bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody"sv;
  const std::size_t size = bytes.size() - 4;
  EXPECT_EQ(read_http_head(bytes, size).progress, Progress::done);
  EXPECT_EQ(read_http_head(bytes, size - 1).progress, Progress::malformed);
  EXPECT_EQ(read_http_head(bytes.substr(0, size - 2), size - 1).progress, Progress::more);
  EXPECT_EQ(read_http_head(bytes.substr(0, size - 1), size - 1).progress, Progress::malformed);
  EXPECT_EQ(progress("GET /" + std::string(most, 'a')), Progress::malformed);
}

// ---- Over every prefix --------------------------------------------------------------------------

std::string valid_head() {
  const std::string start = support::pick(
      {"GET / ", "x-a http://a.example:8080?b ", "CONNECT a.example:443 ", "OPTIONS * "});
  std::string bytes = start + "HTTP/1.1\r\n";
  const auto count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    bytes += "X-" + *support::text_over("abcXYZ09-_.!~") + ":";
    bytes += *support::text_over("ab: \t,;\"\xe9\xff/") + "\r\n";
  }
  bytes += support::pick({"", "Host: a.example\r\n", "Content-Length: 0\r\n", "upgrade: h2c\r\n"});
  return bytes + "\r\n";
}

RC_GTEST_PROP(HttpHead, IsDoneAtItsLastByte, ()) {
  const std::string bytes = valid_head();
  RC_ASSERT(support::find_decision(bytes.size(), prefix_reader(bytes)) == bytes.size());
  const HeadReading alone = read(bytes);
  RC_ASSERT(alone.progress == Progress::done);
  RC_ASSERT(alone.head.size == bytes.size());
  const HeadReading followed = read(bytes + *rc::gen::arbitrary<std::string>());
  RC_ASSERT(followed.progress == Progress::done);
  RC_ASSERT(followed.head.size == bytes.size());
  RC_ASSERT(followed.head.target == alone.head.target);
  RC_ASSERT(followed.head.host == alone.head.host);
}

RC_GTEST_PROP(HttpHead, DecidesOnce, ()) {
  std::string bytes = valid_head();
  const auto changes = *rc::gen::inRange(0, 4);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] = *rc::gen::elementOf(" \t\r\n:\0\x01\x85GH/"s);
  }
  const auto longest = *rc::gen::inRange<std::size_t>(1, 2 * bytes.size());
  RC_ASSERT(support::keeps_decision(bytes.size(), prefix_reader(bytes, longest)));
}

// ---- Paths --------------------------------------------------------------------------------------

TEST(PlainPath, HasOneReading) {
  for (const auto path : {"/"sv, "/a"sv, "/a/"sv, "/a..b/.c/d./...x"sv, "/a%20b/%C3%BC"sv,
                          "/a;b=c/d"sv, "/..."sv, "/@b:c"sv}) {
    EXPECT_TRUE(is_plain_path(path)) << path;
  }
  for (const auto path :
       {""sv,          "a"sv,       "*"sv,      "//"sv,     "/a//b"sv,   "/."sv,
        "/.."sv,       "/a/../b"sv, "/a/./b"sv, "/a/.."sv,  "/..;a/b"sv, "/.;/b"sv,
        "/%2e%2e/a"sv, "/%2E"sv,    "/a%2fb"sv, "/a%2Fb"sv, "/a%5cb"sv,  "/a%5Cb"sv,
        "/a\\b"sv,     "/%252e"sv,  "/%"sv,     "/%2"sv,    "/%2g"sv,    "/%00"sv,
        "/%0a"sv,      "/%7f"sv,    "/a%"sv,    "/a\x01"sv, "/%2/a"sv}) {
    EXPECT_FALSE(is_plain_path(path)) << path;
  }
}

// ---- For the origin -----------------------------------------------------------------------------

std::string origin_form(std::string_view bytes) { return to_origin_form(bytes, head(bytes)); }

TEST(OriginForm, KeepsAllButTheTargetAndWhatIsForTheProxy) {
  EXPECT_EQ(
      origin_form("GET http://a.example:81/b/../c?d HTTP/1.1\r\nHost:  a.example:81\r\n"
                  "Proxy-Authorization: Basic YTpi\r\nX-Proxy-Connection:  a \r\n"
                  "PROXY-connection: keep-alive\r\nProxy-Authorization: again\r\nA:\tb\r\n\r\n"
                  "Proxy-Connection: body\r\n"),
      "GET /b/../c?d HTTP/1.1\r\nHost:  a.example:81\r\nX-Proxy-Connection:  a \r\n"
      "A:\tb\r\n\r\n");
}

TEST(OriginForm, HasAPath) {
  EXPECT_EQ(origin_form("GET http://a HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(origin_form("GET http://a?b HTTP/1.1\r\n\r\n"), "GET /?b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(origin_form("GET /a?b HTTP/1.1\r\n\r\n"), "GET /a?b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(origin_form("OPTIONS * HTTP/1.1\r\n\r\n"), "OPTIONS * HTTP/1.1\r\n\r\n");
}

}  // namespace
}  // namespace capgate::egress
