#include "mcp/tools.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "mcp/framing.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::mcp {
namespace {

using Cause = AskProblem::Cause;
using std::chrono::milliseconds;
using sys::Fd;

constexpr std::string_view not_found = R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601}})";
constexpr std::string_view initialized =
    R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}})";
constexpr std::string_view one_tool =
    R"({"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a"}]}})";

struct PipeEnds {
  Fd read, write;
};

PipeEnds make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// The server's side of the pipes.
class Peer {
 public:
  Peer(Fd in, Fd out) : in_(std::move(in)), out_(std::move(out)) {}

  // The next line of the client; empty at the end.
  std::string line() {
    std::string out;
    char c = 0;
    while (::read(in_.get(), &c, 1) == 1 && c != '\n') out += c;
    return out;
  }
  bool say(std::string_view text) { return sys::write_all(out_.get(), text).has_value(); }
  bool answer(std::string_view message) { return say(std::string(message) + "\n"); }
  void close_input() { in_ = Fd(); }

 private:
  Fd in_, out_;
};

using Script = std::function<void(Peer&)>;
using Answer = std::expected<ServerTools, AskProblem>;

// The script may write to a client that is gone.
void ask_while(const Script& script, const std::function<void(const Pipes&)>& ask) {
  PipeEnds in = make_pipe();
  PipeEnds out = make_pipe();
  std::thread server([&script, peer = Peer(std::move(in.read), std::move(out.write))]() mutable {
    sigset_t broken;
    ::sigemptyset(&broken);
    ::sigaddset(&broken, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken, nullptr);
    script(peer);
  });
  ask({.to = in.write.get(), .from = out.read.get()});
  in.write = Fd();
  out.read = Fd();
  server.join();
}

Answer ask(const AskLimits& limits, const Script& script) {
  Answer answer;
  ask_while(script, [&](const Pipes& pipes) { answer = ask_tools(pipes, limits); });
  return answer;
}

// Long enough for any machine: only a server that is silent waits for it.
constexpr AskLimits patient{.start = milliseconds(20'000), .probe = milliseconds(10'000)};
constexpr AskLimits hasty{
    .start = milliseconds(300), .probe = milliseconds(50), .whole = milliseconds(600)};

TEST(AskTools, ALegacyServerAnswers) {
  const Answer answer = ask(patient, [](Peer& peer) {
    EXPECT_TRUE(peer.line().contains("server/discover"));
    peer.answer(not_found);
    EXPECT_TRUE(peer.line().contains(R"("initialize")"));
    peer.answer(initialized);
    EXPECT_TRUE(peer.line().contains("notifications/initialized"));
    EXPECT_TRUE(peer.line().contains("tools/list"));
    peer.answer(one_tool);
  });
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_EQ(answer->tools.size(), 1U);
  EXPECT_EQ(answer->tools[0].name, "a");
}

TEST(AskTools, AServerThatIsSilentOnTheProbeIsInitialized) {
  AskLimits limits = patient;
  limits.probe = milliseconds(50);
  const Answer answer = ask(limits, [](Peer& peer) {
    (void)peer.line();
    EXPECT_TRUE(peer.line().contains(R"("initialize")"));
    peer.answer(initialized);
    (void)peer.line();
    (void)peer.line();
    peer.answer(one_tool);
  });
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->era, Era::legacy);
}

TEST(AskTools, AServerThatEndsOnTheProbeIsToldApart) {
  const Answer at_probe = ask(patient, [](Peer& peer) { (void)peer.line(); });
  ASSERT_FALSE(at_probe.has_value());
  EXPECT_EQ(at_probe.error().cause, Cause::closed_at_probe);
  const Answer later = ask(patient, [](Peer& peer) {
    (void)peer.line();
    peer.answer(not_found);
    (void)peer.line();
    peer.say("half a line");
  });
  ASSERT_FALSE(later.has_value());
  EXPECT_EQ(later.error().cause, Cause::closed);
  EXPECT_TRUE(later.error().message.contains("initialize")) << later.error().message;
}

TEST(AskTools, AServerThatDoesNotTakeInputRaisesNoSignal) {
  PipeEnds in = make_pipe();
  PipeEnds out = make_pipe();
  in.read = Fd();
  const Answer answer = ask_tools({.to = in.write.get(), .from = out.read.get()}, hasty);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cause, Cause::closed_at_probe);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST(AskTools, SilenceEnds) {
  const Answer answer = ask(hasty, [](Peer& peer) {
    while (!peer.line().empty()) {
    }
  });
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cause, Cause::late);
  EXPECT_TRUE(answer.error().message.contains("0.3 seconds")) << answer.error().message;
}

TEST(AskTools, AFirstAnswerGivesMoreTimeButNotForEver) {
  const Answer answer = ask(hasty, [](Peer& peer) {
    (void)peer.line();
    peer.answer(not_found);
    while (!peer.line().empty()) {
    }
  });
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cause, Cause::late);
  EXPECT_TRUE(answer.error().message.contains("0.6 seconds")) << answer.error().message;
}

TEST(AskTools, AServerThatAlwaysTalksIsNotListenedToForEver) {
  const Answer answer = ask(hasty, [](Peer& peer) {
    while (peer.answer(R"({"jsonrpc":"2.0","method":"notifications/message"})")) {
    }
  });
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(answer.error().cause == Cause::late || answer.error().cause == Cause::wrong);
}

TEST(AskTools, ALineHasAnEnd) {
  AskLimits limits = patient;
  limits.line = 100'000;
  const Answer endless = ask(limits, [](Peer& peer) {
    while (peer.say(std::string(4096, 'x'))) {
    }
  });
  ASSERT_FALSE(endless.has_value());
  EXPECT_EQ(endless.error().cause, Cause::wrong);
  EXPECT_TRUE(endless.error().message.contains("100000 bytes")) << endless.error().message;
  const Answer ended = ask(limits, [](Peer& peer) { peer.answer(std::string(100'001, 'x')); });
  ASSERT_FALSE(ended.has_value());
  EXPECT_TRUE(ended.error().message.contains("100000 bytes")) << ended.error().message;
}

TEST(AskTools, ALineOfTheGreatestLengthIsRead) {
  AskLimits limits = patient;
  limits.line = 100'000;
  const Answer answer = ask(limits, [](Peer& peer) {
    (void)peer.line();
    std::string message(not_found);
    message.insert(1, std::string(100'000 - message.size(), ' '));
    peer.answer(message);
    EXPECT_TRUE(peer.line().contains(R"("initialize")"));
  });
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cause, Cause::closed);
}

TEST(AskTools, AConversationHasAnEnd) {
  AskLimits limits = patient;
  limits.bytes = 1'000'000;
  const Answer answer = ask(limits, [](Peer& peer) {
    const std::string message =
        R"({"jsonrpc":"2.0","method":"x","params":")" + std::string(60'000, 'x') + R"("})";
    while (peer.answer(message)) {
    }
  });
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(answer.error().message.contains("1000000 bytes")) << answer.error().message;
}

TEST(AskTools, LinesInPiecesAndSeveralAtOnceAreTheSame) {
  const Answer answer = ask(patient, [](Peer& peer) {
    (void)peer.line();
    for (const char c : std::string(not_found) + "\n") peer.say(std::string_view(&c, 1));
    peer.say("\n\r\n" + std::string(initialized) + "\r\n" + std::string(one_tool) + "\n");
    while (!peer.line().empty()) {
    }
  });
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
}

TEST(AskTools, WhoCancelsDoesNotWait) {
  const PipeEnds cancel = make_pipe();
  ASSERT_TRUE(sys::write_all(cancel.write.get(), "x").has_value());
  Answer answer;
  ask_while(
      [](Peer& peer) {
        while (!peer.line().empty()) {
        }
      },
      [&](Pipes pipes) {
        pipes.cancel = cancel.read.get();
        answer = ask_tools(pipes, patient);
      });
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cause, Cause::cancelled);
}

TEST(AskTools, AServerThatTalksOnStderrDoesNotBlock) {
  PipeEnds errors = make_pipe();
  ASSERT_EQ(::fcntl(errors.read.get(), F_SETFL, O_NONBLOCK), 0);
  ErrorTail tail(std::move(errors.read));
  Answer answer;
  const Script script = [&](Peer& peer) {
    const Fd out = std::move(errors.write);
    // Far more than a pipe holds.
    EXPECT_TRUE(sys::write_all(out.get(), std::string(1'000'000, 'x') + "the end").has_value());
    (void)peer.line();
    peer.answer(not_found);
    (void)peer.line();
    peer.answer(initialized);
    (void)peer.line();
    (void)peer.line();
    peer.answer(one_tool);
  };
  ask_while(script, [&](Pipes pipes) {
    pipes.errors = &tail;
    answer = ask_tools(pipes, patient);
  });
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  while (tail.fd() >= 0) tail.step();  // the writer is gone: to its end
  EXPECT_TRUE(tail.text().ends_with("the end"));
  EXPECT_LT(tail.text().size(), 10'000U);
}

}  // namespace
}  // namespace capgate::mcp
