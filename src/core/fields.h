// The first step of reading a capability string: cutting it into fields, quotes and escapes undone.
//
//   TextStorage storage;
//   cut_fields("net:connect:[::1]:443?sni=any", storage)
//     -> kind "net", fields "connect" "[::1]" "443", refinements sni=any
//
// A field in quotes may hold any character; \" and \\ are its escapes. Square brackets at the start
// of a field keep the colons of an IPv6 address together.
#pragma once

#include <array>
#include <cstddef>
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace capgate::core {

// Owns the texts that differ from the source (quotes undone, variables put in).
using TextStorage = std::forward_list<std::string>;

// A piece of the string, and where it stood.
struct Field {
  std::string_view text;
  Span where;
  bool verbatim = true;  // `text` is the source itself, so positions inside it are exact

  // Where a part of the text stands: exact, or the whole field if the text was changed.
  [[nodiscard]] Span locate(Span inside) const;
};

struct Refinement {
  Field key;
  Field value;
};

struct Fields {
  static constexpr std::size_t most = 4;

  Field kind;
  Field rest;  // everything after the kind as written: assertions are free text
  std::array<Field, most> items;
  std::size_t count = 0;  // may exceed `most`: no kind has that many fields
  std::vector<Refinement> refinements;
};

// `text` has a ':'.
[[nodiscard]] Result<Fields> cut_fields(std::string_view text, TextStorage& storage);

// Undoes the quotes of `raw`, which stands at `offset`, if it has any.
[[nodiscard]] Result<Field> unquote(std::string_view raw, std::size_t offset, TextStorage& storage);

}  // namespace capgate::core
