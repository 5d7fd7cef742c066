// Placeholders of sealed secrets where no TLS is terminated, and flows that the log cannot hold.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "egress/connections.h"
#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using support::accept_from;
using support::end_of;
using support::has_caller;
using support::receive;
using support::send_text;

constexpr std::string_view placeholder = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

class PlainPlaceholderTest : public support::EgressTest {
 protected:
  void begin_with_seal() {
    begin({"localhost:@?proto=http"});
    policy.seals.push_back(
        {.env = {.name = "GITHUB_TOKEN"}, .placeholder = std::string(placeholder)});
  }
  [[nodiscard]] std::string post(std::string_view fields) const {
    return "POST / HTTP/1.1\r\nHost: localhost:" + port() + "\r\n" + std::string(fields) + "\r\n";
  }
  void expect_refusal() const {
    EXPECT_TRUE(tells(R"("reason":"plain-text")")) << log();
    EXPECT_TRUE(tells("the placeholder of GITHUB_TOKEN in a request without TLS")) << log();
  }
};

TEST_F(PlainPlaceholderTest, OtherRequestsPass) {
  begin_with_seal();
  const sys::Fd client = captured();
  const std::string request = post("Content-Length: 4\r\nX-Token: ghp_0\r\n") + "body";
  play([&] {
    send_text(client, request);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, request.size()), request);
  });
  EXPECT_FALSE(tells(R"("verdict":"denied")")) << log();
}

TEST_F(PlainPlaceholderTest, IsRefusedInAHead) {
  begin_with_seal();
  const sys::Fd client = captured();
  play([&] {
    send_text(client, post("Authorization: Bearer " + std::string(placeholder) + "\r\n"));
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, 1), "");
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  expect_refusal();
}

TEST_F(PlainPlaceholderTest, IsRefusedInABody) {
  begin_with_seal();
  const sys::Fd client = captured();
  const std::string head = post("Content-Length: 40\r\n");
  play([&] {
    send_text(client, head + std::string(placeholder));
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, head.size() + 1), head);
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  expect_refusal();
}

// The origin gets the first part, which is not the placeholder yet, and never the rest.
TEST_F(PlainPlaceholderTest, IsRefusedInABodyThatComesInParts) {
  begin_with_seal();
  const sys::Fd client = captured();
  const std::string first = post("Content-Length: 50\r\n") + std::string(placeholder.substr(0, 30));
  play([&] {
    send_text(client, first);
    const sys::Fd server = accept_from(origin);
    EXPECT_EQ(receive(server, first.size()), first);
    send_text(client, placeholder.substr(30));
    EXPECT_EQ(receive(server, 1), "");
    EXPECT_EQ(end_of(client), ECONNRESET);
  });
  expect_refusal();
}

using UnloggedTest = support::EgressTest;

TEST_F(UnloggedTest, AnInboundConnectionIsReset) {
  ASSERT_EQ(::fcntl(audit.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  begin({});
  support::Pair pair = support::tcp_pair();
  connections->inbound(stage->adopt(std::move(pair.second)), origin.port, [](wire::Family family) {
    return sys::Fd(::socket(family == wire::Family::ipv4 ? AF_INET : AF_INET6,
                            SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  });
  play([&] { EXPECT_EQ(end_of(pair.first), ECONNRESET); });
  EXPECT_FALSE(has_caller(origin));
  EXPECT_EQ(log(), "");
  pair = {};
}

}  // namespace
}  // namespace capgate::egress
