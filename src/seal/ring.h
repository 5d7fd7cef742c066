// What a Keyring shares with its copies and with the streams that it makes. For swap_*.cc and
// scrub.cc only.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "seal/escaped_matcher.h"
#include "seal/matcher.h"
#include "seal/swap.h"

namespace capgate::seal {

// Values of the keys that are bound here, in all spellings that are scrubbed.
struct ScrubTable {
  std::vector<const Key*> owners;    // by pattern
  std::vector<std::size_t> as_such;  // patterns that are values, in the order of the keys
  std::unique_ptr<const Matcher> matcher;
  std::unique_ptr<const EscapedMatcher> escaped;  // the same patterns
};

struct Ring {
  explicit Ring(std::vector<Key> all);

  const std::vector<Key> keys;
  const bool is_bound_here;  // one of them is
  // By the index of the key; in heads, these are followed by six spellings of each in base64.
  std::unique_ptr<const Matcher> body_matcher;
  std::unique_ptr<const Matcher> head_matcher;
  std::unique_ptr<const Matcher> lower_case_matcher;  // field names and hosts may be changed so
  mutable std::shared_ptr<const ScrubTable> scrub_table;

  [[nodiscard]] std::size_t key_of_head_pattern(std::size_t pattern) const {
    return pattern < keys.size() ? pattern : (pattern - keys.size()) / base64_spellings;
  }
  static constexpr std::size_t base64_spellings = 6;
};

// `place`: "the query", "the field x-token".
[[nodiscard]] Misuse other_host(const Key& key, std::string_view place);
// `allowing`: the `as` that would allow it, empty if none does.
[[nodiscard]] Misuse other_place(const Key& key, std::string_view place, std::string_view allowing);
[[nodiscard]] Misuse not_renewed(const Key& key);

// Of the current values; the same table as before if they have not changed.
[[nodiscard]] std::shared_ptr<const ScrubTable> scrub_table(const Ring& ring);

}  // namespace capgate::seal
