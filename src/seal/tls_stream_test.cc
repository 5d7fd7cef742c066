#include "seal/tls_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>

#include "support/tls_stage.h"

namespace capgate::seal {
namespace {

using egress::never;
using support::TlsPeer;

void make_small(const sys::Fd& fd) {
  const int size = 16384;
  ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
  ASSERT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() {
    support::Pair pair = support::tcp_pair();
    make_small(pair.first);
    make_small(pair.second);
    peer = std::move(pair.first);
    socket = stage.adopt(std::move(pair.second));
    const Leaf leaf = authority.issue("localhost").value();
    EXPECT_EQ(SSL_CTX_use_certificate(context.get(), leaf.certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), leaf.key), 1);
    EXPECT_EQ(SSL_CTX_add1_chain_cert(context.get(), authority.certificate()), 1);
    SslPtr ssl(SSL_new(context.get()));
    SSL_set_accept_state(ssl.get());
    stream.emplace(stage.loop, *socket, std::move(ssl));
  }

  // `told` ends with it.
  egress::Task read_all(egress::SocketPtr told) {
    EXPECT_EQ(co_await stream->handshake(never), TlsStream::Shaken::done);
    std::array<char, 4096> buffer;
    while (co_await stream->read(buffer, never) > 0) {
    }
    has_read = true;
    (void)told;
  }
  egress::Task write_when_told(egress::Socket& told) {
    (void)co_await stage.loop.readable(told);
    is_writing = true;
    has_written = co_await stream->write(answer, never) == static_cast<ssize_t>(answer.size());
  }

  static constexpr std::string_view answer = "the answer.";
  support::Stage stage;
  Authority authority = support::authority_for("localhost");
  support::TlsContextPtr context{SSL_CTX_new(TLS_server_method())};
  sys::Fd peer;
  egress::SocketPtr socket;
  std::optional<TlsStream> stream;
  std::atomic<bool> is_writing = false;
  bool has_read = false;
  bool has_written = false;
};

// A peer that has keys changed and reads nothing makes the reader wait until it can write.
TEST_F(TlsStreamTest, BothMayWaitForTheSameEvent) {
  support::Pair told = support::unix_pair();
  egress::SocketPtr inner = stage.adopt(std::move(told.second));
  write_when_told(*inner);
  read_all(std::move(inner));
  stage.play([&] {
    TlsPeer client = TlsPeer::client(peer, authority);
    ASSERT_TRUE(client.shaken);
    SSL* const ssl = client.ssl();
    ASSERT_EQ(::fcntl(peer.get(), F_SETFL, O_NONBLOCK), 0);
    // Until nothing more is taken from us: the other side cannot answer any more.
    while (support::has_event(peer, POLLOUT, 300)) {
      if (SSL_write(ssl, "x", 1) == 1) (void)SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
    }
    ASSERT_TRUE(support::send_text(told.first, "x"));
    while (!is_writing) std::this_thread::yield();
    (void)support::has_event(peer, POLLOUT, 100);
    ASSERT_EQ(::fcntl(peer.get(), F_SETFL, 0), 0);
    EXPECT_EQ(client.hear("."), answer);
    EXPECT_EQ(SSL_write(ssl, "x", 1), 1);
    (void)SSL_shutdown(ssl);
    support::finish_sending(peer);
    EXPECT_NE(support::end_of(told.first), EAGAIN);
  });
  stream->leave();
  stage.loop.cancel_all();
  EXPECT_TRUE(has_written);
  EXPECT_TRUE(has_read);
}

}  // namespace
}  // namespace capgate::seal
