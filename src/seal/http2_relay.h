// The relay of one HTTP/2 connection: a server session toward the client and a client session
// toward the origin, one origin stream for each stream of the client. http2.cc moves the bytes,
// http2_requests.cc and http2_responses.cc say what becomes of messages.
//
// Events of a session only note things and submit frames; coroutines run in between (settle()), so
// that no session is entered twice.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "seal/http2_session.h"
#include "seal/relay.h"
#include "seal/signal.h"

namespace capgate::seal {

// A head that is too large gets an answer; one that is so many times too large ends the connection.
inline constexpr std::size_t much_too_large = 4;

// With what HTTP/2 itself adds for each field (RFC 9113, 6.5.2).
[[nodiscard]] inline std::size_t counted_size(const Field& field) {
  return field.name.size() + field.value.size() + 32;
}

// One request and its answer.
struct Exchange {
  std::int32_t client_stream = 0;
  std::int32_t origin_stream = 0;  // 0: none yet

  Request request;
  Request as_sent;  // its method, target, authority and what describes the body
  std::string scheme;
  bool has_authority = false;
  bool has_protocol = false;   // extended CONNECT
  bool is_head_whole = false;  // what follows are trailers
  bool is_request_whole = false;
  std::size_t request_bytes = 0;  // of the head being read

  Response response;
  bool is_status_read = false;  // of the head being read; without one, they are trailers
  std::size_t response_bytes = 0;
  int informed = 0;  // 1xx responses so far

  BufferBudget::Room heads;
  Body up;
  Body down;
  std::optional<BodySwap> swap;
  std::optional<Scrub> scrub;

  Admission admission;
  bool is_judging = false;
  bool is_admitted = false;
  bool is_recorded = false;
  bool is_malformed = false;   // the response
  bool is_answered = false;    // by us
  bool is_responding = false;  // the origin's final head has been passed on
  bool is_end_sent = false;    // of the answer, to the client
  bool is_client_closed = false;
  bool is_origin_closed = false;

  // The client has got, or is getting, all that it will get.
  [[nodiscard]] bool is_settled() const { return is_answered || is_client_closed; }
  // The rest of the request has nowhere to go.
  [[nodiscard]] bool is_unwanted() const { return is_answered || is_origin_closed; }
  [[nodiscard]] bool is_over() const {
    return is_client_closed && !is_judging && (origin_stream == 0 || is_origin_closed);
  }
};

class Http2Relay {
 public:
  explicit Http2Relay(Sides sides);
  [[nodiscard]] Async<RelayEnd> run();

 private:
  struct Side {
    Side(Stream& its_stream, egress::LaneName its_lane) : stream(its_stream), lane(its_lane) {}
    Stream& stream;
    egress::LaneName lane;  // of what is read from it
    std::unique_ptr<Http2Session> session;
    Signal wake;            // its writer
    Time head_deadline;     // for its SETTINGS, or for the head being read
    bool is_heard = false;  // its SETTINGS have come
    bool is_reading = false;
    bool is_deaf = false;     // nothing more can be written to it
    bool is_gone = false;     // nothing more is read from it
    bool is_flushed = false;  // its session is over, and all of it has been written
    [[nodiscard]] bool is_done() const { return is_gone || is_flushed; }
  };

  class ClientEvents final : public Http2Events {
   public:
    explicit ClientEvents(Http2Relay& relay) : relay_(relay) {}
    void on_head_begin(std::int32_t stream) override;
    bool on_field(std::int32_t stream, Field field) override;
    void on_head(std::int32_t stream, bool is_end) override;
    void on_data(std::int32_t stream, std::string_view bytes) override;
    void on_end(std::int32_t stream) override;
    void on_malformed(std::int32_t stream) override;
    void on_closed(std::int32_t stream, std::uint32_t code) override;
    void on_reset() override;
    void on_end_sent(std::int32_t stream) override;
    void on_settings() override;
    void on_goaway_sent(std::uint32_t code) override;

   private:
    Http2Relay& relay_;
  };

  class OriginEvents final : public Http2Events {
   public:
    explicit OriginEvents(Http2Relay& relay) : relay_(relay) {}
    void on_head_begin(std::int32_t stream) override;
    bool on_field(std::int32_t stream, Field field) override;
    void on_head(std::int32_t stream, bool is_end) override;
    void on_data(std::int32_t stream, std::string_view bytes) override;
    void on_end(std::int32_t stream) override;
    void on_malformed(std::int32_t stream) override;
    void on_closed(std::int32_t stream, std::uint32_t code) override;
    void on_head_sent(std::int32_t stream) override;
    void on_head_not_sent(std::int32_t stream) override;
    void on_settings() override;
    void on_goaway() override;
    void on_goaway_sent(std::uint32_t code) override;

   private:
    Http2Relay& relay_;
  };

  // http2.cc
  egress::Task read_from(Side& side);
  egress::Task write_to(Side& side);
  egress::Task judge(Exchange& exchange);
  void leave();
  void settle();
  void settle_once();
  void lose(Side& side);
  void part_with_origin();
  void stop(RelayEnd end);
  void expect_head(Side& side);
  void note_progress(Side& side);
  [[nodiscard]] Async<bool> finish(Stream& stream);

  // http2_requests.cc
  [[nodiscard]] Exchange* of_client(std::int32_t stream);
  [[nodiscard]] static Request describe(const Request& request);
  [[nodiscard]] std::optional<Refused> check_head(Exchange& exchange);
  void forward(Exchange& exchange);
  [[nodiscard]] bool pass_request_bytes(Exchange& exchange, std::string_view bytes);
  [[nodiscard]] bool end_request(Exchange& exchange);
  [[nodiscard]] bool pass_held_request(Exchange& exchange);
  void deny(Exchange& exchange, const Misuse& misuse);
  void answer(Exchange& exchange, const Refused& refused);
  void count_reset();

  // http2_responses.cc
  [[nodiscard]] Exchange* of_origin(std::int32_t stream);
  void pass_response(Exchange& exchange, bool is_end);
  void end_response(Exchange& exchange);
  void refuse_response(Exchange& exchange, std::string_view reason, std::string_view text);
  void cut_origin(Exchange& exchange, std::uint32_t code);
  void note_origin_closed(Exchange& exchange, std::uint32_t code);
  void record(Exchange& exchange, int status);
  void tell_scrubbed(std::size_t count);

  Sides sides_;
  ClientEvents client_events_{*this};
  OriginEvents origin_events_{*this};
  Side client_;
  Side origin_;
  std::unordered_map<std::int32_t, std::unique_ptr<Exchange>> exchanges_;  // by client stream
  std::unordered_map<std::int32_t, Exchange*> by_origin_;
  std::vector<std::int32_t> arrived_;  // heads that are to be judged
  std::vector<std::int32_t> over_;     // exchanges that may be freed
  std::size_t running_ = 0;            // coroutines
  std::size_t judging_ = 0;
  Signal all_left_;
  RelayEnd end_ = RelayEnd::closed;
  bool is_stopping_ = false;
  bool is_cancelled_ = false;
  bool is_settling_ = false;
  bool is_unsettled_ = false;
  bool must_stop_ = false;  // something cannot be recorded
  bool has_said_goodbye_ = false;
  std::uint32_t stream_limit_ = most_streams;  // that the client knows of
  int resets_seen_ = 0;
  Time resets_counted_;
};

}  // namespace capgate::seal
