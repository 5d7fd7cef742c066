#include "egress/resolver.h"

#include <gtest/gtest.h>

#include <map>

#include "support/dns_messages.h"
#include "support/loopback.h"
#include "support/temp_directory.h"

namespace capgate::egress {
namespace {

constexpr unsigned type_a = 1;
constexpr unsigned type_aaaa = 28;

// A name server on 127.0.0.1 with a few names; it counts what it is asked.
class StubServer {
 public:
  StubServer() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), stop_(support::unix_pair()) {
    sockaddr_in address = support::loopback_address(0);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), raw, size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), raw, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;
  ~StubServer() { (void)asked(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Ends it: how often each name was asked for, both types together.
  std::map<std::string, int> asked() {
    stop_.first = sys::Fd();
    if (thread_.joinable()) thread_.join();
    return asked_;
  }

 private:
  void serve() {
    for (;;) {
      pollfd polls[2] = {{.fd = fd_.get(), .events = POLLIN, .revents = 0},
                         {.fd = stop_.second.get(), .events = POLLIN, .revents = 0}};
      if (::poll(polls, 2, -1) < 0 || polls[1].revents != 0) return;
      std::array<std::uint8_t, 1500> bytes{};
      sockaddr_storage from{};
      socklen_t size = sizeof(from);
      auto* peer = reinterpret_cast<sockaddr*>(&from);
      const ssize_t got = ::recvfrom(fd_.get(), bytes.data(), bytes.size(), 0, peer, &size);
      const auto query = support::read_dns_reply(
          std::span(bytes).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
      if (!query || query->questions.size() != 1) continue;
      const support::DnsBytes reply = answer(*query);
      if (!reply.empty()) (void)::sendto(fd_.get(), reply.data(), reply.size(), 0, peer, size);
    }
  }

  support::DnsBytes answer(const support::DnsMessage& query) {
    const support::DnsRecord& question = query.questions[0];
    ++asked_[question.name];
    if (question.name == "mute.test") return {};
    const bool exists = question.name != "none.test";
    std::vector<support::DnsBytes> data;
    if (exists && question.type == type_a) data = {{198, 51, 100, 7}, {198, 51, 100, 8}};
    if (question.name == "many.test" && question.type == type_a) {
      for (std::uint8_t i = 1; i <= 20; ++i) data.push_back({203, 0, 113, i});
    }
    if (question.name == "both.test" && question.type == type_aaaa) {
      data = {{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}};
    }
    support::DnsBytes out;
    for (const unsigned word :
         {query.id, exists ? 0x8180U : 0x8183U, 1U, static_cast<unsigned>(data.size()), 0U, 0U}) {
      support::append_word(out, word);
    }
    const support::DnsBytes name = support::dns_name(question.name);
    out.insert(out.end(), name.begin(), name.end());
    support::append_word(out, question.type);
    support::append_word(out, 1);
    const unsigned seconds = question.name == "brief.test" ? 0 : 60;
    for (const support::DnsBytes& address : data) {
      for (const unsigned word :
           {0xc00cU, question.type, 1U, 0U, seconds, static_cast<unsigned>(address.size())}) {
        support::append_word(out, word);
      }
      out.insert(out.end(), address.begin(), address.end());
    }
    return out;
  }

  sys::Fd fd_;
  support::Pair stop_;
  std::uint16_t port_ = 0;
  std::map<std::string, int> asked_;
  std::thread thread_;
};

class ResolverTest : public testing::Test {
 protected:
  // One after the other; the loop stops after the last.
  static Task resolve(ResolverTest& self, std::vector<std::string> names) {
    for (const std::string& name : names) {
      self.results.push_back(co_await self.resolver.resolve(name));
    }
    if (--self.running == 0) self.loop.stop();
  }
  void run(const std::vector<std::vector<std::string>>& lists) {
    running = lists.size();
    for (const auto& names : lists) resolve(*this, names);
    if (running > 0) loop.run();
  }
  static std::vector<std::string> texts(const Resolved& resolved) {
    std::vector<std::string> out;
    for (const Address& address : resolved.addresses) out.push_back(to_text(address));
    return out;
  }

  StubServer server;
  test::TempDirectory directory;
  Loop loop;
  Resolver resolver{loop,
                    {.file = directory.file("resolv.conf", "nameserver 127.0.0.1\nsearch x.test\n"),
                     .port = server.port()}};
  std::vector<Resolved> results;
  std::size_t running = 0;
};

using Texts = std::vector<std::string>;

TEST_F(ResolverTest, GivesTheAddressesOfAName) {
  run({{"a.test"}});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(texts(results[0]), (Texts{"198.51.100.7", "198.51.100.8"})) << results[0].why;
}

TEST_F(ResolverTest, TakesTurnsBetweenTheFamilies) {
  run({{"both.test"}});
  EXPECT_EQ(texts(results.at(0)), (Texts{"2001:db8::7", "198.51.100.7", "198.51.100.8"}));
}

TEST_F(ResolverTest, AsksOnceForWhatSeveralWant) {
  run({{"a.test"}, {"a.test"}, {"a.test"}});
  ASSERT_EQ(results.size(), 3U);
  for (const Resolved& resolved : results) EXPECT_EQ(resolved.addresses.size(), 2U);
  EXPECT_EQ(server.asked()["a.test"], 2);  // A and AAAA
}

TEST_F(ResolverTest, KeepsAnswersForAsLongAsTheyHold) {
  run({{"a.test", "a.test", "brief.test", "brief.test"}});
  auto asked = server.asked();
  EXPECT_EQ(asked["a.test"], 2);
  EXPECT_EQ(asked["brief.test"], 4);
}

// A name server must not decide how many addresses are dialled, or how much memory is used.
TEST_F(ResolverTest, TakesABoundedNumberOfAddresses) {
  run({{"many.test"}});
  EXPECT_EQ(results.at(0).addresses.size(), 16U);
}

TEST_F(ResolverTest, KeepsABoundedNumberOfAnswers) {
  std::vector<std::string> names;
  for (int i = 0; i <= 1024; ++i) names.push_back("n" + std::to_string(i) + ".test");
  names.emplace_back("n0.test");
  run({names});
  auto asked = server.asked();
  EXPECT_EQ(asked["n1024.test"], 2);
  EXPECT_EQ(asked["n0.test"], 4);  // its answer was dropped when the cache was full
}

TEST_F(ResolverTest, SaysWhyThereIsNone) {
  run({{"none.test"}});
  EXPECT_TRUE(results.at(0).addresses.empty());
  EXPECT_NE(results.at(0).why, "");
  auto asked = server.asked();
  EXPECT_EQ(asked.size(), 1U) << "a search domain was added";
}

Task resolve_around(Resolver& resolver, Loop& loop, std::function<void()> between) {
  (void)co_await resolver.resolve("a.test");
  between();
  (void)co_await resolver.resolve("a.test");
  loop.stop();
}

TEST_F(ResolverTest, AsksAgainWhenTheServersChange) {
  resolve_around(resolver, loop, [&] {
    directory.file("new.conf", "nameserver 127.0.0.1\n");
    std::filesystem::rename(directory.path("new.conf"), directory.path("resolv.conf"));
  });
  loop.run();
  EXPECT_EQ(server.asked()["a.test"], 4);
}

TEST_F(ResolverTest, WakesEverybodyWhenItIsCancelled) {
  running = 2;
  resolve(*this, {"mute.test"});
  resolve(*this, {"mute.test"});
  EXPECT_TRUE(results.empty());
  resolver.cancel();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(results[0].addresses.empty());
  EXPECT_NE(results[0].why, "");
}

TEST_F(ResolverTest, LeavesNoDescriptorBehind) {
  const std::size_t before = support::open_descriptors();
  {
    Loop own;
    Resolver other(own, {.file = directory.path("resolv.conf"), .port = server.port()});
    resolve_around(other, own, [] {});
    own.run();
  }
  EXPECT_EQ(support::open_descriptors(), before);
}

}  // namespace
}  // namespace capgate::egress
