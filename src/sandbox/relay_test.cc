#include "sandbox/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "sys/file.h"

namespace capgate::sandbox {
namespace {

struct Ends {
  sys::Fd near;
  sys::Fd far;
};

Ends pipe_ends() {  // far writes, near reads
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {sys::Fd(ends[0]), sys::Fd(ends[1])};
}

Ends socket_ends() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {sys::Fd(ends[0]), sys::Fd(ends[1])};
}

void run(Relay& relay) {
  while (!relay.is_done()) {
    pollfd poll = relay.wanted();
    ASSERT_GE(::poll(&poll, 1, 20'000), 1);
    relay.step();
  }
}

std::string read_all(int fd) {
  std::string out;
  char piece[65536];
  for (ssize_t size = 0; (size = ::read(fd, piece, sizeof(piece))) > 0;) {
    out.append(piece, static_cast<std::size_t>(size));
  }
  return out;
}

std::string many_bytes() {
  std::string out;
  for (int i = 0; i < 300'000; ++i) out += static_cast<char>(i * 7 + i / 251);
  return out;
}

// More than a pipe holds, from a pipe and from a socket.
TEST(Relay, EveryByteReachesTheServerAndThenTheEnd) {
  for (auto make : {pipe_ends, socket_ends}) {
    Ends client = make();
    auto relay = Relay::make(client.near.get(), Relay::Way::to_server);
    ASSERT_TRUE(relay);
    const std::string sent = many_bytes();
    std::string received;
    const int inner = ::dup(relay->inner());
    relay->release_inner();
    std::thread writer([&] {
      EXPECT_TRUE(sys::write_all(client.far.get(), sent));
      client.far = sys::Fd();
    });
    std::thread server([&] {
      const sys::Fd input(inner);
      received = read_all(input.get());
    });
    run(*relay);
    writer.join();
    server.join();
    EXPECT_TRUE(received == sent);
  }
}

TEST(Relay, EveryByteReachesTheClient) {
  Ends client = socket_ends();
  auto relay = Relay::make(client.near.get(), Relay::Way::from_server);
  ASSERT_TRUE(relay);
  const std::string sent = many_bytes();
  sys::Fd server(::dup(relay->inner()));
  relay->release_inner();
  std::thread writer([&] {
    EXPECT_TRUE(sys::write_all(server.get(), sent));
    server = sys::Fd();
  });
  std::string received;
  std::thread reader([&] { received = read_all(client.far.get()); });
  run(*relay);
  writer.join();
  reader.join();
  EXPECT_TRUE(received == sent);
}

// A server that opened the writing end of its own input again.
TEST(Relay, TheEndOfInputIsSeenAlthoughTheServerHoldsItOpen) {
  Ends client = pipe_ends();
  auto relay = Relay::make(client.near.get(), Relay::Way::to_server);
  ASSERT_TRUE(relay);
  const std::string again = "/proc/self/fd/" + std::to_string(relay->inner());
  const sys::Fd held(::open(again.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_GE(held.get(), 0);
  client.far = sys::Fd();
  run(*relay);
  EXPECT_TRUE(relay->is_done());
}

TEST(Relay, AServerThatClosedItsInputIsNotWaitedFor) {
  Ends client = socket_ends();
  auto relay = Relay::make(client.near.get(), Relay::Way::to_server);
  ASSERT_TRUE(relay);
  relay->release_inner();
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  EXPECT_TRUE(sys::write_all(client.far.get(), "anybody?"));
  run(*relay);
  ::signal(SIGPIPE, before);
}

TEST(Relay, OneThatIsNotUsedWantsNothing) {
  const Relay relay;
  EXPECT_FALSE(relay.is_used());
  EXPECT_EQ(relay.wanted().fd, -1);
}

}  // namespace
}  // namespace capgate::sandbox
