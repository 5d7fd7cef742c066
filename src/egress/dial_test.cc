#include "egress/dial.h"

#include <gtest/gtest.h>

#include "support/loopback.h"

namespace capgate::egress {
namespace {

using namespace std::chrono_literals;
using support::open_descriptors;
using support::TcpListener;

constexpr Address silent{.ipv6 = false, .bytes = {127, 0, 0, 3}};
constexpr Address empty{.ipv6 = false, .bytes = {127, 0, 0, 2}};

Task note(Loop& loop, std::vector<Address> addresses, std::uint16_t port, Time deadline,
          std::optional<Dialled>& out) {
  out = co_await dial(loop, std::move(addresses), port, deadline);
  loop.stop();
}

// A listener that answers nobody: its queue is full, so the kernel drops what comes.
class Deaf {
 public:
  explicit Deaf(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress at = to_socket_address(silent, port);
    const auto* raw = reinterpret_cast<const sockaddr*>(&at.storage);
    EXPECT_EQ(::bind(fd_.get(), raw, at.size), 0);
    EXPECT_EQ(::listen(fd_.get(), 0), 0);
    for (sys::Fd& caller : callers_) {
      caller = sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(caller.get(), raw, at.size);
    }
  }

 private:
  sys::Fd fd_;
  std::array<sys::Fd, 4> callers_;
};

class DialTest : public testing::Test {
 protected:
  Dialled dialled(std::vector<Address> addresses, Clock::duration patience = 20s) {
    std::optional<Dialled> out;
    note(loop, std::move(addresses), listener.port, Clock::now() + patience, out);
    loop.run();
    return *std::move(out);
  }
  Loop loop;
  TcpListener listener = support::listen_on_loopback();
};

TEST_F(DialTest, TakesTheFirstThatAnswers) {
  const Dialled done = dialled({loopback_ipv4, empty});
  ASSERT_TRUE(done.socket) << done.why;
  EXPECT_EQ(done.address, loopback_ipv4);
  EXPECT_TRUE(support::has_caller(listener));
}

TEST_F(DialTest, GoesOnAtOnceWhenOneRefuses) {
  const Time start = Clock::now();
  std::vector<Address> addresses(20, empty);  // five seconds if each had its head start
  addresses.push_back(loopback_ipv4);
  const Dialled done = dialled(addresses);
  ASSERT_TRUE(done.socket) << done.why;
  EXPECT_EQ(done.address, loopback_ipv4);
  EXPECT_LT(Clock::now() - start, 4s);
}

TEST_F(DialTest, DoesNotWaitForASilentOne) {
  const Deaf deaf(listener.port);
  const std::size_t before = open_descriptors();
  const Time start = Clock::now();
  const Dialled done = dialled({silent, loopback_ipv4});
  ASSERT_TRUE(done.socket) << done.why;
  EXPECT_EQ(done.address, loopback_ipv4);
  EXPECT_GE(Clock::now() - start, 250ms);
  EXPECT_EQ(open_descriptors(), before + 1);  // the silent one was given up
}

TEST_F(DialTest, EndsAtTheDeadline) {
  const Deaf deaf(listener.port);
  const Dialled done = dialled({silent, silent}, 300ms);
  EXPECT_FALSE(done.socket);
  EXPECT_EQ(done.why, "no answer in time");
}

TEST_F(DialTest, SaysWhyNoneAnswered) {
  const Dialled done = dialled({empty, empty});
  EXPECT_FALSE(done.socket);
  EXPECT_EQ(done.why, "Connection refused");
}

TEST_F(DialTest, HasNowhereToGo) {
  const Dialled done = dialled({});
  EXPECT_FALSE(done.socket);
}

TEST_F(DialTest, LeavesNothingWhenItIsCancelled) {
  const Deaf deaf(listener.port);
  const std::size_t before = open_descriptors();
  std::optional<Dialled> out;
  note(loop, {silent, silent}, listener.port, never, out);
  loop.cancel_all();
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->socket);
  EXPECT_EQ(open_descriptors(), before);
}

// ---- Sockets that were made elsewhere --------------------------------------------------------

Task note_connect(Loop& loop, std::uint16_t port, Address address, std::optional<SocketPtr>& out) {
  sys::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  out = co_await connect(loop, std::move(fd), address, port, Clock::now() + 20s);
  loop.stop();
}

TEST_F(DialTest, ConnectsASocketThatItIsGiven) {
  std::optional<SocketPtr> out;
  note_connect(loop, listener.port, loopback_ipv4, out);
  loop.run();
  ASSERT_TRUE(out);
  EXPECT_TRUE(*out);
}

TEST_F(DialTest, GivesUpASocketThatIsRefused) {
  std::optional<SocketPtr> out;
  note_connect(loop, listener.port, empty, out);
  loop.run();
  ASSERT_TRUE(out);
  EXPECT_FALSE(*out);
}

}  // namespace
}  // namespace capgate::egress
