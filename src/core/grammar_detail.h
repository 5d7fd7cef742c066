// What the parsers of the single kinds share. Included by grammar*.cc only.
#pragma once

#include <algorithm>
#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/text.h"
#include "core/capability.h"
#include "core/fields.h"

namespace capgate::core::grammar {

// One parser per kind. `fields` is the string cut up, with its variables replaced.
[[nodiscard]] Result<Capability> parse_fs(const Fields& fields);
[[nodiscard]] Result<Capability> parse_net(const Fields& fields);
[[nodiscard]] Result<Capability> parse_exec(const Fields& fields);
[[nodiscard]] Result<Capability> parse_env(const Fields& fields);
[[nodiscard]] Result<Capability> parse_ipc(const Fields& fields);
[[nodiscard]] Result<Capability> parse_clock(const Fields& fields);
[[nodiscard]] Result<Capability> parse_limit(const Fields& fields);
[[nodiscard]] Result<Capability> parse_assert(const Fields& fields, TextStorage& storage);

[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> candidates);

// Refuses a wrong number of fields; `form` is what to write.
[[nodiscard]] Result<void> check_shape(const Fields& fields, std::size_t least, std::size_t most,
                                       Code code, std::string_view form);

// The names in a comma-separated field: bit i stands for the i-th of `known`.
using Actions = std::bitset<4>;
[[nodiscard]] Result<Actions> parse_actions(const Field& field, std::string_view kind,
                                            std::span<const std::string_view> known);

// Runs a parser of one field and moves its positions to where the field stands.
template <typename Parse>
[[nodiscard]] auto in_field(const Field& field, Parse parse) -> decltype(parse(field.text)) {
  auto result = parse(field.text);
  if (!result) result.error().where = field.locate(result.error().where);
  return result;
}

// Reads the refinements of one capability by key.
class RefinementReader {
 public:
  RefinementReader(const Fields& fields, std::span<const std::string_view> known)
      : fields_(fields), known_(known) {}

  // Every key is known, and given once unless it may be repeated. Call it first.
  [[nodiscard]] Result<void> check(std::string_view repeatable = {}) const;

  [[nodiscard]] const Refinement* find(std::string_view key) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  // The index of the value among `choices`.
  [[nodiscard]] Result<std::optional<std::size_t>> choice(
      std::string_view key, std::span<const std::string_view> choices) const;
  [[nodiscard]] std::span<const Refinement> all() const { return fields_.refinements; }

 private:
  const Fields& fields_;
  std::span<const std::string_view> known_;
};

}  // namespace capgate::core::grammar
