#include "seal/matcher.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"

namespace capgate::seal {
namespace {

// A longer window skips more at once, but fills the table, which makes it skip less often.
constexpr std::size_t longest_window = 32;

}  // namespace

std::size_t Matcher::hash_before(const char* end) {
  const auto byte = [&](int back) { return std::uint32_t{static_cast<unsigned char>(end[-back])}; };
  const std::uint32_t bytes = byte(3) | byte(2) << 8 | byte(1) << 16;
  return (bytes * 0x9E3779B1U) >> 20;
}

Matcher::Matcher(const Options& options)
    : memory_(memory_of(options), options.memory), shortest_searched_(options.shortest) {
  CAPGATE_ASSERT(options.shortest >= block);
  for (const std::string_view pattern : options.patterns) {
    if (pattern.size() < options.shortest) continue;
    shortest_ = std::min(shortest_, pattern.size());
    longest_ = std::max(longest_, pattern.size());
  }
  window_ = std::min(shortest_, longest_window);
  divide_memory(options);
  fill(options);
}

std::size_t Matcher::memory_of(const Options& options) {
  // An entry by index, and one in the order of the search.
  std::size_t size = sizeof(Tables) + 2 * options.patterns.size() * sizeof(Entry);
  for (const std::string_view pattern : options.patterns) size += pattern.size();
  return size;
}

void Matcher::divide_memory(const Options& options) {
  const std::size_t count = options.patterns.size();
  const auto searched = static_cast<std::size_t>(std::ranges::count_if(
      options.patterns,
      [&](std::string_view pattern) { return pattern.size() >= options.shortest; }));
  char* const memory = memory_.data();
  tables_ = std::construct_at(reinterpret_cast<Tables*>(memory));
  auto* entries = reinterpret_cast<Entry*>(memory + sizeof(Tables));
  std::uninitialized_value_construct_n(entries, count + searched);
  all_ = {entries, count};
  searched_ = {entries + count, searched};
  texts_ = memory + sizeof(Tables) + (count + searched) * sizeof(Entry);
}

void Matcher::fill(const Options& options) {
  if (shortest_ != SIZE_MAX) {
    tables_->shifts.fill(static_cast<std::uint8_t>(window_ - block + 1));
  }
  std::size_t offset = 0;
  std::size_t searched = 0;
  for (std::size_t index = 0; index < options.patterns.size(); ++index) {
    const std::string_view pattern = options.patterns[index];
    pattern.copy(texts_ + offset, pattern.size());
    Entry& entry = all_[index];
    entry = {.offset = static_cast<std::uint32_t>(offset),
             .size = static_cast<std::uint32_t>(pattern.size()),
             .index = static_cast<std::uint32_t>(index)};
    offset += pattern.size();
    if (pattern.size() < options.shortest) continue;

    tables_->begins[hash_before(pattern.data() + block)] = true;
    for (std::size_t end = block; end <= window_; ++end) {
      entry.hash = static_cast<std::uint32_t>(hash_before(pattern.data() + end));
      std::uint8_t& shift = tables_->shifts[entry.hash];
      shift = std::min(shift, static_cast<std::uint8_t>(window_ - end));
    }
    searched_[searched++] = entry;
  }
  std::ranges::sort(searched_, {},
                    [](const Entry& entry) { return std::pair(entry.hash, entry.index); });
}

std::string_view Matcher::text_of(const Entry& entry) const {
  return {texts_ + entry.offset, entry.size};
}

std::string_view Matcher::pattern(std::size_t index) const { return text_of(all_[index]); }

const Matcher::Entry* Matcher::longest_at(std::string_view rest, std::size_t hash) const {
  const Entry* longest = nullptr;
  for (const Entry& entry : std::ranges::equal_range(searched_, hash, {}, &Entry::hash)) {
    if ((longest == nullptr || entry.size > longest->size) && rest.starts_with(text_of(entry))) {
      longest = &entry;
    }
  }
  return longest;
}

std::optional<Matcher::Match> Matcher::find(std::string_view text, std::size_t from) const {
  if (text.size() < shortest_ || from > text.size() - shortest_) return std::nullopt;
  const auto& shifts = tables_->shifts;
  const std::size_t most = window_ - block + 1;
  std::size_t end = from + window_;
  while (end <= text.size()) {
    const std::size_t hash = hash_before(text.data() + end);
    const std::size_t shift = shifts[hash];
    // The usual case apart, by a number that does not depend on what was read: the processor goes
    // on with the next window before it knows.
    if (shift == most) {
      end += most;
      continue;
    }
    if (shift == 0) {
      const std::size_t at = end - window_;
      if (const Entry* entry = longest_at(text.substr(at), hash)) {
        return Match{.at = at, .size = entry->size, .pattern = entry->index};
      }
    }
    end += std::max<std::size_t>(shift, 1);
  }
  return std::nullopt;
}

std::size_t Matcher::tail(std::string_view text, std::size_t from) const {
  if (searched_.empty()) return text.size();
  const std::size_t reach = longest_ - 1;
  std::size_t at = text.size() > reach ? std::max(from, text.size() - reach) : from;
  for (; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.size() >= block && !tables_->begins[hash_before(rest.data() + block)]) continue;
    const bool is_prefix = std::ranges::any_of(searched_, [&](const Entry& entry) {
      return entry.size > rest.size() && texts_[entry.offset] == rest.front() &&
             text_of(entry).starts_with(rest);
    });
    if (is_prefix) return at;
  }
  return text.size();
}

}  // namespace capgate::seal
