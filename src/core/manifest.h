// A manifest: the server's name, its tools, and what each of them may do.
//
//   {"name": "server-github", "version": "0.6.2",
//    "tools": [{"name": "search_code", "capabilities": ["fs:read:/workspace/**"]}]}
//
// parse_manifest reports every mistake of a manifest in one go. What it returns is checked: each
// capability is a value, may be granted, and knows its place in the source and the tool it is for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/capability.h"
#include "core/grammar.h"
#include "text/document.h"

namespace capgate::core {

inline constexpr std::string_view current_grammar = "0.1";
inline constexpr std::string_view earlier_grammar = "0.0";

struct Tool {
  std::string name;
  Span where;
};

// One capability as declared.
struct Declared {
  static constexpr std::uint32_t whole_server = UINT32_MAX;

  Capability capability;
  Span where;                         // the string in the source
  std::uint32_t tool = whole_server;  // index into Manifest::tools, or serverCapabilities
};

struct Manifest {
  std::string name;
  std::string version;
  std::string grammar = std::string(current_grammar);
  std::string hash;   // "sha256:..." over the RFC 8785 form
  std::string home;   // the caller's home directory (--set HOME), or empty
  bool seal = false;  // every env:inject is to be sealed (core/seal.h)
  std::vector<Tool> tools;
  std::vector<Declared> declared;  // serverCapabilities first, then the tools in order
  std::vector<std::string> notes;  // keys that are not known, and so on
  std::vector<std::string> used_variables;

  [[nodiscard]] std::optional<std::uint32_t> find_tool(std::string_view tool) const;
  // "serverCapabilities" or the tool's name.
  [[nodiscard]] std::string_view owner(const Declared& declared) const;
};

[[nodiscard]] Checked<Manifest> parse_manifest(const text::Document& document,
                                               const Bindings& bindings);

// For who does not know the values yet: capabilities that use variables are left out and stand in
// `used_variables` only. To show what a manifest asks for, never to make a policy of it.
[[nodiscard]] Checked<Manifest> outline_manifest(const text::Document& document);

}  // namespace capgate::core
