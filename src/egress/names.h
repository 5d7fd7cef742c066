// The synthetic addresses of allowed names, in both directions.
//
//   NameBook book;
//   const Synthetic entry = book.address_of("api.github.com");  // 198.18.0.1 and 2001:2::1
//   book.name_of(entry.ipv4)  -> "api.github.com"
//
// One number per name gives both addresses. The same name keeps its addresses for as long as the
// book remembers it. It remembers a fixed number of names (wildcard rules allow endless ones) and
// forgets the one that was longest unused; numbers go round the whole range before one is used
// again, so an address that a program kept leads to nothing rather than to another name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace capgate::egress {

// 198.18.0.0/15 and 2001:2::/48: set aside for such uses, never routed.
struct Synthetic {
  std::array<std::uint8_t, 4> ipv4{};
  std::array<std::uint8_t, 16> ipv6{};
};

class NameBook {
 public:
  explicit NameBook(std::size_t most_names = 4096) : most_names_(most_names) {}

  // For a canonical name (lower case, no final dot) that the policy allows.
  [[nodiscard]] Synthetic address_of(std::string_view name);

  // The name behind a synthetic address; empty if it has none (any more).
  [[nodiscard]] std::string_view name_of(const std::array<std::uint8_t, 4>& address);
  [[nodiscard]] std::string_view name_of(const std::array<std::uint8_t, 16>& address);

  [[nodiscard]] std::size_t size() const { return by_number_.size(); }

 private:
  struct Entry {
    std::string name;
    std::uint32_t number = 0;
  };
  using Entries = std::list<Entry>;  // the longest unused last

  [[nodiscard]] std::string_view use(std::uint32_t number);

  std::size_t most_names_;
  std::uint32_t last_number_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_name_;  // keys are the entries' names
  std::unordered_map<std::uint32_t, Entries::iterator> by_number_;
};

}  // namespace capgate::egress
