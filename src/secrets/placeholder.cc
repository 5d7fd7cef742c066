#include "secrets/placeholder.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace capgate::secrets {
namespace {

// What services print in their documentation. A longer one comes before its own beginning.
constexpr std::array<std::string_view, 38> public_prefixes = {
    "github_pat_", "ghp_",   "gho_",    "ghu_",     "ghs_",     "ghr_",     "glpat-",   "sk-ant-",
    "sk-proj-",    "sk-or-", "sk-",     "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_",
    "xoxb-",       "xoxp-",  "xoxa-",   "xoxe-",    "xapp-",    "npm_",     "pypi-",    "hf_",
    "AIza",        "ya29.",  "dop_v1_", "SG.",      "lin_api_", "ntn_",     "secret_",  "figd_",
    "shpat_",      "tvly-",  "r8_",     "gsk_",     "pplx-",    "xai-"};

constexpr std::string_view lower_hexadecimal = "0123456789abcdef";
constexpr std::string_view upper_hexadecimal = "0123456789ABCDEF";
constexpr std::string_view letters_and_digits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::size_t least_random = 12;

std::string_view prefix_of(std::string_view value) {
  const auto* const found = std::ranges::find_if(
      public_prefixes, [&](std::string_view prefix) { return value.starts_with(prefix); });
  return found == public_prefixes.end() ? std::string_view() : *found;
}

std::string_view alphabet_of(std::string_view rest) {
  for (const std::string_view alphabet : {lower_hexadecimal, upper_hexadecimal}) {
    const bool fits = std::ranges::all_of(rest, [&](char c) { return alphabet.contains(c); });
    if (fits) return alphabet;
  }
  return letters_and_digits;
}

}  // namespace

std::string make_placeholder(std::string_view value, std::span<const std::uint8_t> random) {
  const std::size_t size = std::max(value.size(), shortest_placeholder);
  CAPGATE_ASSERT(random.size() >= size);
  std::string_view prefix = prefix_of(value);
  if (size - prefix.size() < least_random) prefix = {};
  const std::string_view alphabet = alphabet_of(value.substr(prefix.size()));
  std::string out(prefix);
  for (std::size_t i = out.size(); i < size; ++i) out += alphabet[random[i] % alphabet.size()];
  return out;
}

}  // namespace capgate::secrets
