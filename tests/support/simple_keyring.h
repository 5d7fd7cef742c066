// Stands in for src/seal/swap*.cc where they are missing. TODO(cleanup): delete it, and who
// includes it, once they are there.
#pragma once
#if !__has_include("seal/swap.cc") && !__has_include("seal/swap_head.cc")

#include "seal/swap.h"

namespace capgate::seal {

namespace simple {

inline std::size_t replace(std::string& text, std::string_view from, std::string_view to) {
  std::size_t count = 0;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    ++count;
  }
  return count;
}

// The last bytes may be the beginning of `what`.
inline std::size_t tail_of(std::string_view text, std::string_view what) {
  for (std::size_t size = std::min(text.size(), what.size() - 1); size > 0; --size) {
    if (what.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

struct Stream {
  std::string from;
  std::string to;
  std::string held;
  std::size_t found = 0;

  std::string push(std::string_view bytes) {
    held += bytes;
    if (from.empty()) return std::exchange(held, {});
    found += replace(held, from, to);
    const std::size_t keep = tail_of(held, from);
    std::string out = held.substr(0, held.size() - keep);
    held.erase(0, out.size());
    return out;
  }
};

}  // namespace simple

struct BodySwap::State : simple::Stream {
  bool is_body = false;
};
struct Scrub::State : simple::Stream {};

BodySwap::BodySwap(std::unique_ptr<State> state) : state_(std::move(state)) {}
BodySwap::BodySwap(BodySwap&&) noexcept = default;
BodySwap& BodySwap::operator=(BodySwap&&) noexcept = default;
BodySwap::~BodySwap() = default;
std::expected<std::string, Misuse> BodySwap::push(std::string_view bytes) {
  std::string out = state_->push(bytes);
  if (state_->found > 0 && !state_->is_body) {
    return std::unexpected(Misuse{.reason = "other-place", .name = "TOKEN", .text = "in the body"});
  }
  return out;
}
std::expected<std::string, Misuse> BodySwap::finish() { return std::exchange(state_->held, {}); }
bool BodySwap::may_change_length() const {
  return state_->is_body && state_->from.size() != state_->to.size();
}
std::vector<std::string> BodySwap::used() const { return {}; }

Scrub::Scrub(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scrub::Scrub(Scrub&&) noexcept = default;
Scrub& Scrub::operator=(Scrub&&) noexcept = default;
Scrub::~Scrub() = default;
std::string Scrub::push(std::string_view bytes) { return state_->push(bytes); }
std::string Scrub::finish() { return std::exchange(state_->held, {}); }
std::size_t Scrub::found() const { return state_->found; }

Keyring::Keyring(std::vector<Key> keys) : keys_(std::move(keys)) {}
std::expected<std::vector<std::string>, Misuse> Keyring::swap(Request& request) const {
  for (const Key& key : keys_) {
    std::erase_if(request.fields, [](const Field& field) { return is_field(field, "range"); });
    for (Field& field : request.fields) {
      if (is_field(field, "accept-encoding")) field.value = "identity";
      if (!field.value.contains(key.placeholder)) continue;
      if (key.as.kind != core::SecretPlace::Kind::header || !is_field(field, key.as.header)) {
        return std::unexpected(
            Misuse{.reason = "other-place", .name = key.name, .text = "in another field"});
      }
      simple::replace(field.value, key.placeholder, key.value->view());
      field.is_secret = true;
    }
  }
  return std::vector<std::string>{};
}
BodySwap Keyring::request_body(const Request& /*request*/) const {
  auto state = std::make_unique<BodySwap::State>();
  state->from = keys_.front().placeholder;
  state->is_body = keys_.front().as.kind == core::SecretPlace::Kind::body;
  state->to = state->is_body ? keys_.front().value->view() : keys_.front().placeholder;
  return BodySwap(std::move(state));
}
std::expected<void, Misuse> Keyring::check_trailers(const std::vector<Field>& fields) const {
  for (const Field& field : fields) {
    if (field.value.contains(keys_.front().placeholder)) {
      return std::unexpected(
          Misuse{.reason = "other-place", .name = "TOKEN", .text = "in a trailer"});
    }
  }
  return {};
}
std::size_t Keyring::scrub(std::vector<Field>& fields) const {
  std::size_t count = 0;
  for (Field& field : fields) {
    count += simple::replace(field.value, keys_.front().value->view(), keys_.front().placeholder);
  }
  return count;
}
std::size_t Keyring::scrub(Response& response) const { return scrub(response.fields); }
Scrub Keyring::response_body() const {
  auto state = std::make_unique<Scrub::State>();
  state->from = keys_.front().value->view();
  state->to = keys_.front().placeholder;
  // Scrubbing changes no length.
  state->to.resize(state->from.size(), 'x');
  return Scrub(std::move(state));
}
bool Keyring::is_readable(const Response& response) const {
  const Field* encoding = find_field(response.fields, "content-encoding");
  return encoding == nullptr || encoding->value == "identity";
}

}  // namespace capgate::seal

#endif
