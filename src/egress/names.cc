#include "egress/names.h"

namespace capgate::egress {
namespace {

constexpr std::uint32_t ipv4_base = 0x1c120000;  // 28.18.0.0
constexpr std::array<std::uint8_t, 12> ipv6_base = {0x2d, 0x00, 0x00, 0x02};

void write_number(std::uint32_t value, std::uint8_t* out) {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

std::uint32_t read_number(const std::uint8_t* in) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value = value << 8U | in[i];
  return value;
}

Synthetic addresses(std::uint32_t number) {
  Synthetic out;
  write_number(ipv4_base + number, out.ipv4.data());
  std::ranges::copy(ipv6_base, out.ipv6.begin());
  write_number(number, out.ipv6.data() + ipv6_base.size());
  return out;
}

}  // namespace

Synthetic NameBook::address_of(std::string_view name) {
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    use(known->second);
    return addresses(known->second->number);
  }
  if (entries_.size() >= most_names_) forget_longest_unused();
  const std::uint32_t number = next_number();
  entries_.push_front({.name = std::string(name), .number = number});
  by_name_.emplace(entries_.front().name, entries_.begin());
  by_number_.emplace(number, entries_.begin());
  return addresses(number);
}

std::string_view NameBook::name_of(const std::array<std::uint8_t, 4>& address) {
  // An address below the range wraps round to a number that no name has.
  return use_number(read_number(address.data()) - ipv4_base);
}

std::string_view NameBook::name_of(const std::array<std::uint8_t, 16>& address) {
  if (!std::equal(ipv6_base.begin(), ipv6_base.end(), address.begin())) return {};
  return use_number(read_number(address.data() + ipv6_base.size()));
}

std::string_view NameBook::use_number(std::uint32_t number) {
  const auto known = by_number_.find(number);
  if (known == by_number_.end()) return {};
  use(known->second);
  return known->second->name;
}

void NameBook::use(Entries::iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }

void NameBook::forget_longest_unused() {
  const Entry& last = entries_.back();
  by_name_.erase(last.name);
  by_number_.erase(last.number);
  entries_.pop_back();
}

// Called with room for one more name, so a number is free.
std::uint32_t NameBook::next_number() {
  do {
    last_number_ = last_number_ % most_numbers + 1;
  } while (by_number_.contains(last_number_));
  return last_number_;
}

}  // namespace capgate::egress
