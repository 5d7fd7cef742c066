// An artifact of `compile`, as JSON, taken apart: its words one by one, so that two artifacts can
// be compared. Pure.
//
//   {"argv": ["--ro-bind", "/srv", "/srv", ...]}   -> {"argv", "--ro-bind /srv /srv", grants}
//   {"egress": [{"host": "a.test", ...}]}          -> {"egress", "{\"host\":\"a.test\",...}",
//   grants}
//
// Nothing is left out but `provenance` and places in a manifest: a key that is not known is a part,
// too, and so is a key that is there with nothing in it. Where a part stands is a list of names and
// never one text: a key called "file a" is not the file a.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "review/artifact_words.h"
#include "text/document.h"

namespace capgate::review {

// Why a part of an artifact that was just made is there.
struct PartCause {
  std::string capability;  // empty: none alone
  std::string place;       // "github.json:12:7 (search)"
  std::string reason;      // "base system, read-only"
};

// Where a part stands: {"argv"}, {"file", "squid.conf", "0", "contents"}, {"plan", "mounts"}.
using PartPath = std::vector<std::string>;

struct Part {
  PartPath path;
  std::string section;   // the path for people: "argv", "file squid.conf"
  std::string words;     // for people
  std::string identity;  // of the same path no two different parts have the same
  Tendency tendency = Tendency::unknown;
  std::string mount = {};     // the path inside where it mounts something, or empty
  std::string host = {};      // that a rule of the network is for, or empty
  bool may_hide = false;      // a grant that may keep something else out of sight
  bool is_statement = false;  // what the artifact says of itself; true only of one just made
  PartCause cause = {};       // of none that was read from a file
};

// Which words of argv are one option with its values.
using Groups = std::set<std::vector<std::string>>;

// Where an option is neither in a group nor known, nothing that follows it in argv is judged.
[[nodiscard]] std::vector<Part> parts_of(const text::Document& artifact, const Groups& groups);

[[nodiscard]] bool is_artifact(const text::Document& document);

// provenance.KEY where it is a text, else empty.
[[nodiscard]] std::string provenance_of(const text::Document& artifact, std::string_view key);

// The options of the provenance, each "NAME VALUE".
[[nodiscard]] std::vector<std::string> options_of(const text::Document& artifact);

// The words of one option for people; no two lists of words read the same.
[[nodiscard]] std::string shown_words(std::span<const std::string> words);

// The path of the lines of a file, which a name stands for once.
[[nodiscard]] PartPath lines_path(std::string_view file);

}  // namespace capgate::review
