// The relay between two real connections.
#include <gtest/gtest.h>

#include "support/http2_lab.h"
#include "support/loopback.h"

namespace capgate::seal {
namespace {

using support::head_of;
using support::Http2Peer;
using support::Said;

class SocketStream final : public Stream {
 public:
  SocketStream(egress::Loop& loop, egress::SocketPtr socket)
      : loop_(loop), socket_(std::move(socket)) {}
  Async<ssize_t> read(std::span<char> into, Time deadline) override {
    return egress::read_some(loop_, *socket_, into, deadline);
  }
  Async<ssize_t> write(std::string_view bytes, Time deadline) override {
    return egress::write_all(loop_, *socket_, bytes, deadline);
  }
  Async<ssize_t> finish(Time /*deadline*/) override {
    co_return ::shutdown(socket_->fd(), SHUT_WR) == 0 ? egress::ended : egress::failed;
  }
  void cancel() override { loop_.cancel(*socket_); }

 private:
  egress::Loop& loop_;
  egress::SocketPtr socket_;
};

struct Served {
  SocketStream client;
  SocketStream origin;
  support::ScriptedRequests requests{std::vector<Key>()};
  std::optional<RelayEnd> end;
};

egress::Task serve(egress::Loop& loop, Served& served) {
  served.end = co_await relay_http2({.loop = loop,
                                     .client = served.client,
                                     .origin = served.origin,
                                     .requests = served.requests});
}

// False if neither side has anything to say for a long time.
bool talk_once(Http2Peer& peer, const sys::Fd& fd) {
  std::string bytes(65536, '\0');
  (void)support::send_text(fd, peer.say());
  if (!support::has_event(fd, POLLIN, 10)) return false;
  const ssize_t size = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size <= 0) return false;
  return peer.hear({bytes.data(), static_cast<std::size_t>(size)});
}

TEST(Http2Socket, CarriesLargeBodiesBothWays) {
  support::Stage stage;
  support::Pair client_pair = support::tcp_pair();
  support::Pair origin_pair = support::tcp_pair();
  Served served{.client = {stage.loop, stage.adopt(std::move(client_pair.second))},
                .origin = {stage.loop, stage.adopt(std::move(origin_pair.second))}};
  serve(stage.loop, served);
  const std::string body(3 << 20, 'b');
  stage.play([&] {
    Http2Peer client(Http2Peer::Role::client);
    Http2Peer origin(Http2Peer::Role::server);
    const std::int32_t id = client.request(head_of("POST", "/"), Said{.body = body});
    bool is_answered = false;
    for (int quiet = 0; quiet < 1000 && !client.messages[id].has_ended;) {
      const bool has_client_heard = talk_once(client, client_pair.first);
      const bool has_origin_heard = talk_once(origin, origin_pair.first);
      quiet = has_client_heard || has_origin_heard ? 0 : quiet + 1;
      if (is_answered || origin.arrived.empty()) continue;
      if (!origin.messages[origin.arrived[0]].has_ended) continue;
      is_answered = true;
      origin.respond(origin.arrived[0], {{":status", "200"}},
                     {.body = origin.messages[origin.arrived[0]].body});
    }
    EXPECT_EQ(client.messages[id].status(), "200");
    EXPECT_TRUE(client.messages[id].body == body);
    support::finish_sending(client_pair.first);
    const std::string farewell = support::receive_all(origin_pair.first);
    EXPECT_TRUE(origin.hear(farewell));
    EXPECT_EQ(origin.goaway, NGHTTP2_NO_ERROR);
  });
  EXPECT_EQ(served.end, RelayEnd::closed);
}

}  // namespace
}  // namespace capgate::seal
