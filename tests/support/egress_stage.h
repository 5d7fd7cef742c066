// Connections of the broker with a stub origin, both on 127.0.0.1, and the log that they write.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/connections.h"
#include "support/flow_vectors.h"
#include "support/hellos.h"
#include "support/loopback.h"

namespace capgate::support {

[[nodiscard]] inline std::string hello_to(std::string_view name) {
  const ByteVector bytes = hello_with({server_name(name)});
  return {bytes.begin(), bytes.end()};
}

[[nodiscard]] inline std::string text_of(const sys::Fd& file) {
  std::string out(1U << 20U, '\0');
  const ssize_t size = ::pread(file.get(), out.data(), out.size(), 0);
  EXPECT_GE(size, 0);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return out;
}

[[nodiscard]] inline sys::Fd empty_file() {
  return sys::Fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

[[nodiscard]] inline std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class EgressTest : public testing::Test {
 protected:
  EgressTest() { policy.limits.hello_seconds = patience_seconds; }
  ~EgressTest() override {
    connections.reset();
    journal.reset();
    stage.reset();
    EXPECT_EQ(open_descriptors(), before);
  }

  // A rule is what follows net:connect:, @ in it is the origin's port.
  void begin(std::vector<std::string> rules) {
    for (std::string& rule : rules) {
      if (const auto at = rule.find('@'); at != std::string::npos) {
        rule.replace(at, 1, std::to_string(origin.port));
      }
    }
    const egress::EgressLimits limits = policy.limits;
    policy = policy_of(rules);
    policy.limits = limits;
    stage.emplace();
    journal.emplace(stage->loop, policy, audit.get(), diagnostics.get());
    connections.emplace(stage->loop, policy, names, *journal);
  }

  // A program's connection to 127.0.0.1, as the sandbox leads it to the broker.
  [[nodiscard]] sys::Fd captured(std::uint16_t port) {
    Pair pair = tcp_pair();
    connections->captured(stage->adopt(std::move(pair.second)), egress::loopback_ipv4, port);
    return std::move(pair.first);
  }
  [[nodiscard]] sys::Fd captured() { return captured(origin.port); }
  [[nodiscard]] sys::Fd proxied() {
    Pair pair = tcp_pair();
    connections->proxied(stage->adopt(std::move(pair.second)));
    return std::move(pair.first);
  }

  void play(const std::function<void()>& script) {
    stage->play(script);
    connections->end_all();
    EXPECT_EQ(connections->live(), 0U);
  }

  [[nodiscard]] std::string log() const { return text_of(audit); }
  [[nodiscard]] bool tells(std::string_view part) const {
    return log().find(part) != std::string::npos;
  }
  [[nodiscard]] std::string port() const { return std::to_string(origin.port); }

  TcpListener origin = listen_on_loopback();
  sys::Fd audit = empty_file();
  sys::Fd diagnostics = empty_file();
  std::size_t before = open_descriptors();
  egress::Policy policy;
  egress::NameBook names;
  std::optional<Stage> stage;
  std::optional<egress::Journal> journal;
  std::optional<egress::Connections> connections;
};

}  // namespace capgate::support
