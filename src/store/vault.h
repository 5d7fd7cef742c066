// An opened store: its values can be read and changed. All of it in memory; place.h has the file.
//
//   Vault vault = TRY(Vault::open(TRY(read_store(text)), material));
//   TRY(vault.set({.server = "github", .name = "TOKEN"}, value, "2026-11-15T12:00:00Z"));
//   const std::string text = TRY(vault.text());
//
// `material` is what the key source gives: a passphrase, the bytes of a key file or of a key of the
// kernel. It wraps a random data key, which seals the values.
#pragma once

#include <string>
#include <string_view>

#include "secrets/secret.h"
#include "store/store_file.h"

namespace capgate::store {

struct Place {
  std::string server;  // "*": any
  std::string name;
};

class Vault {
 public:
  [[nodiscard]] static Outcome<Vault> make(const KeySource& source,
                                           const secrets::Secret& material);
  // Refused: another key, and a file with any other bit than it was written with.
  [[nodiscard]] static Outcome<Vault> open(StoreFile file, const secrets::Secret& material);

  // The server's own entry, else the one for any server.
  [[nodiscard]] Outcome<secrets::Secret> get(const Place& place) const;
  [[nodiscard]] Outcome<void> set(const Place& place, std::string_view value, std::string_view now);
  [[nodiscard]] Outcome<void> remove(const Place& place);  // exactly this one
  // A new data key for everything, wrapped with this key.
  [[nodiscard]] Outcome<void> rotate(const KeySource& source, const secrets::Secret& material);

  // The file as it is to be written.
  [[nodiscard]] Outcome<std::string> text();
  [[nodiscard]] const StoreFile& file() const { return file_; }

 private:
  Vault() = default;
  [[nodiscard]] Outcome<secrets::Secret> open_entry(const Entry& entry) const;

  StoreFile file_;
  secrets::Secret data_key_;
};

// The entry that `get` gives, if there is one.
[[nodiscard]] const Entry* find_entry(const StoreFile& file, const Place& place);
[[nodiscard]] std::unexpected<Problem> no_entry(const Place& place);

}  // namespace capgate::store
