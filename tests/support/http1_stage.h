// One connection of HTTP/1.1 through its relay, over sockets.
//
//   TEST_F(Http1Test, ...) { play([&] { expect_passes(get); expect_answers(ok); }); }
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seal/relay.h"
#include "support/fake_requests.h"
#include "support/loopback.h"
#include "support/plain_stream.h"

namespace capgate::support {

using seal::RelayEnd;
using Strings = std::vector<std::string>;

inline const std::string get = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
inline const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class Http1Test : public testing::Test {
 protected:
  Http1Test() {
    support::Pair client_ends = unix_pair();
    support::Pair origin_ends = unix_pair();
    support::Pair end_ends = unix_pair();
    client = std::move(client_ends.first);
    origin = std::move(origin_ends.first);
    over_ = std::move(end_ends.first);
    tells_over_ = std::move(end_ends.second);
    client_stream.emplace(stage.loop, stage.adopt(std::move(client_ends.second)));
    origin_stream.emplace(stage.loop, stage.adopt(std::move(origin_ends.second)));
  }
  ~Http1Test() override { stage.loop.cancel_all(); }
  Http1Test(const Http1Test&) = delete;
  Http1Test& operator=(const Http1Test&) = delete;
  Http1Test(Http1Test&&) = delete;
  Http1Test& operator=(Http1Test&&) = delete;

  void seal_in(core::SecretPlace::Kind kind, std::string_view value) {
    requests.emplace(core::SecretPlace{.kind = kind}, value);
  }
  void play(const std::function<void()>& script) {
    serve();
    stage.play(script);
  }
  // In the script: until the relay has ended.
  RelayEnd wait_for_end() {
    EXPECT_EQ(receive(over_, 1), "x");
    return end.value_or(RelayEnd::taken_away);
  }
  // One request, as the origin gets it.
  void expect_passes(std::string_view sent, std::string_view got) {
    send_text(client, sent);
    EXPECT_EQ(receive(origin, got.size()), got);
  }
  void expect_answers(std::string_view sent, std::string_view got) {
    send_text(origin, sent);
    EXPECT_EQ(receive(client, got.size()), got);
  }
  void expect_passes(std::string_view same) { expect_passes(same, same); }
  void expect_answers(std::string_view same) { expect_answers(same, same); }
  void expect_still_works() {
    expect_passes(get);
    expect_answers(ok);
  }
  // The rest of what the client hears, which is a refusal; then nothing.
  void expect_refusal(std::string_view status, RelayEnd how = RelayEnd::denied) {
    const std::string answer = receive_all(client);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(status))) << answer;
    EXPECT_TRUE(answer.contains("Connection: close\r\n")) << answer;
    EXPECT_TRUE(answer.contains("Content-Length: ")) << answer;
    EXPECT_FALSE(answer.contains(secret_value));
    client = sys::Fd();
    EXPECT_EQ(wait_for_end(), how);
  }

  support::Stage stage;
  sys::Fd client;
  sys::Fd origin;
  std::optional<support::FakeRequests> requests{std::in_place};
  std::optional<support::PlainStream> client_stream;
  std::optional<support::PlainStream> origin_stream;
  std::optional<RelayEnd> end;
  std::size_t most_head_bytes = 65536;
  std::uint32_t head_seconds = 15;
  bool keeps_origin = false;

 private:
  egress::Task serve() {
    end = co_await seal::relay_http1({.loop = stage.loop,
                                      .client = *client_stream,
                                      .origin = *origin_stream,
                                      .requests = *requests,
                                      .most_head_bytes = most_head_bytes,
                                      .head_seconds = head_seconds,
                                      .keeps_origin = keeps_origin});
    client_stream.reset();
    origin_stream.reset();
    send_text(tells_over_, "x");
  }

  sys::Fd over_;
  sys::Fd tells_over_;
};

}  // namespace capgate::support
