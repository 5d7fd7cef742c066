// The synthetic addresses of allowed names, in both directions.
//
//   NameBook book;
//   const Synthetic entry = book.address_of("api.github.com");  // 28.18.0.1 and 2d00:2::1
//   book.name_of(entry.ipv4)  -> "api.github.com"
//
// One number per name gives both addresses. The same name keeps its addresses for as long as the
// book remembers it. It remembers a fixed number of names (wildcard rules allow endless ones) and
// forgets the one that was longest unused; numbers go round the whole range before one is used
// again, so an address that a program kept leads to nothing rather than to another name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace capgate::egress {

// 28.18.0.0/15 and 2d00:2::/48. No packet to them leaves a sandbox. Ranges that are set aside
// (198.18.0.0/15 and the like) will not do: servers that guard against requests to private networks
// look a name up themselves and take those for private (ADR 25).
struct Synthetic {
  std::array<std::uint8_t, 4> ipv4{};
  std::array<std::uint8_t, 16> ipv6{};
};

class NameBook {
 public:
  // All of 28.18.0.0/15 but its first and last address.
  static constexpr std::uint32_t most_numbers = (1U << 17U) - 2;

  // `before` is the number after which it begins: a broker that was started again must not give an
  // address of its predecessor to another name.
  explicit NameBook(std::size_t most_names = 4096, std::uint32_t before = 0)
      : most_names_(std::clamp(most_names, std::size_t{1}, std::size_t{most_numbers})),
        last_number_(before % most_numbers) {}
  // The maps point into the list, which a move keeps and a copy would not.
  NameBook(NameBook&&) = default;
  NameBook& operator=(NameBook&&) = default;
  NameBook(const NameBook&) = delete;
  NameBook& operator=(const NameBook&) = delete;
  ~NameBook() = default;

  // For a canonical name (lower case, no final dot) that the policy allows.
  [[nodiscard]] Synthetic address_of(std::string_view name);

  // The name behind a synthetic address; empty if it has none (any more). The text stays until the
  // next call of address_of.
  [[nodiscard]] std::string_view name_of(const std::array<std::uint8_t, 4>& address);
  [[nodiscard]] std::string_view name_of(const std::array<std::uint8_t, 16>& address);

  [[nodiscard]] std::size_t size() const { return by_number_.size(); }

 private:
  struct Entry {
    std::string name;
    std::uint32_t number = 0;
  };
  using Entries = std::list<Entry>;  // the longest unused last

  void use(Entries::iterator entry);
  [[nodiscard]] std::string_view use_number(std::uint32_t number);
  void forget_longest_unused();
  [[nodiscard]] std::uint32_t next_number();

  std::size_t most_names_;
  std::uint32_t last_number_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_name_;  // keys are the entries' names
  std::unordered_map<std::uint32_t, Entries::iterator> by_number_;
};

}  // namespace capgate::egress
