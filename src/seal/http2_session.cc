#include "seal/http2_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"

namespace capgate::seal {
namespace {

// A write of about four TLS records.
constexpr std::size_t gathered_enough = 48 << 10;
constexpr std::size_t largest_frame = 16384;

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// nghttp2's struct has no const; it does not write through it.
std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<std::uint8_t*>(
      const_cast<char*>(text.data()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

// A secret is neither indexed, on any hop, nor copied: whoever owns it wipes it.
constexpr std::uint8_t secret_flags =
    NGHTTP2_NV_FLAG_NO_INDEX | NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

nghttp2_nv pair_of(std::string_view name, std::string_view value, std::uint8_t flags) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), flags};
}

void add_fields(std::vector<nghttp2_nv>& out, const std::vector<Field>& fields,
                std::uint8_t flags_if_secret) {
  out.reserve(out.size() + fields.size());
  for (const Field& field : fields) {
    out.push_back(
        pair_of(field.name, field.value, field.is_secret ? flags_if_secret : std::uint8_t{0}));
  }
}

}  // namespace

void Body::came(std::size_t count) {
  owed_ += count;
  if (from == nullptr) return;
  if (early_.size() == 0) early_ = BufferBudget::Room(from->buffers_);
  if (early_.grow(count, BufferBudget::Use::bodies)) {
    (void)nghttp2_session_consume_connection(from->raw_, count);
  }
}

void Body::give_back(std::size_t count) {
  if (count == 0) return;
  owed_ -= count;
  if (from == nullptr) return;
  // A stream that is closed takes nothing, but the connection does.
  (void)nghttp2_session_consume_stream(from->raw_, from_stream, count);
  const std::size_t early = std::min(count, early_.size());
  early_.shrink(early);
  (void)nghttp2_session_consume_connection(from->raw_, count - early);
}

void Body::resume() {
  if (!std::exchange(is_deferred_, false)) return;
  (void)nghttp2_session_resume_data(to->raw_, to_stream);
}

void Body::add(std::string_view bytes) {
  if (bytes.empty()) return;
  if (taken_ > ready_.size() / 2) {
    ready_.erase(0, taken_);
    taken_ = 0;
  }
  ready_.append(bytes);
  resume();
}

void Body::end() {
  has_ended_ = true;
  resume();
}

void Body::drop() {
  ready_.clear();
  ready_.shrink_to_fit();
  taken_ = 0;
  give_back(owed_);
}

std::string Body::take_all() {
  taken_ = 0;
  return std::exchange(ready_, {});
}

// What was changed may have another length than what came, so the last byte settles the account.
void Body::took(std::size_t count) {
  taken_ += count;
  if (taken_ == ready_.size()) {
    ready_.clear();
    taken_ = 0;
    give_back(owed_);
    return;
  }
  give_back(std::min(count, owed_));
}

// NOLINTBEGIN(readability-function-size): nghttp2 says how many parameters there are
struct Http2Session::Callbacks {
  static Http2Session& of(void* user) { return *static_cast<Http2Session*>(user); }

  static int begin_headers(nghttp2_session* /*raw*/, const nghttp2_frame* frame, void* user) {
    of(user).events_.on_head_begin(frame->hd.stream_id);
    return 0;
  }

  static int header(nghttp2_session* /*raw*/, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                    nghttp2_rcbuf* value, std::uint8_t flags, void* user) {
    const nghttp2_vec name_bytes = nghttp2_rcbuf_get_buf(name);
    const nghttp2_vec value_bytes = nghttp2_rcbuf_get_buf(value);
    const bool is_kept = of(user).events_.on_field(
        frame->hd.stream_id, {.name = std::string(text_of(name_bytes.base, name_bytes.len)),
                              .value = std::string(text_of(value_bytes.base, value_bytes.len)),
                              // Whoever says so once says it for every hop (RFC 7541, 6.2.3).
                              .is_secret = (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0});
    return is_kept ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  // nghttp2 would leave the field out and go on: the origin must see what the client said.
  static int invalid_header(nghttp2_session* /*raw*/, const nghttp2_frame* frame,
                            nghttp2_rcbuf* /*name*/, nghttp2_rcbuf* /*value*/,
                            std::uint8_t /*flags*/, void* user) {
    of(user).events_.on_malformed(frame->hd.stream_id);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int frame_received(nghttp2_session* /*raw*/, const nghttp2_frame* frame, void* user) {
    Http2Events& events = of(user).events_;
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS: events.on_head(frame->hd.stream_id, is_end); break;
      case NGHTTP2_DATA:
        if (is_end) events.on_end(frame->hd.stream_id);
        break;
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) events.on_settings();
        break;
      case NGHTTP2_RST_STREAM: events.on_reset(); break;
      case NGHTTP2_GOAWAY: events.on_goaway(); break;
      default: break;
    }
    return 0;
  }

  static int invalid_frame(nghttp2_session* /*raw*/, const nghttp2_frame* frame, int /*error*/,
                           void* user) {
    if (frame->hd.stream_id != 0) of(user).events_.on_malformed(frame->hd.stream_id);
    return 0;
  }

  static int data(nghttp2_session* /*raw*/, std::uint8_t /*flags*/, std::int32_t stream,
                  const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).events_.on_data(stream, text_of(bytes, size));
    return 0;
  }

  static int frame_sent(nghttp2_session* /*raw*/, const nghttp2_frame* frame, void* user) {
    Http2Events& events = of(user).events_;
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool is_head = frame->hd.type == NGHTTP2_HEADERS;
    if (is_head) events.on_head_sent(frame->hd.stream_id);
    if (is_end && (is_head || frame->hd.type == NGHTTP2_DATA)) {
      events.on_end_sent(frame->hd.stream_id);
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) events.on_goaway_sent(frame->goaway.error_code);
    return 0;
  }

  static int frame_not_sent(nghttp2_session* /*raw*/, const nghttp2_frame* frame, int /*error*/,
                            void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS) of(user).events_.on_head_not_sent(frame->hd.stream_id);
    return 0;
  }

  static int closed(nghttp2_session* /*raw*/, std::int32_t stream, std::uint32_t code, void* user) {
    of(user).events_.on_closed(stream, code);
    return 0;
  }

  static ssize_t read_body(nghttp2_session* raw, std::int32_t stream, std::uint8_t* /*buffer*/,
                           std::size_t most, std::uint32_t* flags, nghttp2_data_source* source,
                           void* /*user*/) {
    auto& body = *static_cast<Body*>(source->ptr);
    const std::size_t size = std::min(body.left().size(), most);
    const bool is_last = body.has_ended_ && size == body.left().size();
    if (size == 0 && !is_last) {
      body.is_deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    if (size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (is_last) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!body.trailers.empty()) {
        std::vector<nghttp2_nv> pairs;
        add_fields(pairs, body.trailers, NGHTTP2_NV_FLAG_NO_INDEX);
        if (nghttp2_submit_trailer(raw, stream, pairs.data(), pairs.size()) != 0) {
          return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      }
    }
    return static_cast<ssize_t>(size);
  }

  static int send_data(nghttp2_session* /*raw*/, nghttp2_frame* /*frame*/,
                       const std::uint8_t* frame_head, std::size_t size,
                       nghttp2_data_source* source, void* user) {
    constexpr std::size_t frame_head_size = 9;
    std::string& out = *of(user).out_;
    if (out.size() >= gathered_enough) return NGHTTP2_ERR_WOULDBLOCK;
    auto& body = *static_cast<Body*>(source->ptr);
    // It was dropped since its frame was planned.
    if (body.left().size() < size) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    out.append(text_of(frame_head, frame_head_size));
    out.append(body.left().substr(0, size));
    body.took(size);
    return 0;
  }
};
// NOLINTEND(readability-function-size)

void Http2Session::set_callbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback2(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, Callbacks::invalid_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame_received);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, Callbacks::invalid_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Callbacks::frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::closed);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::send_data);
}

std::unique_ptr<Http2Session> Http2Session::make(Kind kind, Http2Events& events) {
  std::unique_ptr<Http2Session> session(new Http2Session(events));
  session->buffers_ = kind.buffers;
  session->window_ = BufferBudget::Room(kind.buffers);
  if (!session->begin(kind)) return nullptr;
  return session;
}

Http2Session::~Http2Session() { nghttp2_session_del(raw_); }

bool Http2Session::begin(Kind kind) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) return false;
  const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)>
      owned_callbacks(callbacks, nghttp2_session_callbacks_del);
  nghttp2_option* option = nullptr;
  if (nghttp2_option_new(&option) != 0) return false;
  const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> owned_option(
      option, nghttp2_option_del);
  set_callbacks(callbacks);
  nghttp2_option_set_no_auto_window_update(option, 1);
  // Values may be longer than their placeholders.
  nghttp2_option_set_max_send_header_block_length(option, 4 * kind.most_head_bytes);
  nghttp2_option_set_max_continuations(
      option, std::max<std::size_t>(8, kind.most_head_bytes / largest_frame + 1));
  nghttp2_option_set_peer_max_concurrent_streams(option, most_streams);
  // Ours is stricter, and says ENHANCE_YOUR_CALM.
  nghttp2_option_set_stream_reset_rate_limit(option, 10'000, 1'000);
  const int made = kind.role == Role::server
                       ? nghttp2_session_server_new2(&raw_, callbacks, this, option)
                       : nghttp2_session_client_new2(&raw_, callbacks, this, option);
  return made == 0 && submit_settings(kind);
}

bool Http2Session::submit_settings(Kind kind) {
  const auto most_head = static_cast<std::uint32_t>(kind.most_head_bytes);
  const std::array<nghttp2_settings_entry, 3> settings{{
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, most_head},
      kind.role == Role::server
          ? nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most_streams}
          : nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  }};
  if (nghttp2_submit_settings(raw_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0) {
    return false;
  }
  if (!window_.grow(connection_window - NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE,
                    BufferBudget::Use::bodies)) {
    return true;
  }
  return nghttp2_session_set_local_window_size(raw_, NGHTTP2_FLAG_NONE, 0, connection_window) == 0;
}

bool Http2Session::receive(std::string_view bytes) {
  return nghttp2_session_mem_recv(raw_, bytes_of(bytes), bytes.size()) ==
         static_cast<ssize_t>(bytes.size());
}

bool Http2Session::gather(std::string& out) {
  out_ = &out;
  while (out.size() < gathered_enough) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(raw_, &bytes);
    if (size < 0) return false;
    if (size == 0) break;
    out.append(text_of(bytes, static_cast<std::size_t>(size)));
  }
  out_ = nullptr;
  return true;
}

std::int32_t Http2Session::request(const Request& request, bool has_authority, Body* body) {
  std::vector<nghttp2_nv> pairs;
  pairs.reserve(request.fields.size() + 4);
  pairs.push_back(pair_of(":method", request.method, 0));
  pairs.push_back(pair_of(":scheme", "https", 0));
  if (has_authority) pairs.push_back(pair_of(":authority", request.authority, 0));
  pairs.push_back(
      pair_of(":path", request.target, request.target_is_secret ? secret_flags : std::uint8_t{0}));
  add_fields(pairs, request.fields, secret_flags);
  nghttp2_data_provider provider{.source = {.ptr = body}, .read_callback = Callbacks::read_body};
  const std::int32_t stream = nghttp2_submit_request(
      raw_, nullptr, pairs.data(), pairs.size(), body != nullptr ? &provider : nullptr, nullptr);
  return std::max(stream, 0);
}

void Http2Session::inform(std::int32_t stream, const Response& response) {
  const std::string status = format("{}", response.status);
  std::vector<nghttp2_nv> pairs{pair_of(":status", status, 0)};
  add_fields(pairs, response.fields, NGHTTP2_NV_FLAG_NO_INDEX);
  (void)nghttp2_submit_headers(raw_, NGHTTP2_FLAG_NONE, stream, nullptr, pairs.data(), pairs.size(),
                               nullptr);
}

void Http2Session::respond(std::int32_t stream, const Response& response, Body* body) {
  const std::string status = format("{}", response.status);
  std::vector<nghttp2_nv> pairs{pair_of(":status", status, 0)};
  add_fields(pairs, response.fields, NGHTTP2_NV_FLAG_NO_INDEX);
  nghttp2_data_provider provider{.source = {.ptr = body}, .read_callback = Callbacks::read_body};
  const int error = nghttp2_submit_response(raw_, stream, pairs.data(), pairs.size(),
                                            body != nullptr ? &provider : nullptr);
  if (error != 0) reset(stream, NGHTTP2_INTERNAL_ERROR);
}

void Http2Session::reset(std::int32_t stream, std::uint32_t code) {
  (void)nghttp2_submit_rst_stream(raw_, NGHTTP2_FLAG_NONE, stream, code);
}

void Http2Session::discard(std::int32_t stream, std::size_t count) {
  (void)nghttp2_session_consume(raw_, stream, count);
}

void Http2Session::say_goodbye() {
  (void)nghttp2_submit_goaway(raw_, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(raw_), NGHTTP2_NO_ERROR,
                              nullptr, 0);
}

void Http2Session::terminate(std::uint32_t code) {
  (void)nghttp2_session_terminate_session(raw_, code);
}

void Http2Session::limit_streams(std::uint32_t most) {
  const nghttp2_settings_entry setting{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most};
  (void)nghttp2_submit_settings(raw_, NGHTTP2_FLAG_NONE, &setting, 1);
}

std::uint32_t Http2Session::peer_stream_limit() const {
  return nghttp2_session_get_remote_settings(raw_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

}  // namespace capgate::seal
