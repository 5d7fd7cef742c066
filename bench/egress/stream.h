// What a soaked connection carries and how it ends, both derived from the seed and its number, so
// that the two ends of it need not tell each other, and each byte can be checked by its position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace capgate::bench {

constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

enum class Direction : std::uint64_t { up = 1, down = 2 };  // to the origin, and from it

// The bytes of one direction of one connection.
class Bytes {
 public:
  Bytes(std::uint64_t seed, std::uint64_t id, Direction direction)
      : key_(mix(mix(seed) ^ mix(id)) + static_cast<std::uint64_t>(direction)) {}

  void fill(std::uint64_t position, std::span<char> to) const {
    constexpr std::size_t word = sizeof(std::uint64_t);
    while (!to.empty()) {
      const std::uint64_t value = mix(key_ ^ mix(position / word));
      const std::size_t skipped = position % word;
      const std::size_t taken = std::min(word - skipped, to.size());
      std::memcpy(to.data(), reinterpret_cast<const char*>(&value) + skipped, taken);
      to = to.subspan(taken);
      position += taken;
    }
  }

 private:
  std::uint64_t key_;
};

enum class Ending : unsigned char {
  client_first,   // half-closes; only then the origin answers
  origin_first,   // half-closes; only then the client sends more than its number
  together,       // both send at once
  client_resets,  // in the midst of it
  client_leaves,
  origin_resets,
  origin_leaves,
  gives_up,  // the client, before it has a tunnel
};

constexpr bool is_whole(Ending ending) { return ending <= Ending::together; }

inline constexpr std::uint64_t number_bytes = 8;  // the first bytes up: which connection this is

// As it is sent. Its first byte begins neither TLS nor HTTP, which the broker would look into.
constexpr std::uint64_t number_of(std::uint64_t id) { return (id << 8) | 1; }

struct Plan {
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  Ending ending = Ending::together;
  std::uint64_t cut_at = 0;    // bytes that the end which leaves has moved by then
  bool reads_nothing = false;  // the end that leaves: what the other sent is then still on its way
};

// Sizes are even on a logarithmic scale: many small, some of megabytes.
constexpr std::uint64_t pick_size(std::uint64_t random) {
  const bool is_large = random % 50 == 0;
  const unsigned bits = static_cast<unsigned>((random >> 8) % 17) + (is_large ? 5 : 0);
  return (random >> 16) & ((std::uint64_t{1} << bits) - 1);
}

constexpr Plan plan_of(std::uint64_t seed, std::uint64_t id) {
  const auto random = [&](std::uint64_t which) { return mix(mix(seed + which) ^ id); };
  Plan plan{.up = number_bytes + pick_size(random(1)), .down = pick_size(random(2))};
  const std::uint64_t kind = random(3) % 16;  // ten of sixteen are whole
  plan.ending = kind < 10 ? static_cast<Ending>(kind % 3)
                          : static_cast<Ending>(std::min<std::uint64_t>(kind - 7, 7));
  plan.cut_at = random(4) % (plan.up + plan.down);
  plan.reads_nothing = random(5) % 2 == 0;
  return plan;
}

}  // namespace capgate::bench
