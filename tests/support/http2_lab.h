// A client and an origin that speak HTTP/2, and the relay between them, all in one thread: nothing
// waits, so nothing depends on time.
//
//   Http2Lab lab;
//   lab.start();
//   const std::int32_t id = lab.client->request(head_of("GET", "/"));
//   lab.pump();                                     // until nobody has anything to say
//   lab.origin->respond(lab.origin->arrived[0], {{":status", "200"}});
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seal/relay.h"
#include "support/http2_peer.h"
#include "support/scripted_stream.h"

namespace capgate::support {

// /refused/... is refused, /wait/... waits for let_go(); placeholders are swapped.
class ScriptedRequests final : public seal::Requests {
 public:
  explicit ScriptedRequests(std::vector<seal::Key> keys = {}) : keys_(std::move(keys)) {}

  seal::Async<std::expected<seal::Admission, seal::Refused>> admit(
      seal::Request& request) override {
    judged.push_back(request);
    if (request.target.starts_with("/wait")) {
      ++waiting;
      co_await gates_.emplace_back();
      --waiting;
    }
    if (request.target.starts_with("/refused")) {
      co_return std::unexpected(seal::Refused{.status = 403, .text = "no rule allows it"});
    }
    auto swapped = keys_.swap(request);
    if (!swapped) co_return std::unexpected(seal::Refused{.text = swapped.error().text});
    co_return seal::Admission{.secrets = *std::move(swapped)};
  }
  [[nodiscard]] const seal::Keyring& keys() const override { return keys_; }
  seal::Refused refuse(const seal::Request& as_sent, std::string_view reason,
                       std::string_view text) override {
    refusals.emplace_back(as_sent.target, reason);
    return {.status = 403, .text = std::string(text)};
  }
  bool record(const seal::Request& as_sent, const seal::Admission& admission, int status) override {
    used.push_back(admission.secrets);
    records.emplace_back(as_sent.target, status);
    return can_record;
  }
  void tell_scrubbed(std::size_t count) override { scrubbed += count; }
  void count(egress::LaneName lane, std::size_t bytes) override {
    (lane == egress::LaneName::to_origin ? to_origin : to_client) += bytes;
  }
  void let_go() {
    for (seal::Signal& gate : std::exchange(gates_, {})) gate.notify();
  }

  std::vector<seal::Request> judged;
  std::vector<std::pair<std::string, std::string>> refusals;
  std::vector<std::pair<std::string, int>> records;
  std::vector<std::vector<std::string>> used;  // the names in each record
  int waiting = 0;
  bool can_record = true;
  std::size_t scrubbed = 0;
  std::size_t to_origin = 0;
  std::size_t to_client = 0;

 private:
  seal::Keyring keys_;
  std::deque<seal::Signal> gates_;
};

class Http2Lab {
 public:
  seal::BufferBudget buffers;  // outlives the relay
  Http2Lab() { set_peers({}, {}); }
  Http2Lab(const Http2Lab&) = delete;
  Http2Lab& operator=(const Http2Lab&) = delete;
  Http2Lab(Http2Lab&&) = delete;
  Http2Lab& operator=(Http2Lab&&) = delete;
  ~Http2Lab() { finish(); }

  void set_peers(Http2Peer::Settings of_client, Http2Peer::Settings of_origin) {
    client = std::make_unique<Http2Peer>(Http2Peer::Role::client, std::move(of_client));
    origin = std::make_unique<Http2Peer>(Http2Peer::Role::server, std::move(of_origin));
  }
  void set_keys(std::vector<seal::Key> keys) {
    requests = std::make_unique<ScriptedRequests>(std::move(keys));
  }
  void start() { run(); }

  // Once each way; true if anybody said anything.
  bool step() {
    bool has_moved = pass(*client, client_side);
    has_moved |= pass(*origin, origin_side);
    return has_moved;
  }
  void pump() {
    while (step()) {
    }
  }
  // Whatever it does, it must be over then.
  void finish() {
    if (!is_started_ || end) return;
    requests->let_go();
    client_side.cancel();
    origin_side.cancel();
  }

  // A request of which the origin has got the head: its streams here and there.
  struct Ids {
    std::int32_t client = 0;
    std::int32_t origin = 0;
  };
  Ids ask(const Pairs& head, std::optional<Said> said = std::nullopt) {
    const std::size_t before = origin->arrived.size();
    const std::int32_t id = said ? client->request(head, *said) : client->request(head);
    pump();
    return {id, origin->arrived.size() > before ? origin->arrived.back() : 0};
  }
  [[nodiscard]] Heard& at_client(Ids ids) const { return client->messages[ids.client]; }
  [[nodiscard]] Heard& at_origin(Ids ids) const { return origin->messages[ids.origin]; }

  egress::Loop loop;
  ScriptedStream client_side;
  ScriptedStream origin_side;
  std::unique_ptr<ScriptedRequests> requests = std::make_unique<ScriptedRequests>();
  std::unique_ptr<Http2Peer> client;
  std::unique_ptr<Http2Peer> origin;
  std::size_t most_head_bytes = 65536;
  std::optional<seal::RelayEnd> end;

 private:
  egress::Task run() {
    is_started_ = true;
    end = co_await seal::relay_http2({.loop = loop,
                                      .client = client_side,
                                      .origin = origin_side,
                                      .requests = *requests,
                                      .most_head_bytes = most_head_bytes,
                                      .buffers = &buffers});
  }
  static bool pass(Http2Peer& peer, ScriptedStream& stream) {
    const std::string heard = stream.take();
    (void)peer.hear(heard);
    const std::string said = peer.say();
    if (!said.empty()) stream.feed(said);
    return !heard.empty() || !said.empty();
  }

  bool is_started_ = false;
};

}  // namespace capgate::support
