#include "clients/pep440.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace capgate::clients {
namespace {

constexpr std::size_t longest = 256;

// Kinds of prerelease in their order; a version without one comes after all of them.
enum class Pre : std::uint8_t { alpha, beta, candidate, none };

struct Version {
  std::uint64_t epoch = 0;
  std::vector<std::uint64_t> release;
  Pre pre = Pre::none;
  std::uint64_t pre_number = 0;
  std::optional<std::uint64_t> post;
  std::optional<std::uint64_t> dev;
  std::string local;

  [[nodiscard]] bool is_prerelease() const { return pre != Pre::none || dev.has_value(); }
};

// Reads a text from its front.
struct Reader {
  std::string_view rest;

  bool take(std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  }
  // Numbers may have leading zeros; more than 18 digits are no version of anything.
  std::optional<std::uint64_t> take_number() {
    std::size_t size = 0;
    while (size < rest.size() && is_digit(rest[size])) ++size;
    if (size == 0 || size > 18) return std::nullopt;
    std::uint64_t number = 0;
    for (const char c : rest.substr(0, size)) {
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    rest.remove_prefix(size);
    return number;
  }
  // One of the marks that may stand between two parts.
  void take_separator() {
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '_' || rest.front() == '.')) {
      rest.remove_prefix(1);
    }
  }
  // A word with a number that may be left out: "rc1", "-post", ".dev_2".
  std::optional<std::uint64_t> take_counted(std::string_view word) {
    Reader ahead = *this;
    ahead.take_separator();
    if (!ahead.take(word)) return std::nullopt;
    const Reader before_separator = ahead;
    ahead.take_separator();
    const auto number = ahead.take_number();
    *this = number ? ahead : before_separator;
    return number.value_or(0);
  }
};

bool read_release(Reader& reader, Version& version) {
  auto number = reader.take_number();
  if (number && reader.take("!")) {
    version.epoch = *number;
    number = reader.take_number();
  }
  if (!number) return false;
  version.release.push_back(*number);
  while (reader.rest.size() > 1 && reader.rest[0] == '.' && is_digit(reader.rest[1])) {
    reader.take(".");
    number = reader.take_number();
    if (!number) return false;
    version.release.push_back(*number);
  }
  return true;
}

void read_pre(Reader& reader, Version& version) {
  // Longer words first: "alpha" is not "a" and then "lpha".
  constexpr std::pair<std::string_view, Pre> words[] = {
      {"alpha", Pre::alpha},   {"beta", Pre::beta},    {"preview", Pre::candidate},
      {"pre", Pre::candidate}, {"rc", Pre::candidate}, {"c", Pre::candidate},
      {"a", Pre::alpha},       {"b", Pre::beta}};
  for (const auto& [word, pre] : words) {
    const auto number = reader.take_counted(word);
    if (!number) continue;
    version.pre = pre;
    version.pre_number = *number;
    return;
  }
}

void read_post(Reader& reader, Version& version) {
  if (reader.rest.size() > 1 && reader.rest[0] == '-' && is_digit(reader.rest[1])) {
    reader.take("-");
    version.post = reader.take_number();
    return;
  }
  for (const std::string_view word : {"post", "rev", "r"}) {
    version.post = reader.take_counted(word);
    if (version.post) return;
  }
}

bool read_local(Reader& reader, Version& version) {
  if (!reader.take("+")) return true;
  version.local = reader.rest;
  std::ranges::replace_if(version.local, [](char c) { return c == '-' || c == '_'; }, '.');
  reader.rest = {};
  return std::ranges::all_of(split(version.local, '.'), [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, is_alnum);
  });
}

std::optional<Version> parse_version(std::string_view text) {
  const std::string lower = to_lower(trim(text));
  if (lower.empty() || lower.size() > longest) return std::nullopt;
  Reader reader{lower};
  reader.take("v");
  Version version;
  if (!read_release(reader, version)) return std::nullopt;
  read_pre(reader, version);
  read_post(reader, version);
  version.dev = reader.take_counted("dev");
  if (!read_local(reader, version) || !reader.rest.empty()) return std::nullopt;
  return version;
}

std::uint64_t number_at(const std::vector<std::uint64_t>& release, std::size_t place) {
  return place < release.size() ? release[place] : 0;
}

std::strong_ordering compare_releases(const Version& a, const Version& b) {
  if (const auto order = a.epoch <=> b.epoch; order != 0) return order;
  for (std::size_t i = 0; i < std::max(a.release.size(), b.release.size()); ++i) {
    const auto order = number_at(a.release, i) <=> number_at(b.release, i);
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

// 1.0.dev1 comes before 1.0a1, although it has no word of a prerelease.
int pre_rank(const Version& version) {
  if (version.pre == Pre::none && !version.post && version.dev) return -1;
  return static_cast<int>(version.pre);
}

std::strong_ordering compare_local_parts(std::string_view a, std::string_view b) {
  const bool a_is_number = std::ranges::all_of(a, is_digit);
  const bool b_is_number = std::ranges::all_of(b, is_digit);
  if (a_is_number != b_is_number) {
    return a_is_number ? std::strong_ordering::greater : std::strong_ordering::less;
  }
  if (!a_is_number) return a.compare(b) <=> 0;
  const auto significant = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('0'), text.size()));
  };
  const std::string_view x = significant(a);
  const std::string_view y = significant(b);
  return x.size() == y.size() ? x.compare(y) <=> 0 : x.size() <=> y.size();
}

std::strong_ordering compare_locals(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return !a.empty() <=> !b.empty();
  const auto x = split(a, '.');
  const auto y = split(b, '.');
  return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end(),
                                                compare_local_parts);
}

std::strong_ordering compare_public(const Version& a, const Version& b) {
  if (const auto order = compare_releases(a, b); order != 0) return order;
  if (const auto order = pre_rank(a) <=> pre_rank(b); order != 0) return order;
  if (const auto order = a.pre_number <=> b.pre_number; order != 0) return order;
  if (const auto order = a.post <=> b.post; order != 0) return order;
  if (a.dev.has_value() != b.dev.has_value()) {
    return a.dev ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  return a.dev.value_or(0) <=> b.dev.value_or(0);
}

std::strong_ordering compare(const Version& a, const Version& b) {
  if (const auto order = compare_public(a, b); order != 0) return order;
  return compare_locals(a.local, b.local);
}

struct Clause {
  std::string_view sign;
  std::string_view text;  // of the version, without ".*"
  Version version;
  bool is_prefix = false;
};

std::optional<Clause> parse_clause(std::string_view text) {
  constexpr std::string_view signs[] = {"===", "~=", "==", "!=", "<=", ">=", "<", ">"};
  text = trim(text);
  const auto sign = std::ranges::find_if(
      signs, [&](std::string_view candidate) { return text.starts_with(candidate); });
  if (sign == std::end(signs)) return std::nullopt;
  Clause clause{.sign = *sign, .text = trim(text.substr(sign->size()))};
  if (*sign == "===") {
    if (clause.text.empty() || std::ranges::any_of(clause.text, is_space)) return std::nullopt;
    return clause;
  }
  if (clause.text.ends_with(".*") && (*sign == "==" || *sign == "!=")) {
    clause.is_prefix = true;
    clause.text.remove_suffix(2);
  }
  auto version = parse_version(clause.text);
  if (!version) return std::nullopt;
  clause.version = *std::move(version);
  const bool local_allowed = (*sign == "==" || *sign == "!=") && !clause.is_prefix;
  if (!clause.version.local.empty() && !local_allowed) return std::nullopt;
  if (clause.is_prefix && clause.version.dev) return std::nullopt;
  if (*sign == "~=" && clause.version.release.size() < 2) return std::nullopt;
  return clause;
}

std::optional<std::vector<Clause>> parse_range(std::string_view range) {
  if (range.size() > longest) return std::nullopt;
  std::vector<Clause> clauses;
  for (const std::string_view part : EachPart(range, ',')) {
    if (trim(part).empty()) continue;
    auto clause = parse_clause(part);
    if (!clause) return std::nullopt;
    clauses.push_back(*std::move(clause));
  }
  return clauses;
}

// Does `version` begin with all that `prefix` says? ==1.2.* is 1.2, 1.2.7 and 1.2rc1.
bool begins_with(const Version& version, const Version& prefix) {
  if (version.epoch != prefix.epoch) return false;
  for (std::size_t i = 0; i < prefix.release.size(); ++i) {
    if (number_at(version.release, i) != prefix.release[i]) return false;
  }
  if (prefix.pre == Pre::none && !prefix.post) return true;
  Version whole = prefix;
  whole.dev.reset();
  Version start = version;
  start.dev.reset();
  start.local.clear();
  if (!whole.post) start.post.reset();
  return compare_public(start, whole) == 0;
}

bool is_equal(const Clause& clause, const Version& version) {
  if (clause.is_prefix) return begins_with(version, clause.version);
  // A version with a local part is the public one for a range that names none.
  return clause.version.local.empty() ? compare_public(version, clause.version) == 0
                                      : compare(version, clause.version) == 0;
}

bool is_less(const Version& limit, const Version& version) {
  if (compare(version, limit) >= 0) return false;
  return limit.is_prerelease() || !version.is_prerelease() || compare_releases(version, limit) != 0;
}

bool is_greater(const Version& limit, const Version& version) {
  if (compare(version, limit) <= 0) return false;
  if (!limit.post && version.post && compare_releases(version, limit) == 0) return false;
  return version.local.empty() || compare_releases(version, limit) != 0;
}

bool is_compatible(const Version& least, const Version& version) {
  if (compare_public(version, least) < 0) return false;
  Version prefix{.epoch = least.epoch, .release = least.release};
  prefix.release.pop_back();
  return begins_with(version, prefix);
}

bool holds(const Clause& clause, const Version& version, std::string_view text) {
  if (clause.sign == "===") return to_lower(clause.text) == to_lower(text);
  if (clause.sign == "==") return is_equal(clause, version);
  if (clause.sign == "!=") return !is_equal(clause, version);
  if (clause.sign == "<=") return compare_public(version, clause.version) <= 0;
  if (clause.sign == ">=") return compare_public(version, clause.version) >= 0;
  if (clause.sign == "<") return is_less(clause.version, version);
  if (clause.sign == ">") return is_greater(clause.version, version);
  return is_compatible(clause.version, version);
}

// A limit that is a prerelease itself (<2.0rc1) asks for none.
bool names_prerelease(const Clause& clause) {
  if (clause.sign == "!=" || clause.sign == "<" || clause.sign == ">") return false;
  if (clause.sign != "===") return clause.version.is_prerelease();
  const auto version = parse_version(clause.text);
  return version && version->is_prerelease();
}

}  // namespace

bool is_pep440_range(std::string_view range) { return parse_range(range).has_value(); }

bool is_pep440_version(std::string_view version) { return parse_version(version).has_value(); }

bool in_pep440_range(std::string_view range, std::string_view version) {
  const auto clauses = parse_range(range);
  const auto wanted = parse_version(version);
  if (!clauses || !wanted) return false;
  if (wanted->is_prerelease() && std::ranges::none_of(*clauses, names_prerelease)) return false;
  return std::ranges::all_of(
      *clauses, [&](const Clause& clause) { return holds(clause, *wanted, trim(version)); });
}

}  // namespace capgate::clients
