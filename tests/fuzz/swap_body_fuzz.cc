// Any bytes in any pieces: a body is swapped, or refused, as a search in the whole says; and no
// value is left in an answer, whose length is kept.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "fuzz/seal_oracle.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace {

using namespace capgate;
using namespace capgate::seal;
using core::SecretPlace;

constexpr fuzz::Shorthand token{.placeholder = "abaababaabaababaababa",
                                .value = "r/e\"al ~?>1abaab"};

// The first byte of the input decides how long the pieces are.
class Pieces {
 public:
  Pieces(std::string_view text, std::uint8_t seed) : text_(text), state_(seed) {}
  [[nodiscard]] bool is_done() const { return text_.empty(); }
  std::string_view next() {
    state_ = state_ * 1103515245U + 12345U;
    const std::string_view piece = text_.substr(0, (state_ >> 16) % 24);
    text_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view text_;
  std::uint32_t state_;
};

Key key_as(SecretPlace::Kind kind, const secrets::Secret& value) {
  return {.name = "TOKEN",
          .placeholder = std::string(token.placeholder),
          .as = {.kind = kind},
          .is_bound_here = true,
          .value = &value};
}

void check_swap(const Keyring& keys, const std::string& text, std::uint8_t seed) {
  const Request request{
      .method = "POST",
      .target = "/",
      .fields = {{.name = "content-type", .value = seed % 2 == 0 ? "text/json" : "text/plain"}}};
  BodySwap body = keys.request_body(request);
  std::string out;
  for (Pieces pieces(text, seed); !pieces.is_done();) out += *body.pass(pieces.next());
  out += *body.rest();
  const std::string value = seed % 2 == 0 ? json_escaped(token.value) : std::string(token.value);
  CAPGATE_ASSERT(out == fuzz::replaced(text, token.placeholder, value));
  CAPGATE_ASSERT(body.used().empty() == !text.contains(token.placeholder));
}

void check_refusal(const Keyring& keys, const std::string& text, std::uint8_t seed) {
  BodySwap body = keys.request_body({});
  std::string out;
  bool is_refused = false;
  for (Pieces pieces(text, seed); !pieces.is_done() && !is_refused;) {
    const auto passed = body.pass(pieces.next());
    is_refused = !passed;
    if (passed) out += *passed;
  }
  if (!is_refused) out += *body.rest();
  CAPGATE_ASSERT(is_refused == text.contains(token.placeholder));
  CAPGATE_ASSERT(text.starts_with(out) && !out.contains(token.placeholder));
  CAPGATE_ASSERT(is_refused || out == text);
}

void check_scrub(const Keyring& keys, const std::string& text, std::uint8_t seed) {
  Scrub scrub = keys.response_body();
  std::string out;
  for (Pieces pieces(text, seed); !pieces.is_done();) out += scrub.pass(pieces.next());
  out += scrub.rest();
  CAPGATE_ASSERT(out.size() == text.size());
  CAPGATE_ASSERT(!out.contains(token.value));
  CAPGATE_ASSERT(scrub.found() > 0 || out == text);

  Scrub at_once = keys.response_body();
  std::string whole(at_once.pass(text));
  whole += at_once.rest();
  CAPGATE_ASSERT(whole == out && at_once.found() == scrub.found());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const auto value = secrets::Secret::make(token.value);
  static const Keyring in_body({key_as(SecretPlace::Kind::body, *value)});
  static const Keyring in_field({key_as(SecretPlace::Kind::header, *value)});
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string text = fuzz::spelled_out(bytes, token);
  check_swap(in_body, text, data[0]);
  check_refusal(in_field, text, data[0]);
  check_scrub(in_body, text, data[0]);
  return 0;
}
