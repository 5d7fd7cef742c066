#include "seal/origin_pool.h"

#include <gtest/gtest.h>

#include "support/loopback.h"

namespace capgate::seal {
namespace {

using std::chrono::milliseconds;
using support::end_of;
using support::has_event;
using support::Pair;
using support::send_text;

const KeptTls::Key here{{"a.example", 443}, "\x08http/1.1"};

class OriginPoolTest : public testing::Test {
 protected:
  // The other end of it.
  sys::Fd keep(OriginPool& pool, const KeptTls::Key& key = here, Time made = {}) {
    Pair pair = support::unix_pair();
    auto kept =
        std::make_unique<KeptTls>(stage.adopt(std::move(pair.second)), egress::loopback_ipv4);
    kept->key = key;
    kept->made = made == Time{} ? stage.loop.now() : made;
    kept->stream =
        std::make_unique<TlsStream>(stage.loop, *kept->socket, SslPtr(SSL_new(context_.get())));
    pool.keep(std::move(kept));
    return std::move(pair.first);
  }

  support::Stage stage;

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free};
};

TEST_F(OriginPoolTest, GivesAConnectionOnce) {
  OriginPool pool(stage.loop);
  const sys::Fd origin = keep(pool);
  EXPECT_TRUE(pool.has(here.endpoint));
  const KeptTlsPtr kept = pool.take(here);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->address, egress::loopback_ipv4);
  EXPECT_EQ(kept->socket->owner, nullptr);
  EXPECT_FALSE(pool.has(here.endpoint));
  EXPECT_EQ(pool.take(here), nullptr);
}

TEST_F(OriginPoolTest, GivesNobodyAnothers) {
  OriginPool pool(stage.loop);
  const sys::Fd origin = keep(pool);
  EXPECT_EQ(pool.take({{"b.example", 443}, here.offered}), nullptr);
  EXPECT_EQ(pool.take({{"a.example", 444}, here.offered}), nullptr);
  EXPECT_EQ(pool.take({here.endpoint, ""}), nullptr);
  EXPECT_EQ(pool.take({here.endpoint, "\x02h2\x08http/1.1"}), nullptr);
  EXPECT_FALSE(pool.has({"b.example", 443}));
  EXPECT_NE(pool.take(here), nullptr);
}

TEST_F(OriginPoolTest, GivesTheNewest) {
  OriginPool pool(stage.loop);
  const sys::Fd older = keep(pool);
  sys::Fd newer = keep(pool);
  const KeptTlsPtr kept = pool.take(here);
  newer = sys::Fd();
  char byte = 0;
  EXPECT_EQ(::recv(kept->socket->fd(), &byte, 1, 0), 0);
}

TEST_F(OriginPoolTest, TakesNothingThatSpeaks) {
  OriginPool pool(stage.loop);
  Pair pair = support::unix_pair();
  auto kept = std::make_unique<KeptTls>(stage.adopt(std::move(pair.second)), egress::loopback_ipv4);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  kept->made = stage.loop.now();
  kept->stream = std::make_unique<TlsStream>(stage.loop, *kept->socket, SslPtr(SSL_new(context)));
  SSL_CTX_free(context);
  send_text(pair.first, "x");
  pool.keep(std::move(kept));
  EXPECT_EQ(pool.size(), 0U);
}

TEST_F(OriginPoolTest, LooksBeforeItGivesOneAway) {
  OriginPool pool(stage.loop);
  const sys::Fd speaks = keep(pool);
  sys::Fd ends = keep(pool);
  const sys::Fd silent = keep(pool, {here.endpoint, ""});
  send_text(speaks, "x");
  ends = sys::Fd();
  EXPECT_EQ(pool.take(here), nullptr);
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(OriginPoolTest, ClosesWhatSpeaksOrEnds) {
  OriginPool pool(stage.loop);
  const sys::Fd silent = keep(pool);
  const sys::Fd speaks = keep(pool);
  const sys::Fd ends = keep(pool);
  stage.play([&] {
    send_text(speaks, "x");
    support::finish_sending(ends);
    EXPECT_NE(end_of(speaks), EAGAIN);
    EXPECT_EQ(end_of(ends), 0);
    EXPECT_FALSE(has_event(silent, POLLIN));
  });
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(OriginPoolTest, ClosesWhatIsIdle) {
  OriginPool pool(stage.loop, milliseconds(20));
  const sys::Fd first = keep(pool);
  const sys::Fd second = keep(pool);
  stage.play([&] {
    EXPECT_EQ(end_of(first), 0);
    EXPECT_EQ(end_of(second), 0);
  });
  EXPECT_EQ(pool.size(), 0U);
}

TEST_F(OriginPoolTest, GivesNothingAwayThatIsLate) {
  OriginPool pool(stage.loop, milliseconds(0));
  const sys::Fd origin = keep(pool);
  EXPECT_EQ(pool.take(here), nullptr);
}

TEST_F(OriginPoolTest, NothingIsUsedForever) {
  OriginPool pool(stage.loop);
  const sys::Fd young =
      keep(pool, here, stage.loop.now() - OriginPool::longest_use + milliseconds(1));
  EXPECT_EQ(pool.size(), 1U);
  const sys::Fd old = keep(pool, here, stage.loop.now() - OriginPool::longest_use);
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(OriginPoolTest, KeepsSoManyOfAnEndpointAndSoManyInAll) {
  OriginPool pool(stage.loop);
  std::vector<sys::Fd> origins;
  for (std::size_t i = 0; i < OriginPool::most_of_one_endpoint + 1; ++i) {
    origins.push_back(keep(pool));
  }
  EXPECT_EQ(pool.size(), OriginPool::most_of_one_endpoint);
  EXPECT_TRUE(has_event(origins.front(), POLLHUP));
  for (std::uint16_t port = 1; port <= OriginPool::most; ++port) {
    origins.push_back(keep(pool, {{"a.example", port}, ""}));
  }
  EXPECT_EQ(pool.size(), OriginPool::most);
  EXPECT_FALSE(pool.has(here.endpoint));
  EXPECT_TRUE(pool.has({"a.example", 1}));
}

}  // namespace
}  // namespace capgate::seal
