// What a report says of a server, as a value; the page, the picture and the JSON print it.
//
//   const Report report = make_report({.manifest = manifest, .policy = policy, ...});
//   report_page(report)      one HTML file (review/report_page.h)
//   report_picture(report)   one SVG file (review/report_picture.h)
//   report_json(report)      the same as data
//
// Texts are what a reader sees: foreign bytes are escaped as for a terminal, so that no control and
// no bidirectional character is left. Whoever prints them into a markup escapes for that markup.
// Neither the time nor the machine is in it: the same input gives the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "core/diff.h"
#include "core/manifest.h"
#include "core/policy.h"
#include "lower/artifact.h"
#include "lower/targets.h"

namespace capgate::review {

// The doors of the box, in the order in which they are shown.
enum class Door : unsigned char { files, network, programs, secrets, sockets, limits, promises };
inline constexpr Door all_doors[] = {Door::files,   Door::network, Door::programs, Door::secrets,
                                     Door::sockets, Door::limits,  Door::promises};
[[nodiscard]] Door door_of(const core::Capability& capability);
[[nodiscard]] std::string_view door_title(Door door);
// What it means that nothing is granted there.
[[nodiscard]] std::string_view closed_words(Door door);
// "files", "network" ...: for JSON and for the anchors of the page.
[[nodiscard]] std::string_view door_name(Door door);

// How far the target holds a server to a line.
enum class Held : unsigned char { enforced, partly, not_enforced };
[[nodiscard]] std::string_view held_name(Held held);

struct Origin {
  std::string tool;         // empty: the whole server
  std::string place;        // "github.json:12:7"; empty if not known
  std::string capability;   // as it is declared there
  bool only_reads = false;  // what the grant allows beyond reading is asked for by others
};

// A grant in the two halves in which the picture shows it: "write", "/workspace/**".
struct Line {
  Door door = Door::files;
  std::string capability;
  std::string meaning;
  std::string verb;
  std::string scope;
  Held held = Held::enforced;
  std::string by;  // what enforces it, or why nothing does
  bool is_wider = false;
  std::string before;  // what it was, where it is the same thing with another extent
  std::vector<Origin> origins;
};

struct ToolLine {
  std::string capability;
  std::string meaning;
  Door door = Door::files;
  bool is_wider = false;  // since the manifest that it is compared with
};

struct ToolRow {
  std::string name;  // empty: what the whole server may do
  std::string place;
  bool is_new = false;
  std::vector<ToolLine> lines;
};

struct Change {
  core::GrantChange::Kind kind = core::GrantChange::Kind::widened;
  std::string tool;  // empty: of the whole server
  std::string capability;
  std::string meaning;
  std::string before;
  bool is_gone = false;  // a bound that does not hold any more: the capability is the old one
};
[[nodiscard]] std::string_view change_name(core::GrantChange::Kind kind);

// A piece of a sentence; code is what a manifest says, shown as such.
struct Piece {
  std::string text;
  bool is_code = false;
};
using Sentence = std::vector<Piece>;
[[nodiscard]] std::string plain(const Sentence& sentence);

// A limit as it holds, declared or not.
struct Limit {
  std::string name;
  std::string value;
  bool is_default = true;
};

struct Report {
  std::string name;
  std::string version;
  std::string file;
  std::string manifest_hash;
  std::string policy_hash;
  std::string target;
  std::string target_summary;
  bool is_partial_target = false;
  std::string tool;     // --tool: the only one that is shown
  std::string against;  // empty: not compared
  bool is_sealed = false;
  Sentence verdict;
  std::vector<Line> lines;
  std::vector<ToolRow> tools;
  std::vector<Limit> limits;
  std::vector<Door> unguarded;  // doors that a partial target leaves open, whatever is granted
  std::vector<Change> changes;
  std::vector<std::string> removed_tools;
  std::vector<std::string> notes;
  std::vector<std::string> problems;  // why the target refuses, beyond single lines
  std::vector<std::string> not_stopped;

  [[nodiscard]] std::size_t wider_lines() const;
  [[nodiscard]] std::size_t open_lines() const;  // not enforced, or in part only
  [[nodiscard]] bool is_guarded(Door door) const;
};

struct ReportInput {
  const core::Manifest& manifest;
  const core::Policy& policy;
  const lower::Options& options;
  const Source& source;
  const lower::Target& target;
  const core::ManifestDiff* change = nullptr;  // null: not compared
  std::string_view against = {};               // the name of what it is compared with
};

[[nodiscard]] Report make_report(const ReportInput& input);
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace capgate::review
