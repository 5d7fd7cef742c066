// What a document says, whatever its spelling, with the changes that an edit is meant to make: an
// edited text must say exactly that.
//
//   Meaning meant;
//   meant.set(command, "npx");
//   meant.of(document) == Meaning().of(edited)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/document.h"

namespace capgate::clients {

class Meaning {
 public:
  void set(text::Value value, std::string_view word);
  void set_list(text::Value list, std::span<const std::string> words);
  // The member whose value this is goes.
  void drop(text::Value value);
  // Another member, with a list, comes after the one whose value this is.
  void add_list_after(text::Value value, std::string_view key, std::span<const std::string> words);

  [[nodiscard]] std::string of(const text::Document& document) const;

 private:
  using Changes = std::unordered_map<std::uint32_t, std::string>;

  void write(text::Value value, std::string& out) const;

  Changes instead_;
  Changes after_;
};

}  // namespace capgate::clients
