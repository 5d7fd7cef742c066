#include "core/ipv6.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/text.h"

namespace capgate::core {
namespace {

constexpr std::size_t group_count = 8;

std::optional<std::uint16_t> parse_group(std::string_view text) {
  if (text.empty() || text.size() > 4) return {};
  unsigned value = 0;
  for (const char c : text) {
    const char lower = to_lower(c);
    if (is_digit(c)) {
      value = value * 16 + static_cast<unsigned>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<unsigned>(lower - 'a') + 10;
    } else {
      return {};
    }
  }
  return static_cast<std::uint16_t>(value);
}

// The groups of one side of "::", or of the whole address. Empty text has no groups.
std::optional<std::vector<std::uint16_t>> parse_groups(std::string_view text) {
  std::vector<std::uint16_t> groups;
  if (text.empty()) return groups;
  for (const std::string_view part : split(text, ':')) {
    const auto group = parse_group(part);
    if (!group || groups.size() == group_count) return {};
    groups.push_back(*group);
  }
  return groups;
}

std::uint16_t group_at(const Ipv6Bytes& address, std::size_t i) {
  return static_cast<std::uint16_t>((address[2 * i] << 8) | address[2 * i + 1]);
}

struct Run {
  std::size_t begin = group_count;
  std::size_t length = 0;
};

// RFC 5952: the longest run of zero groups, the first of equals, and never a single group.
Run longest_zero_run(const Ipv6Bytes& address) {
  Run best;
  for (std::size_t i = 0; i < group_count;) {
    std::size_t end = i;
    while (end < group_count && group_at(address, end) == 0) ++end;
    if (end - i >= 2 && end - i > best.length) best = {.begin = i, .length = end - i};
    i = end + 1;
  }
  return best;
}

}  // namespace

std::optional<Ipv6Bytes> parse_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  const auto head = parse_groups(text.substr(0, gap));
  const auto tail =
      parse_groups(gap == std::string_view::npos ? std::string_view() : text.substr(gap + 2));
  if (!head || !tail) return {};
  const std::size_t given = head->size() + tail->size();
  const bool complete = gap == std::string_view::npos ? given == group_count : given < group_count;
  if (!complete) return {};

  std::array<std::uint16_t, group_count> groups{};
  std::ranges::copy(*head, groups.begin());
  std::ranges::copy(*tail, groups.end() - static_cast<std::ptrdiff_t>(tail->size()));
  Ipv6Bytes out{};
  for (std::size_t i = 0; i < group_count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    out[2 * i + 1] = static_cast<std::uint8_t>(groups[i] & 0xff);
  }
  return out;
}

std::string print_ipv6(const Ipv6Bytes& address) {
  const Run gap = longest_zero_run(address);
  std::string out;
  for (std::size_t i = 0; i < group_count; ++i) {
    if (i == gap.begin) {
      out += "::";
      i += gap.length - 1;
      continue;
    }
    if (!out.empty() && !out.ends_with(':')) out += ':';
    out += format("{:x}", group_at(address, i));
  }
  return out;
}

bool is_ipv4_mapped(const Ipv6Bytes& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](auto b) { return b == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

}  // namespace capgate::core
