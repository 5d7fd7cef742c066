#include "seal/ring.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "seal/spelling.h"

namespace capgate::seal {
namespace {

std::unique_ptr<const Matcher> matcher_of(const std::vector<std::string>& patterns) {
  return std::make_unique<const Matcher>(
      Matcher::Options{.patterns = {patterns.begin(), patterns.end()}});
}

}  // namespace

Ring::Ring(std::vector<Key> all)
    : keys(std::move(all)), is_bound_here(std::ranges::any_of(keys, &Key::is_bound_here)) {
  std::vector<std::string> patterns;
  patterns.reserve(keys.size() * (1 + base64_spellings));
  for (const Key& key : keys) patterns.push_back(key.placeholder);
  body_matcher = matcher_of(patterns);
  for (const Key& key : keys) {
    for (const std::size_t before : {0U, 1U, 2U}) {
      for (const Alphabet alphabet : {Alphabet::standard, Alphabet::url_safe}) {
        patterns.push_back(base64_inside(key.placeholder, before, alphabet));
      }
    }
  }
  head_matcher = matcher_of(patterns);
  patterns.clear();
  for (const Key& key : keys) patterns.push_back(to_lower(key.placeholder));
  lower_case_matcher = matcher_of(patterns);
}

Misuse other_host(const Key& key, std::string_view place) {
  return {.reason = "other-host",
          .name = key.name,
          .text = format("the placeholder of {} stands in {}, but no to= of its env:inject names "
                         "this endpoint",
                         key.name, place)};
}

Misuse other_place(const Key& key, std::string_view place, std::string_view allowing) {
  const std::string remedy = allowing.empty()
                                 ? std::string("where nothing allows it")
                                 : format("which its env:inject allows with as={} only", allowing);
  return {.reason = "other-place",
          .name = key.name,
          .text = format("the placeholder of {} stands in {}, {}", key.name, place, remedy)};
}

Misuse not_renewed(const Key& key) {
  return {.reason = "not-renewed",
          .name = key.name,
          .text = format("the value of {} could not be renewed", key.name)};
}

Keyring::Keyring(std::vector<Key> keys) : ring_(std::make_shared<const Ring>(std::move(keys))) {}

bool Keyring::is_empty() const { return ring_->keys.empty(); }

}  // namespace capgate::seal
