#include "clients/semver.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace capgate::clients {
namespace {

constexpr std::size_t longest = 256;  // of a version and of a range, as npm holds it
constexpr std::uint64_t largest_number = 9'007'199'254'740'991;

struct Version {
  std::array<std::uint64_t, 3> numbers{};
  std::vector<std::string_view> prerelease;
};

// A version of which the end may be left open: 1, 1.2, 1.x, *.
struct Partial {
  Version version;
  std::size_t known = 0;  // how many numbers are said
};

struct Comparator {
  enum class Kind : std::uint8_t { less, at_most, equal, at_least, greater };
  Kind kind = Kind::equal;
  Version version;
};
using Kind = Comparator::Kind;
using Comparators = std::vector<Comparator>;

constexpr std::string_view lowest[] = {"0"};  // the prerelease before all others

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const auto number = parse_decimal(text);
  return number && *number <= largest_number ? number : std::nullopt;
}

bool is_numeric(std::string_view text) { return std::ranges::all_of(text, is_digit); }

std::strong_ordering compare_identifiers(std::string_view a, std::string_view b) {
  if (is_numeric(a) != is_numeric(b)) {
    return is_numeric(a) ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  // No leading zeros: of two numbers the longer one is greater.
  if (is_numeric(a) && a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

std::strong_ordering compare(const Version& a, const Version& b) {
  if (const auto order = a.numbers <=> b.numbers; order != 0) return order;
  if (a.prerelease.empty() != b.prerelease.empty()) {
    return a.prerelease.empty() ? std::strong_ordering::greater : std::strong_ordering::less;
  }
  return std::lexicographical_compare_three_way(a.prerelease.begin(), a.prerelease.end(),
                                                b.prerelease.begin(), b.prerelease.end(),
                                                compare_identifiers);
}

std::optional<std::vector<std::string_view>> parse_identifiers(std::string_view text,
                                                               bool leading_zeros) {
  std::vector<std::string_view> identifiers = split(text, '.');
  for (const std::string_view part : identifiers) {
    if (part.empty()) return std::nullopt;
    if (!std::ranges::all_of(part, [](char c) { return is_alnum(c) || c == '-'; })) {
      return std::nullopt;
    }
    if (!leading_zeros && is_numeric(part) && part.size() > 1 && part.front() == '0') {
      return std::nullopt;
    }
  }
  return identifiers;
}

// Takes "-beta.1+build" off the end of `text`; the build's name must be right and means nothing.
std::optional<std::vector<std::string_view>> take_qualifier(std::string_view& text) {
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    if (!parse_identifiers(text.substr(plus + 1), true)) return std::nullopt;
    text = text.substr(0, plus);
  }
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::vector<std::string_view>();
  const std::string_view prerelease = text.substr(dash + 1);
  text = text.substr(0, dash);
  return parse_identifiers(prerelease, false);
}

bool is_open(std::string_view part) { return part == "x" || part == "X" || part == "*"; }

std::optional<Partial> parse_partial(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const bool qualified = find_any(text, "-+") != std::string_view::npos;
  auto prerelease = take_qualifier(text);
  if (!prerelease) return std::nullopt;
  const std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() > 3 || (qualified && parts.size() != 3)) return std::nullopt;
  Partial partial;
  bool open = false;
  for (const std::string_view part : parts) {
    if (is_open(part)) {
      open = true;
      continue;
    }
    const auto number = parse_number(part);
    if (!number || open) return std::nullopt;  // 1.x.3 has no meaning
    partial.version.numbers[partial.known++] = *number;
  }
  if (partial.known == 3) partial.version.prerelease = *std::move(prerelease);
  return partial;
}

// The first version of what follows when number `place` goes up by one: 1.2.3 at 1 -> 1.3.0-0.
Version after(const Version& version, std::size_t place) {
  Version next;
  std::ranges::copy_n(version.numbers.begin(), static_cast<std::ptrdiff_t>(place) + 1,
                      next.numbers.begin());
  ++next.numbers[place];
  next.prerelease.assign(std::begin(lowest), std::end(lowest));
  return next;
}

Version without_prerelease(Version version) {
  version.prerelease.clear();
  return version;
}

void add_between(Comparators& out, const Version& first, const Version& end) {
  out.push_back({.kind = Kind::at_least, .version = first});
  out.push_back({.kind = Kind::less, .version = end});
}

void add_nothing(Comparators& out) {
  Version zero;
  zero.prerelease.assign(std::begin(lowest), std::end(lowest));
  out.push_back({.kind = Kind::less, .version = std::move(zero)});
}

void add_tilde(Comparators& out, const Partial& partial) {
  if (partial.known == 0) return;
  add_between(out, partial.version, after(partial.version, partial.known == 1 ? 0 : 1));
}

void add_caret(Comparators& out, const Partial& partial) {
  if (partial.known == 0) return;
  // What may not change is the first number that is not zero, as far as numbers are said.
  std::size_t place = 0;
  while (place + 1 < partial.known && partial.version.numbers[place] == 0) ++place;
  add_between(out, partial.version, after(partial.version, place));
}

void add_open(Comparators& out, std::string_view sign, const Partial& partial) {
  const bool is_strict = sign == "<" || sign == ">";
  if (partial.known == 0) {
    if (is_strict) add_nothing(out);
    return;
  }
  const Version& first = partial.version;
  const Version end = after(first, partial.known - 1);
  if (sign == ">") {
    out.push_back({.kind = Kind::at_least, .version = without_prerelease(end)});
  } else if (sign == ">=") {
    out.push_back({.kind = Kind::at_least, .version = first});
  } else if (sign == "<") {
    Version before = first;
    before.prerelease.assign(std::begin(lowest), std::end(lowest));
    out.push_back({.kind = Kind::less, .version = std::move(before)});
  } else if (sign == "<=") {
    out.push_back({.kind = Kind::less, .version = end});
  } else {
    add_between(out, first, end);
  }
}

void add_exact(Comparators& out, std::string_view sign, const Version& version) {
  Kind kind = Kind::equal;
  if (sign == "<") kind = Kind::less;
  if (sign == "<=") kind = Kind::at_most;
  if (sign == ">") kind = Kind::greater;
  if (sign == ">=") kind = Kind::at_least;
  out.push_back({.kind = kind, .version = version});
}

std::string_view take_sign(std::string_view& text) {
  constexpr std::string_view signs[] = {"~>", ">=", "<=", "^", "~", ">", "<", "="};
  for (const std::string_view sign : signs) {
    if (!text.starts_with(sign)) continue;
    text = trim(text.substr(sign.size()));
    return sign;
  }
  return {};
}

bool add_simple(Comparators& out, std::string_view sign, std::string_view text) {
  const auto partial = parse_partial(text);
  if (!partial) return false;
  if (sign == "^") {
    add_caret(out, *partial);
  } else if (sign.starts_with('~')) {
    add_tilde(out, *partial);
  } else if (partial->known < 3) {
    add_open(out, sign, *partial);
  } else {
    add_exact(out, sign, partial->version);
  }
  return true;
}

bool add_hyphen(Comparators& out, std::string_view from, std::string_view to) {
  const auto first = parse_partial(from);
  const auto last = parse_partial(to);
  if (!first || !last) return false;
  if (first->known > 0) out.push_back({.kind = Kind::at_least, .version = first->version});
  if (last->known == 3) {
    out.push_back({.kind = Kind::at_most, .version = last->version});
  } else if (last->known > 0) {
    out.push_back({.kind = Kind::less, .version = after(last->version, last->known - 1)});
  }
  return true;
}

// All of one alternative: what stands between two "||".
std::optional<Comparators> parse_alternative(std::string_view text) {
  Comparators out;
  text = trim(text);
  const std::size_t hyphen = text.find(" - ");
  if (hyphen != std::string_view::npos) {
    const bool read = add_hyphen(out, trim(text.substr(0, hyphen)), trim(text.substr(hyphen + 3)));
    return read ? std::optional(std::move(out)) : std::nullopt;
  }
  while (!text.empty()) {
    const std::string_view sign = take_sign(text);
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!add_simple(out, sign, text.substr(0, end))) return std::nullopt;
    text = trim(text.substr(end));
  }
  return out;
}

std::optional<std::vector<Comparators>> parse_range(std::string_view range) {
  if (range.size() > longest) return std::nullopt;
  std::vector<Comparators> alternatives;
  for (std::size_t at = 0; at <= range.size();) {
    const std::size_t end = std::min(range.find("||", at), range.size());
    auto alternative = parse_alternative(range.substr(at, end - at));
    if (!alternative) return std::nullopt;
    alternatives.push_back(*std::move(alternative));
    at = end + 2;
  }
  // "1 ||" is "1 or anything".
  if (range.ends_with("||")) alternatives.emplace_back();
  // Beside "anything" the others say nothing: npm then forgets the prereleases that they name.
  if (std::ranges::any_of(alternatives, &Comparators::empty)) {
    return std::vector<Comparators>(1);
  }
  return alternatives;
}

std::optional<Version> parse_version(std::string_view text) {
  if (text.empty() || text.size() > longest || !is_digit(text.front())) return std::nullopt;
  auto partial = parse_partial(text);
  if (!partial || partial->known != 3) return std::nullopt;
  return std::move(partial->version);
}

bool holds(const Comparator& comparator, const Version& version) {
  const auto order = compare(version, comparator.version);
  switch (comparator.kind) {
    case Kind::less: return order < 0;
    case Kind::at_most: return order <= 0;
    case Kind::equal: return order == 0;
    case Kind::at_least: return order >= 0;
    case Kind::greater: return order > 0;
  }
  return false;
}

bool all_hold(const Comparators& comparators, const Version& version) {
  const bool in = std::ranges::all_of(
      comparators, [&](const Comparator& comparator) { return holds(comparator, version); });
  if (!in || version.prerelease.empty()) return in;
  return std::ranges::any_of(comparators, [&](const Comparator& comparator) {
    return !comparator.version.prerelease.empty() && comparator.version.numbers == version.numbers;
  });
}

}  // namespace

bool is_semver_range(std::string_view range) { return parse_range(range).has_value(); }

bool is_semver_version(std::string_view version) { return parse_version(version).has_value(); }

bool in_semver_range(std::string_view range, std::string_view version) {
  const auto alternatives = parse_range(range);
  const auto wanted = parse_version(version);
  if (!alternatives || !wanted) return false;
  return std::ranges::any_of(*alternatives, [&](const Comparators& comparators) {
    return all_hold(comparators, *wanted);
  });
}

}  // namespace capgate::clients
