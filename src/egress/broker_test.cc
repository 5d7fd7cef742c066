#include "egress/broker.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/dns_messages.h"
#include "support/egress_stage.h"

namespace capgate::egress {
namespace {

using namespace std::chrono_literals;
using support::accept_from;
using support::connect_to;
using support::end_of;
using support::receive;
using support::receive_all;
using support::send_text;
using wire::SocketKind;

TEST(Rate, HasTwoSecondsSavedUpAndRefills) {
  Rate rate(2);
  const Time start = Clock::now();
  Time next;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(rate.take(start, next)) << i;
  EXPECT_FALSE(rate.take(start, next));
  EXPECT_GT(next, start);
  EXPECT_TRUE(rate.take(next, next));
  EXPECT_FALSE(rate.take(next, next));
  rate.give_back();
  EXPECT_TRUE(rate.take(next, next));
}

TEST(Rate, CountsNothingWithoutALimit) {
  Rate rate(0);
  Time next;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(rate.take(Clock::now(), next));
}

class BrokerTest : public testing::Test {
 protected:
  BrokerTest() { policy.limits.hello_seconds = support::patience_seconds; }
  ~BrokerTest() override {
    broker.reset();
    proxy = {};
    EXPECT_EQ(support::open_descriptors(), before);
  }

  void begin(const std::vector<std::string>& rules) {
    const EgressLimits limits = policy.limits;
    policy = support::policy_of(rules);
    policy.limits = limits;
    broker.emplace(policy, audit.get(), diagnostics.get());
    ASSERT_TRUE(broker->begin());
  }
  void take(SocketKind kind, const sys::Fd& fd, std::uint16_t port = 0) {
    sys::Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    ASSERT_TRUE(broker->take(kind, port, support::without_blocking(std::move(copy))));
  }
  void play(const std::function<void()>& script) {
    support::play(broker->loop(), script);
    broker->end();
  }
  [[nodiscard]] std::string log() const { return support::text_of(audit); }
  [[nodiscard]] bool tells(std::string_view part) const {
    return log().find(part) != std::string::npos;
  }

  sys::Fd audit = support::empty_file();
  sys::Fd diagnostics = support::empty_file();
  std::size_t before = support::open_descriptors();
  support::TcpListener proxy = support::listen_on_loopback();
  Policy policy;
  std::optional<Broker> broker;
};

constexpr std::string_view asked = "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n";

TEST_F(BrokerTest, CountsOnlyConnectionsAgainstTheRate) {
  policy.limits.per_second = 1;
  begin({});
  take(SocketKind::proxy, proxy.fd);
  play([&] {
    for (int i = 0; i < 2; ++i) {
      const sys::Fd client = connect_to(proxy.port);
      send_text(client, asked);
      EXPECT_TRUE(receive_all(client).starts_with("HTTP/1.1 403 "));
    }
  });
  EXPECT_FALSE(tells(R"("reason":"rate")")) << log();
}

TEST_F(BrokerTest, ServesLaterWhatComesTooFast) {
  policy.limits.per_second = 1;
  begin({});
  std::vector<sys::Fd> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect_to(proxy.port));
    send_text(clients.back(), asked);
  }
  take(SocketKind::proxy, proxy.fd);
  play([&] {
    for (const sys::Fd& client : clients) {
      EXPECT_TRUE(receive_all(client).starts_with("HTTP/1.1 403 "));
    }
  });
  EXPECT_TRUE(tells(R"("reason":"rate")")) << log();
}

TEST_F(BrokerTest, ResetsWhatIsTooMuchAtOnce) {
  policy.limits.connections = 1;
  begin({});
  take(SocketKind::proxy, proxy.fd);
  play([&] {
    sys::Fd first = connect_to(proxy.port);
    const sys::Fd second = connect_to(proxy.port);
    EXPECT_EQ(end_of(second), ECONNRESET);
    send_text(first, asked);
    EXPECT_TRUE(receive_all(first).starts_with("HTTP/1.1 403 "));
    const sys::Fd third = connect_to(proxy.port);  // there is room again
    send_text(third, asked);
    EXPECT_TRUE(receive_all(third).starts_with("HTTP/1.1 403 "));
  });
  EXPECT_TRUE(tells(R"("reason":"connections")")) << log();
  EXPECT_TRUE(tells(R"("event":"end")")) << log();
}

TEST_F(BrokerTest, AnswersNamesByDatagramAndByStream) {
  begin({"a.test:443"});
  const sys::Fd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = support::loopback_address(0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(datagrams.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(datagrams.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  take(SocketKind::dns_datagrams, datagrams);
  take(SocketKind::dns_streams, proxy.fd);
  const support::DnsBytes query = support::DnsQuestion{.name = support::dns_name("a.test")}.bytes();
  const auto expect_answer = [](std::string_view bytes) {
    const auto reply = support::read_dns_reply(
        {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->answers.size(), 1U);
    EXPECT_EQ(reply->answers[0].data[0], 28);
  };
  play([&] {
    const sys::Fd asker(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    support::limit_patience(asker);
    ASSERT_EQ(::connect(asker.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_GT(::send(asker.get(), query.data(), query.size(), 0), 0);
    std::string answer(512, '\0');
    const ssize_t got = ::recv(asker.get(), answer.data(), answer.size(), 0);
    ASSERT_GT(got, 0);
    expect_answer(std::string_view(answer).substr(0, static_cast<std::size_t>(got)));
    // Twice in one stream, in odd parts.
    const sys::Fd stream = connect_to(proxy.port);
    std::string framed = {0, static_cast<char>(query.size())};
    framed.append(query.begin(), query.end());
    framed += framed;
    send_text(stream, framed.substr(0, 1));
    send_text(stream, framed.substr(1));
    for (int i = 0; i < 2; ++i) {
      const std::string length = receive(stream, 2);
      ASSERT_EQ(length.size(), 2U);
      expect_answer(receive(stream, static_cast<unsigned char>(length[1])));
    }
  });
  EXPECT_EQ(support::count_of(R"("event":"dns")", log()), 2U) << log();  // one, and two repeats
}

TEST_F(BrokerTest, ServesABoundedNumberOfStreamsOfNames) {
  begin({});
  take(SocketKind::dns_streams, proxy.fd);
  play([&] {
    std::vector<sys::Fd> streams;
    for (int i = 0; i < 32; ++i) streams.push_back(connect_to(proxy.port));
    EXPECT_EQ(end_of(connect_to(proxy.port)), 0);  // one too many
    for (const sys::Fd& stream : streams) EXPECT_FALSE(support::has_event(stream, POLLIN));
  });
}

TEST_F(BrokerTest, ConnectsNobodyWhenTheBytesAreUsedUp) {
  policy.limits.bytes = 10;
  const support::TcpListener origin = support::listen_on_loopback();
  const std::string place = "localhost:" + std::to_string(origin.port);
  begin({place + "?proto=tcp"});
  take(SocketKind::proxy, proxy.fd);
  const std::string connect = "CONNECT " + place + " HTTP/1.1\r\nHost: " + place + "\r\n\r\n";
  play([&] {
    const sys::Fd first = connect_to(proxy.port);
    send_text(first, connect + "more than ten bytes");
    const sys::Fd server = accept_from(origin);
    EXPECT_TRUE(receive_all(first).starts_with("HTTP/1.1 200 "));
    const sys::Fd second = connect_to(proxy.port);
    EXPECT_EQ(end_of(second), ECONNRESET);
  });
  EXPECT_FALSE(support::has_caller(origin));
  EXPECT_TRUE(tells(R"("reason":"bytes")")) << log();
}

// As capgate-init does: a socket for each byte.
void give_socket(const sys::Fd& channel) {
  char family = 0;
  ASSERT_EQ(::recv(channel.get(), &family, 1, 0), 1);
  const sys::Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int raw = made.get();
  iovec part{&family, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(raw));
  std::memcpy(CMSG_DATA(rights), &raw, sizeof(raw));
  ASSERT_EQ(::sendmsg(channel.get(), &message, 0), 1);
}

TEST_F(BrokerTest, LeadsAPublishedPortInwards) {
  begin({});
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const sys::Fd ours(ends[0]);
  const sys::Fd channel(ends[1]);
  support::limit_patience(channel);
  const support::TcpListener server = support::listen_on_loopback();
  take(SocketKind::inner_sockets, ours);
  take(SocketKind::published, proxy.fd, server.port);
  play([&] {
    const sys::Fd client = connect_to(proxy.port);
    give_socket(channel);
    const sys::Fd inside = accept_from(server);
    send_text(client, "hello");
    EXPECT_EQ(receive(inside, 5), "hello");
  });
  EXPECT_TRUE(tells(R"("event":"inbound")")) << log();
}

TEST_F(BrokerTest, TakesWhatIsCapturedToItsOwnAddress) {
  begin({});
  take(SocketKind::capture, proxy.fd);
  play([&] { EXPECT_EQ(end_of(connect_to(proxy.port)), ECONNRESET); });
  EXPECT_TRUE(tells("no rule covers 127.0.0.1:" + std::to_string(proxy.port))) << log();
}

}  // namespace
}  // namespace capgate::egress
