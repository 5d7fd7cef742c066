// One HTTP/2 connection, of either role: nghttp2 with its strict checks on, told of by an
// interface.
//
//   std::unique_ptr<Http2Session> session = Http2Session::make({Role::server, 65536}, events);
//   if (!session->receive(bytes)) ...     // calls events
//   if (!session->gather(out)) ...        // what is to be written now
//
// The window of a stream opens again only when somebody says so (Body::took): whoever reads slowly
// slows down whoever sends. That of the connection opens at once while there is room in the budget,
// so that a stream whose reader has stopped does not stop the others. nghttp2 itself refuses what a
// message must not be: fields of one hop, a length that is not kept, upper case, floods of
// acknowledgements and continuations.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "seal/buffer_budget.h"
#include "seal/message.h"

namespace capgate::seal {

inline constexpr std::int32_t stream_window = 256 << 10;
inline constexpr std::uint32_t most_streams = 100;
// Of a connection, if the budget has room for it; else the 64 KiB that HTTP/2 begins with.
inline constexpr std::int32_t connection_window = 256 << 10;

class Http2Session;

// The body of one message and its trailers, between two sessions.
class Body {
 public:
  // Whose window opens when bytes have been taken; none for an answer of our own.
  Http2Session* from = nullptr;
  std::int32_t from_stream = 0;
  Http2Session* to = nullptr;
  std::int32_t to_stream = 0;
  std::vector<Field> trailers;

  // `count` bytes came from the peer, whatever becomes of them.
  void came(std::size_t count);
  void add(std::string_view bytes);
  void end();
  // Nobody wants it any more.
  void drop();

  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] std::string take_all();
  [[nodiscard]] std::string_view left() const { return std::string_view(ready_).substr(taken_); }

 private:
  friend class Http2Session;
  void took(std::size_t count);
  void give_back(std::size_t count);
  void resume();

  std::string ready_;
  std::size_t taken_ = 0;
  std::size_t owed_ = 0;      // came, but its stream's window has not been opened again
  BufferBudget::Room early_;  // of that: the connection's window has
  bool has_ended_ = false;
  bool is_deferred_ = false;
};

// Called within receive() and gather(). What it may do with a session: submit, not receive or
// gather.
class Http2Events {
 public:
  Http2Events() = default;
  Http2Events(const Http2Events&) = delete;
  Http2Events& operator=(const Http2Events&) = delete;
  Http2Events(Http2Events&&) = delete;
  Http2Events& operator=(Http2Events&&) = delete;
  virtual ~Http2Events() = default;

  virtual void on_head_begin(std::int32_t stream) = 0;
  // False: more than anybody can mean; the connection ends.
  [[nodiscard]] virtual bool on_field(std::int32_t stream, Field field) = 0;
  // A request, a response of any status, or trailers.
  virtual void on_head(std::int32_t stream, bool is_end) = 0;
  virtual void on_data(std::int32_t stream, std::string_view bytes) = 0;
  virtual void on_end(std::int32_t stream) = 0;  // by DATA; of a head: `is_end`
  // The stream is being reset because of what it said.
  virtual void on_malformed(std::int32_t stream) = 0;
  virtual void on_closed(std::int32_t stream, std::uint32_t code) = 0;
  virtual void on_reset() {}  // by the peer; on_closed follows
  virtual void on_head_sent(std::int32_t /*stream*/) {}
  virtual void on_end_sent(std::int32_t /*stream*/) {}
  virtual void on_head_not_sent(std::int32_t /*stream*/) {}
  virtual void on_settings() {}
  virtual void on_goaway() {}
  virtual void on_goaway_sent(std::uint32_t /*code*/) {}
};

class Http2Session {
 public:
  enum class Role : unsigned char { server, client };
  struct Kind {
    Role role = Role::server;
    std::size_t most_head_bytes = 65536;
    BufferBudget* buffers = nullptr;  // null: without a limit
  };
  // Its SETTINGS are ready to be sent. Null: no memory.
  [[nodiscard]] static std::unique_ptr<Http2Session> make(Kind kind, Http2Events& events);
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;
  Http2Session(Http2Session&&) = delete;
  Http2Session& operator=(Http2Session&&) = delete;
  ~Http2Session();

  // False: the connection cannot go on, not even to say so.
  [[nodiscard]] bool receive(std::string_view bytes);
  // Appends what can be sent now, about 64 KB of it.
  [[nodiscard]] bool gather(std::string& out);
  [[nodiscard]] bool wants_to_write() const { return nghttp2_session_want_write(raw_) != 0; }
  [[nodiscard]] bool is_over() const {
    return nghttp2_session_want_read(raw_) == 0 && !wants_to_write();
  }

  // `body`: null if there is none. It and the secret fields must live until on_head_sent,
  // on_head_not_sent or on_closed. The stream, or 0 if there are no more.
  [[nodiscard]] std::int32_t request(const Request& request, bool has_authority, Body* body);
  void inform(std::int32_t stream, const Response& response);  // 1xx
  void respond(std::int32_t stream, const Response& response, Body* body);
  void reset(std::int32_t stream, std::uint32_t code);
  // Bytes that came and that nobody wants: the window opens again.
  void discard(std::int32_t stream, std::size_t count);
  // No new streams; those that are there go on.
  void say_goodbye();
  // After this frame, nothing.
  void terminate(std::uint32_t code);
  void limit_streams(std::uint32_t most);
  [[nodiscard]] std::uint32_t peer_stream_limit() const;

 private:
  friend class Body;
  explicit Http2Session(Http2Events& events) : events_(events) {}
  [[nodiscard]] bool begin(Kind kind);
  [[nodiscard]] bool submit_settings(Kind kind);
  static void set_callbacks(nghttp2_session_callbacks* callbacks);
  struct Callbacks;

  Http2Events& events_;
  BufferBudget* buffers_ = nullptr;
  BufferBudget::Room window_;
  nghttp2_session* raw_ = nullptr;
  std::string* out_ = nullptr;  // within gather()
};

}  // namespace capgate::seal
