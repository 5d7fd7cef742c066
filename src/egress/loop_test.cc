#include "egress/loop.h"

#include <gtest/gtest.h>

#include <array>

#include "egress/io.h"
#include "support/loopback.h"

namespace capgate::egress {
namespace {

using namespace std::chrono_literals;
using support::Pair;
using support::send_text;
using support::Stage;
using support::unix_pair;

// `wait` makes what is waited for: it cannot be moved.
template <typename MakeWait>
Task note(MakeWait wait, std::vector<Woken>& out) {
  out.push_back(co_await wait());
}

template <typename MakeWait>
Task note_and_stop(Loop& loop, MakeWait wait, std::vector<Woken>& out) {
  out.push_back(co_await wait());
  loop.stop();
}

// Until the kernel takes no more.
void fill_up(const sys::Fd& fd) {
  const std::string bytes(64 * 1024, 'x');
  while (::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
}

class LoopTest : public testing::Test {
 protected:
  Stage stage;
  Loop& loop = stage.loop;
  std::vector<Woken> woken;
};

TEST_F(LoopTest, WakesAReaderWhenSomethingArrives) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  note_and_stop(loop, [&] { return loop.readable(*socket); }, woken);
  EXPECT_TRUE(woken.empty());
  send_text(pair.second, "x");
  loop.run();
  EXPECT_EQ(woken, std::vector{Woken::ready});
}

TEST_F(LoopTest, WakesAReaderWhenThePeerEnds) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  note_and_stop(loop, [&] { return loop.readable(*socket); }, woken);
  pair.second = sys::Fd();
  loop.run();
  EXPECT_EQ(woken, std::vector{Woken::ready});
  EXPECT_TRUE(socket->has_failed);
}

TEST_F(LoopTest, WakesAReaderAndAWriterOfOneSocket) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  note([&] { return loop.writable(*socket); }, woken);
  note_and_stop(loop, [&] { return loop.readable(*socket); }, woken);
  send_text(pair.second, "x");
  loop.run();
  EXPECT_EQ(woken, (std::vector{Woken::ready, Woken::ready}));
}

TEST_F(LoopTest, DoesNotWaitForWhatItKnows) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  socket->is_readable = true;
  note([&] { return loop.readable(*socket); }, woken);
  EXPECT_EQ(woken, std::vector{Woken::ready});
}

TEST_F(LoopTest, WakesAtTheDeadline) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  const Time deadline = Clock::now() + 20ms;
  note_and_stop(loop, [&] { return loop.readable(*socket, deadline); }, woken);
  loop.run();
  EXPECT_EQ(woken, std::vector{Woken::late});
  EXPECT_GE(Clock::now(), deadline);
  loop.cancel(*socket);  // it waits no longer
  EXPECT_EQ(woken.size(), 1U);
}

TEST_F(LoopTest, WakesSleepersInTheirOrder) {
  const Time now = Clock::now();
  std::vector<int> order;
  const auto sleep = [](Loop& own, Time time, int number, std::vector<int>& out) -> Task {
    if (co_await own.sleep_until(time) == Woken::late) out.push_back(number);
    if (out.size() == 3) own.stop();
  };
  sleep(loop, now + 30ms, 3, order);
  sleep(loop, now + 10ms, 1, order);
  sleep(loop, now + 20ms, 2, order);
  loop.run();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(LoopTest, WakesWhenOneOfSeveralCanBeWritten) {
  Pair full = unix_pair();
  Pair free = unix_pair();
  fill_up(full.first);
  const SocketPtr first = stage.adopt(std::move(full.first));
  const SocketPtr second = stage.adopt(std::move(free.first));
  const std::array<Socket*, 2> both = {first.get(), second.get()};
  note_and_stop(loop, [&] { return loop.any_writable(both, never); }, woken);
  loop.run();
  EXPECT_EQ(woken, std::vector{Woken::ready});
  EXPECT_FALSE(first->is_writable);
  EXPECT_TRUE(second->is_writable);
}

TEST_F(LoopTest, ForgetsAllOfSeveralWhenNoneCanBeWrittenInTime) {
  Pair one = unix_pair();
  Pair two = unix_pair();
  fill_up(one.first);
  fill_up(two.first);
  const SocketPtr first = stage.adopt(std::move(one.first));
  const SocketPtr second = stage.adopt(std::move(two.first));
  const std::array<Socket*, 2> both = {first.get(), second.get()};
  note_and_stop(loop, [&] { return loop.any_writable(both, Clock::now() + 10ms); }, woken);
  loop.run();
  EXPECT_EQ(woken, std::vector{Woken::late});
  loop.cancel(*first);
  loop.cancel(*second);
  EXPECT_EQ(woken.size(), 1U);
}

TEST_F(LoopTest, CancelsWhoWaitsOnASocket) {
  Pair pair = unix_pair();
  fill_up(pair.first);
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  note([&] { return loop.readable(*socket, Clock::now() + 1h); }, woken);
  note([&] { return loop.writable(*socket); }, woken);
  loop.cancel(*socket);
  EXPECT_EQ(woken, (std::vector{Woken::cancelled, Woken::cancelled}));
}

Task insist(Loop& loop, Socket& socket, int times, int& cancelled) {
  while (times-- > 0) {
    if (co_await loop.readable(socket) == Woken::cancelled) ++cancelled;
  }
}

TEST_F(LoopTest, CancelsUntilNobodyWaits) {
  Pair one = unix_pair();
  Pair two = unix_pair();
  const SocketPtr first = stage.adopt(std::move(one.first));
  const SocketPtr second = stage.adopt(std::move(two.first));
  int cancelled = 0;
  insist(loop, *first, 3, cancelled);
  insist(loop, *second, 1, cancelled);
  note([&] { return loop.sleep_until(Clock::now() + 1h); }, woken);
  loop.cancel_all();
  EXPECT_EQ(cancelled, 4);
  EXPECT_EQ(woken, std::vector{Woken::cancelled});
}

// Closes what it is told to when it hears of an event.
struct Closes final : Owner {
  explicit Closes(Loop& of) : loop(of) {}
  void on_event(Socket& /*socket*/) override {
    ++events;
    other.reset();
    loop.stop();
  }
  Loop& loop;
  SocketPtr other;
  int events = 0;
};

TEST_F(LoopTest, TellsNobodyOfASocketThatEndedInTheSameRound) {
  Pair one = unix_pair();
  Pair two = unix_pair();
  Closes first(loop);
  Closes second(loop);
  first.other = stage.adopt(std::move(two.first));
  second.other = stage.adopt(std::move(one.first));
  first.other->owner = &second;
  second.other->owner = &first;
  loop.run();  // both can be written, so the first round has an event of each
  EXPECT_EQ(first.events + second.events, 1);
}

Task read_then_close(Loop& loop, SocketPtr socket, SocketPtr& other, std::vector<Woken>& out) {
  out.push_back(co_await loop.readable(*socket));
  if (other) loop.cancel(*other);
  other.reset();
}

TEST_F(LoopTest, ResumesNobodyWhoWasCancelledInTheSameRound) {
  Pair one = unix_pair();
  Pair two = unix_pair();
  SocketPtr first = stage.adopt(std::move(one.first));  // so its event comes first
  SocketPtr other = stage.adopt(std::move(two.first));
  read_then_close(loop, std::move(first), other, woken);
  note_and_stop(loop, [&] { return loop.readable(*other); }, woken);
  send_text(one.second, "x");
  send_text(two.second, "x");
  loop.run();
  EXPECT_EQ(woken, (std::vector{Woken::ready, Woken::cancelled}));
}

TEST_F(LoopTest, LooksWhenAskedTo) {
  int looks = 0;
  const Loop::LookId id = loop.every([&](Time now) {
    if (++looks == 3) loop.stop();
    return now + 5ms;
  });
  loop.call_soon(id);
  loop.run();
  EXPECT_EQ(looks, 3);
}

TEST_F(LoopTest, TellsOfBytesAgain) {
  Pair pair = unix_pair();
  struct Counts final : Owner {
    explicit Counts(Loop& of) : loop(of) {}
    void on_event(Socket& socket) override {
      if (++events == 3) return loop.stop();
      loop.look_again(socket);
    }
    Loop& loop;
    int events = 0;
  } counts(loop);
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  socket->owner = &counts;
  send_text(pair.second, "x");
  loop.run();
  EXPECT_EQ(counts.events, 3);
}

// ---- Reading and writing ---------------------------------------------------------------------

Task note_reading(Loop& loop, Socket& socket, Time deadline, ssize_t& out) {
  std::array<char, 16> into{};
  out = co_await read_some(loop, socket, into, deadline);
  if (out != taken_away) loop.stop();
}

Task note_writing(Loop& loop, Socket& socket, std::string bytes, Time deadline, ssize_t& out) {
  out = co_await write_all(loop, socket, bytes, deadline);
  if (out != taken_away) loop.stop();
}

TEST_F(LoopTest, ReadSomeTellsHowItEnded) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  ssize_t size = -7;
  note_reading(loop, *socket, never, size);
  loop.cancel(*socket);
  EXPECT_EQ(size, taken_away);
  note_reading(loop, *socket, Clock::now() + 5ms, size);
  loop.run();
  EXPECT_EQ(size, failed);
}

TEST_F(LoopTest, ReadSomeTellsTheEnd) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  ssize_t size = -7;
  pair.second = sys::Fd();
  note_reading(loop, *socket, never, size);
  loop.run();
  EXPECT_EQ(size, ended);
}

TEST_F(LoopTest, WriteAllWaitsForASlowReader) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  const std::string bytes(4U << 20U, 'y');
  ssize_t size = -7;
  note_writing(loop, *socket, bytes, never, size);
  std::string got;
  std::thread reader([&] { got = support::receive(pair.second, bytes.size()); });
  loop.run();
  reader.join();
  EXPECT_EQ(size, static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(got, bytes);
}

TEST_F(LoopTest, WriteAllEndsAtTheDeadlineAndWithItsPeer) {
  Pair pair = unix_pair();
  const SocketPtr socket = stage.adopt(std::move(pair.first));
  ssize_t size = -7;
  note_writing(loop, *socket, std::string(4U << 20U, 'y'), Clock::now() + 20ms, size);
  loop.run();
  EXPECT_EQ(size, failed);
  note_writing(loop, *socket, "z", never, size);
  loop.cancel(*socket);
  EXPECT_EQ(size, taken_away);
}

}  // namespace
}  // namespace capgate::egress
