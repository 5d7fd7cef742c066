#include "secrets/renewal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "secrets/provider_lab.h"
#include "support/requirement.h"

namespace capgate::secrets {
namespace {

struct Answer {
  RenewalReply reply;
  std::string value;
};

class Renewal : public ProviderTest {
 protected:
  void TearDown() override {
    renewer_.end();
    ProviderTest::TearDown();
  }

  void start(const std::vector<std::string>& texts) {
    std::vector<Binding> bindings;
    for (const std::string& text : texts) bindings.push_back(*parse_binding(text));
    auto started = start_renewer(std::move(bindings), context());
    ASSERT_TRUE(started) << started.error().message;
    renewer_ = *std::move(started);
  }

  void ask(std::string_view name) const {
    RenewalRequest request;
    name.copy(request.name, longest_name);
    ASSERT_EQ(::send(renewer_.channel.get(), &request, sizeof(request), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(request)));
  }

  [[nodiscard]] Answer next() const {
    char bytes[sizeof(RenewalReply) + longest_value];
    const ssize_t size = ::recv(renewer_.channel.get(), bytes, sizeof(bytes), 0);
    Answer out;
    EXPECT_GE(size, static_cast<ssize_t>(sizeof(out.reply)));
    if (size < static_cast<ssize_t>(sizeof(out.reply))) return out;
    std::memcpy(&out.reply, bytes, sizeof(out.reply));
    out.value.assign(bytes + sizeof(out.reply), static_cast<std::size_t>(size) - sizeof(out.reply));
    return out;
  }

  [[nodiscard]] pid_t renewer_pid() const {
    const auto info = sys::read_file(format("/proc/self/fdinfo/{}", renewer_.process.get()), 4096);
    const std::size_t at = info->find("Pid:");
    return static_cast<pid_t>(std::stoi(info->substr(at + 4)));
  }

  // Waits until it has ended.
  [[nodiscard]] bool has_ended() const {
    pollfd poll{renewer_.process.get(), POLLIN, 0};
    return ::poll(&poll, 1, 20'000) == 1;
  }

  Renewer renewer_;
};

TEST_F(Renewal, RunsTheCommandEachTime) {
  const std::string counter = file("counter", "");
  start({"TOKEN=cmd?ttl=600:" +
         script("a", format("echo x >> {0}; echo long-token-$(wc -l < {0})\n", counter))});
  for (const char* expected : {"long-token-1", "long-token-2"}) {
    ask("TOKEN");
    const Answer answer = next();
    EXPECT_STREQ(answer.reply.name, "TOKEN");
    EXPECT_EQ(answer.reply.is_renewed, 1U);
    EXPECT_EQ(answer.reply.size, answer.value.size());
    EXPECT_EQ(answer.value, expected);
    EXPECT_GT(answer.reply.expires, ::time(nullptr) + 500);
  }
}

TEST_F(Renewal, AFailureIsAnAnswer) {
  start({"TOKEN=cmd?ttl=600:false", "LINES=cmd?ttl=600:printf 'long\\nenough'",
         "SHORT=cmd?ttl=600:echo short"});
  for (const char* name : {"TOKEN", "LINES", "SHORT"}) {
    ask(name);
    const Answer answer = next();
    EXPECT_STREQ(answer.reply.name, name);
    EXPECT_EQ(answer.reply.is_renewed, 0U);
    EXPECT_EQ(answer.value, "");
  }
}

TEST_F(Renewal, OnlyWhatWasBoundIsRun) {
  start({"TOKEN=cmd?ttl=600:echo value-of-token", "LAST=cmd?ttl=600:echo value-of-last"});
  ask("OTHER");
  ASSERT_EQ(::send(renewer_.channel.get(), "TOKEN", 5, MSG_NOSIGNAL), 5);
  RenewalRequest endless;
  std::memset(endless.name, 'A', sizeof(endless.name));
  ASSERT_GT(::send(renewer_.channel.get(), &endless, sizeof(endless), MSG_NOSIGNAL), 0);
  ask("TOKEN");
  ask("LAST");
  EXPECT_EQ(next().value, "value-of-token");
  EXPECT_EQ(next().value, "value-of-last") << "what was not bound, or cut, was answered";
}

TEST_F(Renewal, EndsWithTheChannel) {
  start({"TOKEN=cmd?ttl=600:echo value-of-token"});
  renewer_.channel = sys::Fd();
  EXPECT_TRUE(has_ended());
}

TEST_F(Renewal, ARunningCommandEndsWithTheChannel) {
  ASSERT_EQ(::mkfifo(path("started").c_str(), 0600), 0);
  start({"TOKEN=cmd?ttl=600:" +
         script("a", format("echo $$ > {}; exec sleep 1000\n", path("started")))});
  ask("TOKEN");
  const auto pid = sys::read_file(path("started"), 32);
  ASSERT_TRUE(pid);
  renewer_.channel = sys::Fd();
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(::kill(std::stoi(*pid), 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// As an ordinary user: root may look into everything.
TEST_F(Renewal, NoProcessOfTheSameUserCanLookIntoIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t ordinary = 12345;
    if (::geteuid() == 0 && ::setresuid(ordinary, ordinary, ordinary) != 0) ::_exit(2);
    if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) ::_exit(3);
    start({"TOKEN=cmd?ttl=600:echo value-of-token"});
    ask("TOKEN");
    if (next().value != "value-of-token") ::_exit(4);
    const std::string memory = format("/proc/{}/mem", renewer_pid());
    const sys::Fd opened(::open(memory.c_str(), O_RDONLY | O_CLOEXEC));
    const bool is_closed = opened.get() < 0 && errno == EACCES;
    renewer_.end();
    ::_exit(is_closed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST_F(Renewal, HasAName) {
  start({"TOKEN=cmd?ttl=600:echo value-of-token"});
  ask("TOKEN");
  EXPECT_EQ(next().value, "value-of-token");
  EXPECT_TRUE(
      sys::read_file(format("/proc/{}/comm", renewer_pid()), 64)->starts_with("capgate-renewer"));
}

TEST_F(Renewal, HoldsNothingOpen) {
  CAPGATE_REQUIRE(::geteuid() == 0, "only root can see the descriptors of the renewer");
  start({"TOKEN=cmd?ttl=600:echo value-of-token"});
  ask("TOKEN");
  EXPECT_EQ(next().value, "value-of-token");
  const std::string base = format("/proc/{}", renewer_pid());
  std::vector<std::string> open;
  for (const auto& entry : std::filesystem::directory_iterator(base + "/fd")) {
    open.push_back(entry.path().filename());
  }
  std::ranges::sort(open);
  EXPECT_EQ(open, (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST_F(Renewal, EndReapsIt) {
  start({"TOKEN=cmd?ttl=600:echo value-of-token"});
  renewer_.end();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  renewer_.end();
}

}  // namespace
}  // namespace capgate::secrets
