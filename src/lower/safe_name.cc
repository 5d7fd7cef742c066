#include "lower/safe_name.h"

#include "base/digest.h"
#include "base/text.h"

namespace capgate::lower {
namespace {

std::string plain_letters(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (is_alnum(c)) {
      out += to_lower(c);
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  if (out.ends_with('-')) out.pop_back();
  return out;
}

}  // namespace

std::string safe_name(std::string_view name, std::size_t longest) {
  std::string out = plain_letters(name);
  if (!out.empty() && out.size() <= longest) return out;
  constexpr std::size_t digits = 8;
  const std::string hash = sha256_hex(name).substr(0, digits);
  if (out.empty()) return "server-" + hash;
  out.resize(longest - digits - 1);
  if (out.ends_with('-')) out.pop_back();
  return out + "-" + hash;
}

}  // namespace capgate::lower
