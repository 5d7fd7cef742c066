// A change of a server's manifest in words, ready for any format: everything that the formats of
// `capgate diff` say is decided here, none of it is escaped yet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "core/diff.h"
#include "core/manifest.h"
#include "core/symbolic.h"

namespace capgate::review {

// One side of a comparison.
struct DiffSide {
  const core::Manifest* manifest = nullptr;  // null: this side has no such server
  const Source* source = nullptr;            // null: the places are not known (a lock)
  std::string file;                          // where a reader finds it, without a revision
};

// One server on both sides. Refers to what the caller keeps.
struct ServerDiff {
  std::string name;
  DiffSide before;
  DiffSide after;
  core::ManifestDiff diff;
  const core::Symbols* symbols = nullptr;  // null: every variable was bound
};

struct ShownPlace {
  std::string name;  // as the source is called: "main:github.json"
  std::string file;
  Source::Position position;
  Source::Position end;
  std::string tool;  // empty: serverCapabilities
};

struct ShownChange {
  core::GrantChange::Kind kind = core::GrantChange::Kind::widened;
  bool is_grant = true;    // else a limit or an assertion
  std::string sentence;    // "may now connect to evil.example on port 443"
  std::string capability;  // of the subject
  std::string before;      // as capabilities; empty: nothing
  std::string after;
  std::vector<ShownPlace> places;
  core::GrantChange::Side side = core::GrantChange::Side::after;
};

struct ShownTool {
  std::string name;  // empty: every tool (serverCapabilities)
  core::ToolChange::Presence presence = core::ToolChange::Presence::both;
  std::vector<ShownChange> changes;
};

// What is no capability, but a part of something that was made of them (an artifact) or stands
// beside them (the command of an entry).
struct ShownPart {
  enum class Kind : unsigned char {
    widened,
    differs,  // which way is not known, so it counts as wider
    narrowed,
    told,  // no permission, but a person should see it
  };
  Kind kind = Kind::differs;
  std::string part;    // "argv", "file squid.conf", "command"
  std::string before;  // its words; empty: that side has none
  std::string after;
  std::string capability;  // that causes it; empty: none
  std::string place;       // where that stands: "new.json:3:7 (search)"
  std::string why;         // in words, or empty
  bool is_strict = false;  // told, but another program or other words for a model: --strict fails
};

// `unclear`: something differs of which nobody can say that it grants no more.
enum class Verdict : unsigned char { same, less, moved, unclear, more };

struct ShownServer {
  std::string name;
  std::string file;  // of the new side, or of the old one where that has none
  bool is_new = false;
  bool is_gone = false;
  Verdict verdict = Verdict::same;
  std::vector<ShownChange> changes;
  std::vector<ShownTool> tools;
  std::vector<ShownPart> parts = {};

  // Anything at all, also what nobody needs a permission for.
  [[nodiscard]] bool is_changed() const;
  // With the parts, which may make the verdict worse.
  void add(ShownPart part);
};

// The server's permissions widen, or nobody can say that they do not.
[[nodiscard]] inline bool may_widen(Verdict verdict) { return verdict >= Verdict::unclear; }

[[nodiscard]] std::string_view kind_name(ShownPart::Kind kind);  // "widened"
// "argv: --bind /home /home", "command: npx a -> npx b"; long ones are cut, in sight.
[[nodiscard]] std::string part_words(const ShownPart& part);
// "fs:read:/srv/** at new.json:3:7 (search)", or the reason; may be empty.
[[nodiscard]] std::string part_cause(const ShownPart& part);

[[nodiscard]] ShownServer show(const ServerDiff& server);

// "lets the server X do more": without escapes, with the name handed in as it shall appear.
[[nodiscard]] std::string verdict_words(const ShownServer& server, std::string_view name);

// The tools that declare it, each once; serverCapabilities is "every tool".
[[nodiscard]] std::vector<std::string> tools_of(const ShownChange& change);

[[nodiscard]] std::string_view kind_name(core::GrantChange::Kind kind);  // "widened"

}  // namespace capgate::review
