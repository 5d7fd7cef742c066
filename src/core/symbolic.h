// Variables that nobody bound, for those who compare or explain a manifest and never run it: each
// ${NAME} is replaced by a stand-in that fits where it stands, and is printed as ${NAME} again.
//
//   Symbols symbols;
//   parse_manifest(document, bindings, symbols)   fs:read:${REPO}/** is read as a path of its own
//   symbols.show(print(capability))               -> "fs:read:${REPO}/**"
//
// A stand-in is equal to itself alone: two manifests that are read with the same Symbols can be
// compared, and no manifest can spell one (that is a mistake). Ports and limits have no stand-in:
// there a variable must be bound.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/capability.h"
#include "core/grammar.h"
#include "core/manifest.h"

namespace capgate::core {

class Symbols {
 public:
  // Like parse_capability, with stand-ins for what is not bound.
  [[nodiscard]] Result<std::vector<Capability>> parse(std::string_view text,
                                                      const Bindings& bindings);

  // What stands for a directory that is not known, such as HOME.
  [[nodiscard]] std::string directory(std::string_view name);

  // Every stand-in in the text as ${NAME}.
  [[nodiscard]] std::string show(std::string_view text) const;

  // Names of which a stand-in was needed, in the order in which they were met.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // Those of them that a manifest uses, sorted. HOME has a stand-in in any case: it is what
  // credential files are measured by.
  [[nodiscard]] std::vector<std::string> names_among(std::span<const std::string> used) const;

 private:
  enum class Form : unsigned char { directory, word, zone, name };
  [[nodiscard]] std::string stand_in(std::string_view name, Form form);

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> indices_;  // of names_
};

// True if something in the text stands for a variable that nobody bound. Any text at all.
[[nodiscard]] bool has_stand_in(std::string_view text);

// A variable may be bound to just what a wider grant excludes, so what one stands in is covered by
// its own text alone. These say where that is.
//
// A private host, or one whose last label is not known: no wildcard reaches it.
[[nodiscard]] bool may_be_private(const HostPattern& host);
// A path of which something but HOME is not known may be a credential or a held name, and `above`,
// which it lies below, may be /tmp: that does not open it (core/sensitive.h).
[[nodiscard]] bool may_be_held_back(std::string_view path, std::string_view above,
                                    std::string_view home);
// The same of entries ("/d/*.md"), whose own directory need not open them either.
[[nodiscard]] bool may_be_held_back(const PathPattern& entries, std::string_view home);

// Like parse_manifest of core/manifest.h. To compare and to explain, never to make a sandbox of it.
[[nodiscard]] Checked<Manifest> parse_manifest(const text::Document& document,
                                               const Bindings& bindings, Symbols& symbols);

}  // namespace capgate::core
