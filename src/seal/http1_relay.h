// One connection of HTTP/1.1, inside: two coroutines, one for each direction. For relay_http1
// alone.
//
// pass_requests() reads the client, pass_answers() reads the origin, always: who closes is noticed
// at once. A request is sent when the answer to the one before has ended. Each of them may stop the
// other (stop()); run() goes on when both have ended, and only then is anything said to the client
// that is not an answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "seal/http1_body.h"
#include "seal/http1_read.h"
#include "seal/relay.h"
#include "seal/signal.h"

namespace capgate::seal {

// What has come from one side and was not used yet.
class Inbox {
 public:
  explicit Inbox(Stream& stream);
  [[nodiscard]] std::string_view bytes() const { return {buffer_.data() + begin_, end_ - begin_}; }
  [[nodiscard]] bool is_empty() const { return begin_ == end_; }
  void drop(std::size_t size);
  // One read. `is_empty()` or not: there is room for more.
  [[nodiscard]] Async<ssize_t> fill(Time deadline);

 private:
  Stream& stream_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class Http1Relay {
 public:
  explicit Http1Relay(const Sides& sides);
  [[nodiscard]] Async<RelayEnd> run();

 private:
  // Of a block of fields that is waited for.
  struct Block {
    enum class Came : unsigned char { whole, nothing, cut, too_long, over };
    Came came = Came::over;
    std::size_t size = 0;
  };
  // The request whose answer is awaited.
  struct Exchange {
    Request as_sent;
    Admission admission;
    bool is_open = false;       // until its answer has ended
    bool is_recorded = false;   //
    bool is_body_sent = false;  //
    bool is_answering = false;  // some of its answer has left, and not all
    bool wants_websocket = false;
    bool is_last = false;  // for the client, and the origin was not told
  };
  // A request on its way out.
  struct Outgoing {
    RequestHead head;
    const std::vector<Field>* as_read = nullptr;
    bool is_chunked = false;  // as it is sent
  };

  // http1.cc
  static egress::Task pass_answers_beside(Http1Relay& relay);
  [[nodiscard]] Async<Block> read_block(Inbox& inbox);
  [[nodiscard]] Async<ssize_t> fill(Inbox& inbox, Time deadline);
  [[nodiscard]] Async<ssize_t> send(egress::LaneName lane, std::string_view bytes);
  void stop(RelayEnd end);
  void stop_refusing(const Refused& refused, int status);
  [[nodiscard]] Async<bool> finish(egress::LaneName lane);
  [[nodiscard]] Async<bool> drain_client();
  [[nodiscard]] Async<RelayEnd> part();
  [[nodiscard]] bool is_origin_kept() const;

  // http1_requests.cc
  [[nodiscard]] Async<bool> pass_requests();
  [[nodiscard]] Async<bool> pass_request();
  [[nodiscard]] Async<bool> pass_admitted(RequestHead head);
  [[nodiscard]] Async<bool> refuse_request(const RequestHead& head, const Refused& refused);
  [[nodiscard]] Async<bool> send_with_body(Outgoing outgoing);
  [[nodiscard]] Async<bool> send_whole(Outgoing outgoing, BodySwap body);
  [[nodiscard]] Async<bool> send_streaming(Outgoing outgoing, BodySwap body);
  [[nodiscard]] bool take_body(std::string& out, Unframer& unframer, BodySwap& body);
  [[nodiscard]] Async<bool> send_last_chunk(std::string& out);
  [[nodiscard]] Async<bool> send_to_origin(std::string& out);
  [[nodiscard]] Async<bool> pass_raw_to_origin();
  void refuse_malformed(Flaw flaw);
  void refuse_misuse(const Misuse& misuse);

  // http1_answers.cc
  [[nodiscard]] Async<bool> pass_answers();
  [[nodiscard]] Async<bool> pass_answer();
  [[nodiscard]] Async<bool> pass_answer_head(ResponseHead& head);
  [[nodiscard]] Async<bool> pass_final(ResponseHead head);
  [[nodiscard]] Async<bool> pass_answer_body(std::string out, Framing framing);
  [[nodiscard]] Async<bool> send_answer_trailers(std::string& out);
  [[nodiscard]] Async<bool> pass_raw_to_client();
  void scrub_into(std::string& out, std::string_view data, Scrub& scrub);
  void end_of_answers();
  void end_with(ResponseHead& head);
  void refuse_answer(std::string_view reason, std::string_view text);

  Sides sides_;
  Inbox from_client_;
  Inbox from_origin_;
  Exchange exchange_;
  Signal answered_;
  Signal answers_over_;
  bool is_over_ = false;
  RelayEnd end_ = RelayEnd::closed;
  std::string farewell_;            // said to the client when both coroutines have ended
  bool is_refusing_ = false;        // pass_requests() writes to the client
  bool is_origin_gone_ = false;     // meanwhile
  bool is_client_sending_ = false;  // it may be, still: a reset would cost it what it was told
  bool is_upgraded_ = false;
  bool is_origin_free_ = false;  // its last answer is whole, and it awaits a request
  bool is_origin_tied_ = false;  // to a client, by authentication that is the connection's
  bool is_client_finished_ = false;
  bool is_origin_finished_ = false;
};

// A refusal as a response. `ends`: the connection does not go on.
enum class After : unsigned char { goes_on, ends };
[[nodiscard]] std::string write_refusal(int status, std::string_view text, std::string_view method,
                                        After after);

}  // namespace capgate::seal
