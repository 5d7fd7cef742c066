// A client or a server that speaks HTTP/2, for tests of the relay: nghttp2 with its usual settings.
//
//   Http2Peer client(Http2Peer::Role::client);
//   const std::int32_t id = client.request(get("/"));
//   stream.feed(client.say());          // what it wants to say
//   client.hear(stream.take());
//   client.messages[id].body
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capgate::support {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// What a peer hears on one stream.
struct Heard {
  Pairs head;  // with pseudo-fields, of the last head that is no 1xx
  Pairs trailers;
  std::vector<Pairs> informed;  // 1xx
  std::string body;
  std::vector<std::string> never_indexed;  // names of such fields
  bool is_head_whole = false;
  bool has_ended = false;
  std::optional<std::uint32_t> closed;  // with this code

  [[nodiscard]] std::string field(std::string_view name) const {
    for (const auto& [key, value] : head) {
      if (key == name) return value;
    }
    return "";
  }
  [[nodiscard]] std::string status() const { return field(":status"); }
};

// What a peer says on one stream after the head.
struct Said {
  std::string body;
  Pairs trailers;
  bool is_whole = true;  // false: more may be added
};

[[nodiscard]] inline Pairs head_of(std::string_view method, std::string_view path,
                                   Pairs fields = {}) {
  Pairs out{{":method", std::string(method)},
            {":scheme", "https"},
            {":authority", "api.test"},
            {":path", std::string(path)}};
  out.insert(out.end(), fields.begin(), fields.end());
  return out;
}

class Http2Peer {
 public:
  enum class Role : unsigned char { client, server };
  struct Settings {
    bool reads_bodies = true;  // false: its windows stay closed
    bool is_strict = true;     // false: it says and hears what is no HTTP
    std::vector<nghttp2_settings_entry> entries;
  };

  explicit Http2Peer(Role role) : Http2Peer(role, {}) {}
  Http2Peer(Role role, Settings settings) {
    nghttp2_session_callbacks* callbacks = nullptr;
    (void)nghttp2_session_callbacks_new(&callbacks);
    set_callbacks(callbacks);
    nghttp2_option* option = nullptr;
    (void)nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, settings.reads_bodies ? 0 : 1);
    nghttp2_option_set_no_http_messaging(option, settings.is_strict ? 0 : 1);
    nghttp2_option_set_max_send_header_block_length(option, 1 << 24);
    nghttp2_option_set_max_continuations(option, 1000);
    if (role == Role::server) {
      (void)nghttp2_session_server_new2(&raw, callbacks, this, option);
    } else {
      (void)nghttp2_session_client_new2(&raw, callbacks, this, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    (void)nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.entries.data(),
                                  settings.entries.size());
  }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;
  Http2Peer(Http2Peer&&) = delete;
  Http2Peer& operator=(Http2Peer&&) = delete;
  ~Http2Peer() { nghttp2_session_del(raw); }

  [[nodiscard]] std::string say() {
    std::string out;
    const std::uint8_t* bytes = nullptr;
    for (;;) {
      const ssize_t size = nghttp2_session_mem_send(raw, &bytes);
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
  }
  // False: it cannot go on.
  bool hear(std::string_view bytes) {
    if (bytes.empty()) return true;
    const ssize_t size = nghttp2_session_mem_recv(
        raw, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return size == static_cast<ssize_t>(bytes.size());
  }

  std::int32_t request(const Pairs& head) { return submit(head, nullptr); }
  std::int32_t request(const Pairs& head, Said said) {
    Said* kept = keep(std::move(said));
    const std::int32_t stream = submit(head, kept);
    said_[stream] = kept;
    return stream;
  }
  void respond(std::int32_t stream, const Pairs& head) {
    std::vector<nghttp2_nv> pairs = pairs_of(head);
    (void)nghttp2_submit_response(raw, stream, pairs.data(), pairs.size(), nullptr);
  }
  void respond(std::int32_t stream, const Pairs& head, Said said) {
    Said* kept = keep(std::move(said));
    said_[stream] = kept;
    std::vector<nghttp2_nv> pairs = pairs_of(head);
    nghttp2_data_provider provider{.source = {.ptr = kept}, .read_callback = read_body};
    (void)nghttp2_submit_response(raw, stream, pairs.data(), pairs.size(), &provider);
  }
  void inform(std::int32_t stream, const Pairs& head) {
    std::vector<nghttp2_nv> pairs = pairs_of(head);
    (void)nghttp2_submit_headers(raw, NGHTTP2_FLAG_NONE, stream, nullptr, pairs.data(),
                                 pairs.size(), nullptr);
  }
  void add(std::int32_t stream, std::string_view bytes) {
    said_[stream]->body += bytes;
    (void)nghttp2_session_resume_data(raw, stream);
  }
  void end(std::int32_t stream, Pairs trailers = {}) {
    said_[stream]->trailers = std::move(trailers);
    said_[stream]->is_whole = true;
    (void)nghttp2_session_resume_data(raw, stream);
  }
  // What it has not been allowed to say so far.
  [[nodiscard]] std::size_t unsaid(std::int32_t stream) const {
    return said_.at(stream)->body.size();
  }
  void reset(std::int32_t stream, std::uint32_t code) {
    (void)nghttp2_submit_rst_stream(raw, NGHTTP2_FLAG_NONE, stream, code);
  }
  // For one that does not read by itself.
  void read(std::int32_t stream, std::size_t count) {
    (void)nghttp2_session_consume(raw, stream, count);
  }

  nghttp2_session* raw = nullptr;
  std::map<std::int32_t, Heard> messages;
  std::vector<std::int32_t> arrived;  // streams with a whole request, in order
  std::optional<std::uint32_t> goaway;
  int pongs = 0;
  int settings_heard = 0;

 private:
  static Http2Peer& of(void* user) { return *static_cast<Http2Peer*>(user); }
  static std::uint8_t* bytes_of(const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }
  // What is named x-hidden is never to be indexed.
  static std::vector<nghttp2_nv> pairs_of(const Pairs& head) {
    std::vector<nghttp2_nv> out;
    for (const auto& [name, value] : head) {
      const std::uint8_t flags =
          name == "x-hidden" ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
      out.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), flags});
    }
    return out;
  }
  Said* keep(Said said) { return &kept_[next_kept_++].emplace_back(std::move(said)); }
  std::int32_t submit(const Pairs& head, Said* said) {
    std::vector<nghttp2_nv> pairs = pairs_of(head);
    nghttp2_data_provider provider{.source = {.ptr = said}, .read_callback = read_body};
    return nghttp2_submit_request(raw, nullptr, pairs.data(), pairs.size(),
                                  said != nullptr ? &provider : nullptr, nullptr);
  }

  static ssize_t read_body(nghttp2_session* raw, std::int32_t stream, std::uint8_t* buffer,
                           std::size_t most, std::uint32_t* flags, nghttp2_data_source* source,
                           void* /*user*/) {
    auto& said = *static_cast<Said*>(source->ptr);
    const std::size_t size = std::min(most, said.body.size());
    if (size == 0 && !said.is_whole) return NGHTTP2_ERR_DEFERRED;
    std::copy_n(said.body.begin(), size, reinterpret_cast<char*>(buffer));
    said.body.erase(0, size);
    if (said.is_whole && said.body.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!said.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        std::vector<nghttp2_nv> pairs = pairs_of(said.trailers);
        (void)nghttp2_submit_trailer(raw, stream, pairs.data(), pairs.size());
      }
    }
    return static_cast<ssize_t>(size);
  }

  static int on_header(nghttp2_session* /*raw*/, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t flags, void* user) {
    Heard& heard = of(user).messages[frame->hd.stream_id];
    std::string key(reinterpret_cast<const char*>(name), name_size);
    std::string text(reinterpret_cast<const char*>(value), value_size);
    if ((flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) heard.never_indexed.push_back(key);
    (heard.is_head_whole ? heard.trailers : heard.head)
        .emplace_back(std::move(key), std::move(text));
    return 0;
  }
  static int on_frame(nghttp2_session* /*raw*/, const nghttp2_frame* frame, void* user) {
    Http2Peer& peer = of(user);
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS) {
      Heard& heard = peer.messages[frame->hd.stream_id];
      if (!heard.is_head_whole && heard.status().starts_with("1")) {
        heard.informed.push_back(std::exchange(heard.head, {}));
      } else if (!heard.is_head_whole) {
        heard.is_head_whole = true;
        peer.arrived.push_back(frame->hd.stream_id);
      }
      heard.has_ended |= is_end;
    } else if (frame->hd.type == NGHTTP2_DATA) {
      peer.messages[frame->hd.stream_id].has_ended |= is_end;
    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
      peer.goaway = frame->goaway.error_code;
    } else if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      ++peer.pongs;
    } else if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
      ++peer.settings_heard;
    }
    return 0;
  }
  static int on_data(nghttp2_session* /*raw*/, std::uint8_t /*flags*/, std::int32_t stream,
                     const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).messages[stream].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_close(nghttp2_session* /*raw*/, std::int32_t stream, std::uint32_t code,
                      void* user) {
    of(user).messages[stream].closed = code;
    return 0;
  }
  static void set_callbacks(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  }

  std::map<std::int32_t, Said*> said_;
  std::map<int, std::vector<Said>> kept_;
  int next_kept_ = 0;
};

}  // namespace capgate::support
