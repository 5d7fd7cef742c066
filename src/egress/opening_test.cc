#include "egress/opening.h"

#include "gtest/gtest.h"
#include "support/hellos.h"

namespace capgate::egress {
namespace {

constexpr std::size_t most = 65536;

Opening opening_of(std::string_view bytes) {
  Opening opening{.bytes = std::string(bytes)};
  EXPECT_TRUE(recognise(opening, most));
  return opening;
}

Flow described(std::string_view bytes) {
  Flow flow{.host = *core::parse_host("api.example.test"), .port = 80};
  describe(flow, opening_of(bytes));
  return flow;
}

TEST(Opening, KnowsHttpAndItsHost) {
  const Flow flow = described("GET /x?y HTTP/1.1\r\nHost: API.example.test:80\r\n\r\n");
  EXPECT_EQ(flow.speech, Speech::http);
  ASSERT_TRUE(flow.said);
  EXPECT_EQ(flow.said->text, "api.example.test");
  EXPECT_EQ(flow.said_port, 80);
  EXPECT_EQ(flow.method, "GET");
  EXPECT_EQ(flow.path, "/x");
}

TEST(Opening, TakesNoWildcardForAName) {
  for (const std::string_view host : {"*", "*.example.test", "a b", "ex\xc3\xa4mple.test"}) {
    const Flow flow = described("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_TRUE(flow.said_is_invalid) << host;
    EXPECT_FALSE(flow.said) << host;
  }
}

TEST(Opening, KnowsWhatIsNeither) {
  for (const std::string_view bytes : {"SSH-2.0-x\r\n", "PING\r\n", "GET key\r\n", "\x01\x02\x03",
                                       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
    EXPECT_EQ(opening_of(bytes).speech, Speech::other) << bytes;
  }
}

TEST(Opening, WaitsForTheRest) {
  for (const std::string_view bytes :
       {"", "G", "GET / HTTP/1.1\r\nHost: a", "\x16", "\x16\x03\x01"}) {
    Opening opening{.bytes = std::string(bytes)};
    EXPECT_FALSE(recognise(opening, most)) << bytes;
    EXPECT_EQ(opening.speech, Speech::unknown) << bytes;
  }
}

// Read in pieces, nothing may become something else than it is in one piece.
TEST(Opening, NamesNothingWhileItIsInDoubt) {
  constexpr std::string_view ssl("\0\0\0\x08\x04\xd2\x16\x2f", 8);
  constexpr std::string_view gss("\0\0\0\x08\x04\xd2\x16\x30", 8);
  const std::string_view passed_on[] = {
      "\r\n",
      "\n",
      "JDWP-Handshake",
      "PROPFIND",
      "PROPFIND / HTTP/1.1",
      ssl.substr(0, 1),
      ssl.substr(0, 7),
      gss.substr(0, 4),
  };
  for (const std::string_view bytes : passed_on) {
    Opening opening{.bytes = std::string(bytes)};
    EXPECT_FALSE(recognise(opening, most)) << bytes;
    EXPECT_TRUE(is_in_doubt(opening)) << bytes;
  }
  const std::string_view held_back[] = {"G",    "\r\nG",        "GET /", "PROPFIND / HTTP/1.1\r\n",
                                        "\x16", "\x16\x03\x01", "\x15",  "\x15\x03\x01"};
  for (const std::string_view bytes : held_back) {
    Opening opening{.bytes = std::string(bytes)};
    EXPECT_FALSE(recognise(opening, most)) << bytes;
    EXPECT_FALSE(is_in_doubt(opening)) << bytes;
  }
  EXPECT_EQ(opening_of(ssl).speech, Speech::other);
  EXPECT_EQ(postgres_request_size(ssl), 8U);
  EXPECT_EQ(postgres_request_size(gss), 8U);
  EXPECT_EQ(postgres_request_size(ssl.substr(0, 7)), 0U);
  EXPECT_TRUE(opening_of("\r\nPROPFIND / HTTP/1.1\r\n").is_malformed);
  EXPECT_TRUE(opening_of(std::string_view("\x15\x03\x01\0\x02\x01\x5a", 7)).is_malformed);
}

TEST(Opening, IsNoRequestWhenItsFirstLineNeverEnds) {
  EXPECT_EQ(opening_of("WORD " + std::string(most, 'x')).speech, Speech::other);
}

TEST(Opening, IsMalformedWhenItIsTooLong) {
  Opening hello{.bytes = std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc", 9)};
  hello.bytes.append(2000, 'x');
  EXPECT_FALSE(recognise(hello, 4096));
  EXPECT_TRUE(recognise(hello, 1024));
  EXPECT_TRUE(hello.is_malformed);
  Opening head{.bytes = "GET / HTTP/1.1\r\nA: " + std::string(2000, 'x')};
  EXPECT_FALSE(recognise(head, 4096));
  EXPECT_TRUE(recognise(head, 1024));
  EXPECT_TRUE(head.is_malformed);
}

}  // namespace
}  // namespace capgate::egress
