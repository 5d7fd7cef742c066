// A client and an origin that say anything at all, in HTTP/2 or not, through the relay: it ends,
// and what the origin decodes is what the client has said, with values in the place of
// placeholders.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/text.h"
#include "support/http2_lab.h"

namespace {

using namespace capgate;
using support::Heard;
using support::Pairs;

const std::string placeholder = "ph_0123456789abcdefghij";
constexpr std::size_t most_commands = 200;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  std::size_t number() {
    if (bytes_.empty()) return 0;
    const auto out = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return out;
  }
  std::string text() {
    const std::string_view out = bytes_.substr(0, number());
    bytes_.remove_prefix(std::min(out.size(), bytes_.size()));
    return std::string(out);
  }

 private:
  std::string_view bytes_;
};

struct Told {
  Pairs head;
  std::string body;
};

seal::Key key() {
  static const secrets::Secret value = *secrets::Secret::make("the-real-token-value");
  return {.name = "TOKEN",
          .placeholder = placeholder,
          .as = {},
          .is_bound_here = true,
          .value = &value};
}

class Play {
 public:
  explicit Play(std::string_view bytes) : reader_(bytes) {
    lab_.set_keys({key()});
    const std::size_t how = reader_.number();
    const auto window = static_cast<std::uint32_t>(reader_.number() * 64);
    lab_.set_peers({.reads_bodies = (how & 1U) != 0,
                    .is_strict = false,
                    .entries = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}}},
                   {.reads_bodies = (how & 2U) != 0, .is_strict = false});
    lab_.most_head_bytes = 2048;
  }

  void run() {
    lab_.start();
    for (std::size_t i = 0; i < most_commands && !reader_.is_empty() && !lab_.end; ++i) command();
    lab_.pump();
    check();
    lab_.finish();
    lab_.origin_side.cancel();
    CAPGATE_ASSERT(lab_.end.has_value());
  }

 private:
  Pairs fields(Pairs out) {
    for (std::size_t count = reader_.number() % 8; count > 0; --count) {
      static constexpr std::array<std::string_view, 6> names{
          "authorization", "content-length", "host", "content-encoding", "x-hidden", "te"};
      const std::size_t which = reader_.number();
      std::string name = which < names.size() ? std::string(names[which]) : reader_.text();
      // As nghttp2 sends them.
      for (char& c : name) c = to_lower(c);
      std::string value = reader_.text();
      if (which % 7 == 0) value += placeholder;
      out.emplace_back(std::move(name), std::move(value));
    }
    return out;
  }
  support::Said said() {
    const std::size_t how = reader_.number();
    std::string body;
    for (std::size_t i = how % 16; i > 0; --i) body += std::string(1000, static_cast<char>(how));
    body += reader_.text();
    return {.body = body, .trailers = (how & 16U) != 0 ? fields({}) : Pairs{}};
  }
  void ask() {
    static constexpr std::array<std::string_view, 5> methods{"GET", "POST", "HEAD", "CONNECT",
                                                             "OPTIONS"};
    const std::size_t how = reader_.number();
    Told told{.head = fields({{":method", std::string(methods[how % methods.size()])},
                              {":scheme", (how & 128U) != 0 ? "http" : "https"},
                              {":authority", "api.test"},
                              {":path", "/" + reader_.text()}})};
    told.head.emplace_back("x-id", std::to_string(told_.size()));
    if ((how & 64U) != 0) {
      support::Said body = said();
      told.body = body.body;
      (void)lab_.client->request(told.head, std::move(body));
    } else {
      (void)lab_.client->request(told.head);
    }
    told_.push_back(std::move(told));
  }
  void answer() {
    const auto& arrived = lab_.origin->arrived;
    if (arrived.empty()) return;
    const std::int32_t stream = arrived[reader_.number() % arrived.size()];
    const std::size_t how = reader_.number();
    const Pairs head =
        fields({{":status", std::to_string(how < 20 ? 100 + how : 200 + how % 400)}});
    if (how < 20) {
      lab_.origin->inform(stream, head);
    } else if (how < 60) {
      lab_.origin->respond(stream, head);
    } else {
      lab_.origin->respond(stream, head, said());
    }
  }
  void command() {
    const std::size_t what = reader_.number() % 13;
    switch (what) {
      case 0:
      case 1:
      case 2: ask(); break;
      case 3:
      case 4: answer(); break;
      case 5: lab_.step(); break;
      case 6: lab_.pump(); break;
      case 7:
        lab_.client->reset(static_cast<std::int32_t>(reader_.number() | 1U),
                           static_cast<std::uint32_t>(reader_.number()));
        break;
      case 8:
        lab_.origin->reset(static_cast<std::int32_t>(reader_.number() | 1U),
                           static_cast<std::uint32_t>(reader_.number()));
        break;
      case 9: lab_.requests->let_go(); break;
      case 10:
        client_is_raw_ = true;
        lab_.client_side.feed(reader_.text());
        break;
      case 11: lab_.origin_side.feed(reader_.text()); break;
      default:
        (reader_.number() % 2 == 0 ? lab_.client_side : lab_.origin_side)
            .end(reader_.number() % 2 == 0 ? egress::ended : egress::failed);
    }
  }

  // What the relay has judged is what arrives, but for the placeholder; and what it has judged is
  // what the client has said.
  void check() {
    std::vector<Pairs> expected;
    for (const seal::Request& judged : lab_.requests->judged) {
      if (!client_is_raw_) check_told(judged);
      seal::Request swapped = judged;
      if (!lab_.requests->keys().swap(swapped)) continue;
      expected.push_back(pairs_of(swapped));
    }
    for (const std::int32_t stream : lab_.origin->arrived) {
      const Heard& heard = lab_.origin->messages[stream];
      const auto found = std::ranges::find(expected, heard.head);
      CAPGATE_ASSERT(found != expected.end());
      expected.erase(found);
      if (!client_is_raw_) check_body(heard);
    }
  }
  static Pairs pairs_of(const seal::Request& request) {
    Pairs out{{":method", request.method},
              {":scheme", "https"},
              {":authority", request.authority},
              {":path", request.target}};
    for (const seal::Field& field : request.fields) out.emplace_back(field.name, field.value);
    return out;
  }
  void check_told(const seal::Request& judged) {
    const seal::Field* id = seal::find_field(judged.fields, "x-id");
    CAPGATE_ASSERT(id != nullptr);
    CAPGATE_ASSERT(std::ranges::any_of(
        told_, [&](const Told& told) { return told.head == pairs_of(judged); }));
  }
  void check_body(const Heard& heard) {
    // The relay may add fields, and the client may have said x-id by accident before.
    std::string id;
    for (const auto& [name, value] : heard.head) {
      if (name == "x-id") id = value;
    }
    const Told& told = told_.at(std::stoul(id));
    CAPGATE_ASSERT(told.body.starts_with(heard.body));
    CAPGATE_ASSERT(!heard.has_ended || told.body == heard.body);
  }

  support::Http2Lab lab_;
  Reader reader_;
  std::vector<Told> told_;
  bool client_is_raw_ = false;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Play({reinterpret_cast<const char*>(data), size}).run();
  return 0;
}
