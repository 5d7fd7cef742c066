// What a target keeps of each kind of capability: one row of `capgate targets` and docs/targets.md.
//
//   .connect = enforced("by the broker, through its socket"),
//   .exec = not_kept(),
//
// A whole target refuses what it does not keep, a partial one lists it in `notCovered`; the table
// is tested against what the lowering does with a sample of each kind.
#pragma once

#include <array>
#include <string_view>

#include "core/capability.h"

namespace capgate::lower {

struct Cover {
  enum class Level : unsigned char { enforced, partly, no };
  Level level = Level::no;
  std::string_view how;
};

constexpr Cover enforced(std::string_view how) { return {Cover::Level::enforced, how}; }
constexpr Cover partly(std::string_view how) { return {Cover::Level::partly, how}; }
constexpr Cover not_kept(std::string_view why = {}) { return {Cover::Level::no, why}; }

struct Coverage {
  Cover fs;
  Cover connect;
  Cover listen;
  Cover exec;
  Cover env;
  Cover sealed;  // env:inject with to=: the server never holds the value
  Cover ipc;
  Cover clock;
  Cover limit;
  Cover assertion;
};

inline constexpr std::array<std::string_view, 10> coverage_columns{
    "fs",         "net:connect", "net:listen", "exec",  "env",
    "env sealed", "ipc",         "clock",      "limit", "assert"};

[[nodiscard]] std::array<Cover, 10> columns_of(const Coverage& coverage);
[[nodiscard]] const Cover& cover_of(const Coverage& coverage, const core::Capability& capability);
[[nodiscard]] std::string_view level_name(Cover::Level level);

}  // namespace capgate::lower
