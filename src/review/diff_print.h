// What `capgate diff` found, in each of its formats. All of them are byte-stable: the same two
// inputs give the same text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/render.h"
#include "review/diff_shown.h"
#include "review/finding.h"

namespace capgate::review {

// For a terminal: what widened first, in words and as capabilities, with places and tools.
[[nodiscard]] std::string diff_text(std::span<const ShownServer> servers, Colour colour);

struct DiffFacts {
  std::vector<std::string> unbound;  // variables that were compared by their names
  std::vector<std::string> notes;
};

// For programs; schemaVersion 1.
[[nodiscard]] std::string diff_json(std::span<const ShownServer> servers, const DiffFacts& facts);

// The comment of a pull request. Its first line is markdown_marker, by which a program finds the
// comment again; its last section is markdown_advice, of which several comments need but one.
inline constexpr std::string_view markdown_marker = "<!-- capgate diff -->";
inline constexpr std::string_view markdown_advice = "### What to do";
[[nodiscard]] std::string diff_markdown(std::span<const ShownServer> servers,
                                        const DiffFacts& facts);

// For SARIF: what widened is an error, what moved a note.
[[nodiscard]] std::span<const Rule> diff_rules();
[[nodiscard]] std::vector<Finding> diff_findings(std::span<const ShownServer> servers);

}  // namespace capgate::review
