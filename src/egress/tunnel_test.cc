#include "egress/tunnel.h"

#include <gtest/gtest.h>

#include "egress/io.h"
#include "support/loopback.h"

namespace capgate::egress {
namespace {

using support::end_of;
using support::finish_sending;
using support::has_event;
using support::open_descriptors;
using support::Pair;
using support::receive;
using support::send_text;
using support::Stage;
using support::tcp_pair;

// So that a byte in the wrong place is seen.
std::string pattern(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 31 + (i >> 8U));
  return out;
}

// What the two programs hold; the broker has the other ends.
struct Joined {
  sys::Fd client;
  sys::Fd origin;
  Tunnel* tunnel = nullptr;
};

class TunnelTest : public testing::Test {
 protected:
  void begin(std::uint32_t idle_seconds = 60, std::uint64_t most_bytes = 0) {
    tunnels.emplace(stage.loop, idle_seconds, most_bytes, [this](Tunnel& tunnel, Ending ending) {
      endings.push_back(ending);
      sent = tunnel.bytes(LaneName::to_origin);
      received = tunnel.bytes(LaneName::to_client);
    });
  }
  Joined join() {
    Pair client = tcp_pair();
    Pair origin = tcp_pair();
    Tunnel& tunnel = tunnels->join(stage.adopt(std::move(client.second)),
                                   stage.adopt(std::move(origin.second)), {});
    return {std::move(client.first), std::move(origin.first), &tunnel};
  }

  Stage stage;
  std::vector<Ending> endings;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::optional<Tunnels> tunnels;  // tells the others of its last ones
};

TEST_F(TunnelTest, MovesBytesBothWaysAndCountsThem) {
  begin();
  const Joined joined = join();
  tunnels->release(*joined.tunnel);
  stage.play([&] {
    send_text(joined.client, "question");
    EXPECT_EQ(receive(joined.origin, 8), "question");
    send_text(joined.origin, "the answer");
    EXPECT_EQ(receive(joined.client, 10), "the answer");
    finish_sending(joined.client);
    EXPECT_EQ(end_of(joined.origin), 0);
    send_text(joined.origin, ", and more");  // the other half is open still
    EXPECT_EQ(receive(joined.client, 10), ", and more");
    finish_sending(joined.origin);
    EXPECT_EQ(end_of(joined.client), 0);
  });
  EXPECT_EQ(endings, std::vector{Ending::closed});
  EXPECT_EQ(sent, 8U);
  EXPECT_EQ(received, 20U);
  EXPECT_EQ(tunnels->size(), 0U);
}

TEST_F(TunnelTest, LetsTheOriginEndFirst) {
  begin();
  const Joined joined = join();
  tunnels->release(*joined.tunnel);
  stage.play([&] {
    finish_sending(joined.origin);
    EXPECT_EQ(end_of(joined.client), 0);
    send_text(joined.client, "still here");
    EXPECT_EQ(receive(joined.origin, 10), "still here");
    finish_sending(joined.client);
    EXPECT_EQ(end_of(joined.origin), 0);
  });
  EXPECT_EQ(endings, std::vector{Ending::closed});
}

// Sends until nobody takes any more: then the pipe in between is full, too.
void send_until_stuck(const sys::Fd& fd, std::string_view& bytes) {
  while (!bytes.empty() && has_event(fd, POLLOUT, 200)) {
    const ssize_t size = ::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

void keep_little(int fd, int buffer) {
  const int size = 64 * 1024;
  ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, buffer, &size, sizeof(size)), 0);
}

TEST_F(TunnelTest, HoldsBytesBackForASlowReaderAndLosesNone) {
  begin();
  const Joined joined = join();
  keep_little(joined.client.get(), SO_SNDBUF);
  keep_little(joined.tunnel->client().fd(), SO_RCVBUF);
  keep_little(joined.tunnel->origin().fd(), SO_SNDBUF);
  keep_little(joined.origin.get(), SO_RCVBUF);
  tunnels->release(*joined.tunnel);
  const std::string bytes = pattern(8U << 20U);
  const std::size_t before = open_descriptors();
  std::size_t during = 0;
  stage.play([&] {
    std::string_view left = bytes;
    send_until_stuck(joined.client, left);
    during = open_descriptors();
    EXPECT_FALSE(left.empty());
    std::thread sender([&] {
      send_text(joined.client, left);
      finish_sending(joined.client);
    });
    EXPECT_TRUE(receive(joined.origin, bytes.size()) == bytes);
    EXPECT_EQ(end_of(joined.origin), 0);
    sender.join();
    finish_sending(joined.origin);
    EXPECT_EQ(end_of(joined.client), 0);
  });
  EXPECT_GE(during, before + 2);  // the pipe
  EXPECT_EQ(sent, bytes.size());
  EXPECT_EQ(endings, std::vector{Ending::closed});
}

TEST_F(TunnelTest, PassesAResetOnInBothDirections) {
  begin();
  Joined one = join();
  Joined two = join();
  tunnels->release(*one.tunnel);
  tunnels->release(*two.tunnel);
  stage.play([&] {
    support::reset(one.client);
    EXPECT_EQ(end_of(one.origin), ECONNRESET);
    support::reset(two.origin);
    EXPECT_EQ(end_of(two.client), ECONNRESET);
  });
  EXPECT_EQ(endings, (std::vector{Ending::failed, Ending::failed}));
}

TEST_F(TunnelTest, ResetsWhenNobodyReadsAnyMore) {
  begin();
  Joined joined = join();
  tunnels->release(*joined.tunnel);
  stage.play([&] {
    joined.origin = sys::Fd();  // closed, not only for sending
    EXPECT_EQ(end_of(joined.client), 0);
    const std::string bytes(64 * 1024, 'x');
    while (send_text(joined.client, bytes)) {
    }
  });
  EXPECT_EQ(endings, std::vector{Ending::failed});
}

TEST_F(TunnelTest, EndsWhenIdle) {
  begin(1);
  const Joined joined = join();
  tunnels->release(*joined.tunnel);
  stage.play([&] { EXPECT_EQ(end_of(joined.client), ECONNRESET); });
  EXPECT_EQ(endings, std::vector{Ending::idle});
}

TEST_F(TunnelTest, EndsAtTheByteLimitOfAll) {
  begin(60, 100'000);
  const Joined one = join();
  const Joined two = join();
  tunnels->release(*one.tunnel);
  tunnels->release(*two.tunnel);
  stage.play([&] {
    send_text(one.client, std::string(60'000, 'x'));
    EXPECT_EQ(receive(one.origin, 60'000).size(), 60'000U);
    send_text(two.origin, std::string(60'000, 'x'));
    EXPECT_LE(receive(two.client, 60'001).size(), 60'000U);
  });
  EXPECT_EQ(endings, std::vector{Ending::limited});
  EXPECT_TRUE(tunnels->is_used_up());
}

TEST_F(TunnelTest, HoldsEachLaneUntilItIsReleased) {
  begin();
  const Joined joined = join();
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_client));
  send_text(joined.client, "held");
  stage.play([&] {
    send_text(joined.origin, "hello");
    EXPECT_EQ(receive(joined.client, 5), "hello");
    EXPECT_FALSE(has_event(joined.origin, POLLIN));
  });
  // The bytes were seen while the lane was held: releasing it must not wait for another event.
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_origin));
  EXPECT_EQ(receive(joined.origin, 4), "held");
}

TEST_F(TunnelTest, ReleasesTheLanesInTheOtherOrder) {
  begin();
  const Joined joined = join();
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_origin));
  send_text(joined.origin, "held");
  stage.play([&] {
    send_text(joined.client, "hello");
    EXPECT_EQ(receive(joined.origin, 5), "hello");
    EXPECT_FALSE(has_event(joined.client, POLLIN));
  });
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_client));
  EXPECT_EQ(receive(joined.client, 4), "held");
}

TEST_F(TunnelTest, EndsWithAFinishedLaneAndTheEndOfTheOther) {
  begin();
  const Joined joined = join();
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_client));
  tunnels->finish(*joined.tunnel, LaneName::to_origin);
  stage.play([&] {
    EXPECT_EQ(end_of(joined.origin), 0);
    send_text(joined.origin, "last words");
    finish_sending(joined.origin);
    EXPECT_EQ(receive(joined.client, 11), "last words");
  });
  EXPECT_EQ(endings, std::vector{Ending::closed});
}

// ---- Coroutines on held lanes ----------------------------------------------------------------

Task read_held(Loop& loop, Tunnel& tunnel, ssize_t& out) {
  std::array<char, 16> into{};
  out = co_await read_some(loop, tunnel.client(), into, never);
}

Task write_held(Loop& loop, Tunnel& tunnel, std::string bytes, ssize_t& out) {
  out = co_await write_all(loop, tunnel.origin(), bytes, never);
}

TEST_F(TunnelTest, CancelsWhoReadsAHeldLane) {
  begin();
  Joined joined = join();
  ssize_t size = 0;
  read_held(stage.loop, *joined.tunnel, size);
  ASSERT_TRUE(tunnels->release(*joined.tunnel, LaneName::to_client));
  stage.play([&] {
    support::reset(joined.origin);
    EXPECT_EQ(end_of(joined.client), ECONNRESET);
  });
  EXPECT_EQ(size, taken_away);
  EXPECT_EQ(endings, std::vector{Ending::failed});
}

TEST_F(TunnelTest, EndsWhenAnOriginTakesNothing) {
  begin(1);
  const Joined joined = join();
  ssize_t size = 0;
  write_held(stage.loop, *joined.tunnel, std::string(32U << 20U, 'x'), size);
  stage.play([&] { EXPECT_EQ(end_of(joined.client), ECONNRESET); });
  EXPECT_EQ(size, taken_away);
  EXPECT_EQ(endings, std::vector{Ending::idle});
}

TEST_F(TunnelTest, CancelsEverybodyWhenAllEnd) {
  begin();
  const Joined one = join();
  const Joined two = join();
  ssize_t sizes[2] = {0, 0};
  read_held(stage.loop, *one.tunnel, sizes[0]);
  read_held(stage.loop, *two.tunnel, sizes[1]);
  tunnels->end_all(Ending::stopped);
  EXPECT_EQ(sizes[0], taken_away);
  EXPECT_EQ(sizes[1], taken_away);
  EXPECT_EQ(endings, (std::vector{Ending::stopped, Ending::stopped}));
}

// ---- Descriptors -----------------------------------------------------------------------------

TEST_F(TunnelTest, LeavesNoDescriptorBehind) {
  const std::size_t before = open_descriptors();
  {
    Stage own;
    Tunnels all(own.loop, 60, 0, [](Tunnel&, Ending) {});
    std::vector<Pair> clients;
    std::vector<Pair> origins;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(tcp_pair());
      origins.push_back(tcp_pair());
      all.release(all.join(own.adopt(std::move(clients.back().second)),
                           own.adopt(std::move(origins.back().second)), {}));
    }
    own.play([&] {
      for (std::size_t i = 0; i < clients.size(); ++i) {
        send_text(clients[i].first, "x");
        EXPECT_EQ(receive(origins[i].first, 1), "x");
      }
      // Idle ones have given their pipes back: one serves all of them.
      EXPECT_LE(open_descriptors(), before + 80 + 2 + 4);
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(PipePool, KeepsAFewEmptyPipes) {
  const std::size_t before = open_descriptors();
  PipePool pool;
  std::vector<std::unique_ptr<Pipe>> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(pool.take());
  EXPECT_EQ(open_descriptors(), before + 200);
  for (auto& pipe : taken) pool.give_back(std::move(pipe), true);
  EXPECT_EQ(open_descriptors(), before + 64);
  auto used = pool.take();
  pool.give_back(std::move(used), false);
  EXPECT_EQ(open_descriptors(), before + 62);
}

}  // namespace
}  // namespace capgate::egress
