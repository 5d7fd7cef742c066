// capgate-store for the commands that keep or take back a value themselves: it goes through the
// store's standard input and output, never through its words.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "sys/fd.h"

namespace capgate::cli {

struct SecretPlace {
  std::string server;
  std::string name;
};

// Everything is said when it fails: by capgate-store itself on stderr, or in `output`.
class SecretStore {
 public:
  [[nodiscard]] static std::expected<SecretStore, int> open(Output& output);

  // What opens the store, as in --key; none: there is no store yet.
  [[nodiscard]] std::expected<std::optional<std::string>, int> key(Output& output) const;

  // `key` makes the store if there is none.
  [[nodiscard]] std::expected<void, int> set(const SecretPlace& place, std::string_view value,
                                             const std::optional<std::string>& key,
                                             Output& output) const;
  [[nodiscard]] std::expected<std::string, int> get(const SecretPlace& place, Output& output) const;

 private:
  explicit SecretStore(sys::Fd program) : program_(std::move(program)) {}

  [[nodiscard]] std::expected<std::string, int> call(std::vector<std::string> words,
                                                     std::string_view input, Output& output) const;

  sys::Fd program_;
};

}  // namespace capgate::cli
