#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "seal/ring.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace capgate::seal {
namespace {

using Kind = core::SecretPlace::Kind;

enum class Format : unsigned char { raw, json, form };

Format format_of(const Request& request) {
  const Field* field = find_field(request.fields, "content-type");
  if (field == nullptr) return Format::raw;
  const std::string_view value = field->value;
  const std::string type = to_lower(trim(value.substr(0, value.find(';'))));
  if (type == "application/x-www-form-urlencoded") return Format::form;
  const std::string_view subtype = std::string_view(type).substr(type.find('/') + 1);
  constexpr std::string_view json_subtypes[] = {"json", "x-ndjson", "ndjson", "jsonl", "json-seq"};
  const bool is_json = subtype.ends_with("+json") ||
                       std::ranges::find(json_subtypes, subtype) != std::end(json_subtypes);
  return is_json ? Format::json : Format::raw;
}

Wiped spelled(std::string_view value, Format format) {
  switch (format) {
    case Format::raw: return Wiped(std::string(value));
    case Format::json: return Wiped(json_escaped(value));
    case Format::form: return Wiped(percent_encoded(value));
  }
  std::unreachable();
}

bool may_stand_in_body(const Key& key) { return key.is_bound_here && key.as.kind == Kind::body; }

}  // namespace

struct BodySwap::State {
  std::shared_ptr<const Ring> ring;
  Format format = Format::raw;
  bool may_change_length = false;
  std::string held;     // the beginning of what may be a placeholder
  std::string joined;   // that and what came after it
  std::string changed;  // holds values
  std::vector<std::string> used;

  State(std::shared_ptr<const Ring> shared, const Request& request)
      : ring(std::move(shared)), format(format_of(request)) {
    may_change_length = std::ranges::any_of(ring->keys, [&](const Key& key) {
      return may_stand_in_body(key) && key.value != nullptr &&
             spelled(key.value->view(), format).view().size() != key.placeholder.size();
    });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() { secrets::wipe(changed); }

  std::expected<void, Misuse> append_value(const Key& key);
  std::expected<std::string_view, Misuse> pass(std::string_view bytes, bool is_last);
};

std::expected<void, Misuse> BodySwap::State::append_value(const Key& key) {
  if (!key.is_bound_here) return std::unexpected(other_host(key, "the body"));
  if (key.as.kind != Kind::body) return std::unexpected(other_place(key, "the body", "body"));
  if (key.value == nullptr) return std::unexpected(not_renewed(key));
  const Wiped value = spelled(key.value->view(), format);
  // A length that was announced must hold: what is beyond it would be read as another request.
  if (!may_change_length && value.view().size() != key.placeholder.size()) {
    return std::unexpected(
        Misuse{.reason = "not-renewed",
               .name = key.name,
               .text = capgate::format("the value of {} was renewed while a body passed that it "
                                       "does not fit",
                                       key.name)});
  }
  append_wiping(changed, value.view());
  if (std::ranges::find(used, key.name) == used.end()) used.push_back(key.name);
  return {};
}

std::expected<std::string_view, Misuse> BodySwap::State::pass(std::string_view bytes,
                                                              bool is_last) {
  if (!changed.empty()) secrets::wipe(changed);
  std::string_view text = bytes;
  if (!held.empty()) {
    joined.assign(held).append(bytes);
    text = joined;
  }
  const Matcher& placeholders = *ring->body_matcher;
  std::size_t done = 0;
  std::size_t end = 0;
  while (true) {
    const auto found = placeholders.find(text, done);
    end = is_last ? text.size() : placeholders.tail(text, done);
    // What begins behind `end` may turn out to be longer: it is found again then.
    if (!found || found->at >= end) break;
    append_wiping(changed, text.substr(done, found->at - done));
    TRY(append_value(ring->keys[found->pattern]));
    done = found->at + found->size;
  }
  held.assign(text.substr(end));
  if (done == 0) return text.substr(0, end);
  append_wiping(changed, text.substr(done, end - done));
  return changed;
}

BodySwap::BodySwap(std::unique_ptr<State> state) : state_(std::move(state)) {}
BodySwap::BodySwap(BodySwap&&) noexcept = default;
BodySwap& BodySwap::operator=(BodySwap&&) noexcept = default;
BodySwap::~BodySwap() = default;

std::expected<std::string_view, Misuse> BodySwap::pass(std::string_view bytes) {
  return state_->pass(bytes, false);
}
std::expected<std::string_view, Misuse> BodySwap::rest() { return state_->pass({}, true); }
std::expected<std::string, Misuse> BodySwap::push(std::string_view bytes) {
  return std::string(TRY(pass(bytes)));
}
std::expected<std::string, Misuse> BodySwap::finish() { return std::string(TRY(rest())); }
bool BodySwap::may_change_length() const { return state_->may_change_length; }
const std::vector<std::string>& BodySwap::used() const { return state_->used; }

BodySwap Keyring::request_body(const Request& request) const {
  return BodySwap(std::make_unique<BodySwap::State>(ring_, request));
}

}  // namespace capgate::seal
