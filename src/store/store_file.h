// secrets.json as a value: what docs/secret-store.md describes, read strictly. Nothing is decrypted
// here, and nothing in it is secret but for the names of the secrets.
//
//   const StoreFile file = TRY(read_store(text));
//   write_store(file) == text                     // there is one spelling of a file
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/crypto.h"
#include "store/problem.h"

namespace capgate::store {

inline constexpr std::size_t largest_store = std::size_t{4} << 20;
inline constexpr std::size_t largest_value = 32768;
inline constexpr std::size_t longest_name = 256;
inline constexpr std::size_t longest_server = 1024;
inline constexpr std::string_view any_server = "*";
// scrypt's N: what a new passphrase gets, and what is accepted. 128 MiB.
inline constexpr std::uint64_t usual_cost = 1U << 17;
inline constexpr std::uint64_t least_cost = 1U << 15;
inline constexpr std::uint64_t largest_cost = 1U << 18;

// Where the key comes from that the data key is wrapped with. The store remembers it; never the
// key.
struct KeySource {
  enum class Kind : unsigned char { passphrase, file, keyring };
  Kind kind = Kind::passphrase;
  std::string reference;  // the absolute path, or the name of the key

  friend bool operator==(const KeySource&, const KeySource&) = default;
};

// passphrase, file:/absolute/path, keyring:NAME
[[nodiscard]] std::optional<KeySource> parse_key_source(std::string_view text);
[[nodiscard]] std::string to_text(const KeySource& source);

struct WrappedKey {
  std::string id;  // 16 digits, random: another with each data key
  KeySource source;
  std::uint64_t cost = 0;  // of a passphrase; 0 for the others, which are not stretched
  std::string salt;
  Sealed sealed;

  friend bool operator==(const WrappedKey&, const WrappedKey&) = default;
};

struct Entry {
  std::string server;
  std::string name;
  std::string created;  // 2026-11-15T12:00:00Z
  std::string changed;
  Sealed sealed;

  friend bool operator==(const Entry&, const Entry&) = default;
};

struct StoreFile {
  WrappedKey key;
  std::vector<Entry> entries;  // ordered by server, then name; no two the same
  Sealed whole;                // of nothing, bound to all that stands before it

  friend bool operator==(const StoreFile&, const StoreFile&) = default;
};

[[nodiscard]] Outcome<StoreFile> read_store(std::string text);
[[nodiscard]] std::string write_store(const StoreFile& file);

// What each sealed part is bound to: its purpose and every field beside it, each with its length
// before it, so that no two lists of fields are the same bytes.
[[nodiscard]] std::string bound_to(const WrappedKey& key);
[[nodiscard]] std::string bound_to(const WrappedKey& key, const Entry& entry);
[[nodiscard]] std::string bound_to(const StoreFile& file);

// Letters, digits and _ . - / : @, not a dash first: nothing that a shell or a URL splits.
[[nodiscard]] bool is_valid_name(std::string_view name);
[[nodiscard]] bool is_valid_server(std::string_view server);  // any text without control characters
[[nodiscard]] bool is_valid_time(std::string_view time);

}  // namespace capgate::store
