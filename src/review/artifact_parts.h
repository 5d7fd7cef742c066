// An artifact of `compile`, as JSON, taken apart: its words one by one, so that two artifacts can
// be compared. Pure.
//
//   {"argv": ["--ro-bind", "/srv", "/srv", ...]}   -> {"argv", "--ro-bind /srv /srv", grants}
//   {"egress": [{"host": "a.test", ...}]}          -> {"egress", "{\"host\":\"a.test\",...}",
//   grants}
//
// Nothing is left out but `provenance` and places in a manifest: a key that is not known is a part,
// too.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/document.h"

namespace capgate::review {

// What a part does to the server, as far as its words say it.
enum class Tendency : unsigned char {
  grants,     // with it the server may do more
  restrains,  // with it the server may do less
  unknown,
  words,  // it is for people and changes nothing
};

// Why a part of an artifact that was just made is there.
struct PartCause {
  std::string capability;  // empty: none alone
  std::string place;       // "github.json:12:7 (search)"
  std::string reason;      // "base system, read-only"
};

struct Part {
  std::string section;  // "argv", "file squid.conf", "egress"
  std::string words;
  Tendency tendency = Tendency::unknown;
  std::string mount;  // the path inside where it mounts something of the host, or empty
  PartCause cause;    // of none that was read from a file
};

// Which words of argv are one option with its values, joined by '\0'.
using Groups = std::set<std::string, std::less<>>;

// Where no group is known, an option ends where the next word begins with '-'.
[[nodiscard]] std::vector<Part> parts_of(const text::Document& artifact, const Groups& groups);

// The words of one part of argv, so that no two lists of words read the same.
[[nodiscard]] std::string shown_words(std::span<const std::string_view> words);

[[nodiscard]] bool is_artifact(const text::Document& document);

// provenance.KEY where it is a text, else empty.
[[nodiscard]] std::string provenance_of(const text::Document& artifact, std::string_view key);

// The options of the provenance, each "NAME VALUE".
[[nodiscard]] std::vector<std::string> options_of(const text::Document& artifact);

}  // namespace capgate::review
