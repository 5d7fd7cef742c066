// What was approved of one server, so that a change of it is seen before it runs: the hashes of its
// manifest and policy, its package, and every tool with its words.
//
//   const Pin now = ...;                                    cli/pins.h
//   const PinDiff change = diff(approved, now);             pin_diff.h
//
// A file of pins is a project's capgate.lock:
//
//   {"schemaVersion": 1, "servers": [{"server": "github", "manifestHash": "sha256:...", ...}]}
//
// (The package store has a file of that name, too, with `packages` in it: store.h.) The user's own
// pins are in the approvals (approvals.h). Texts stand beside their hashes, so that a change can be
// shown and not only noticed. Pure.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/document.h"
#include "text/json_write.h"

namespace capgate::clients {

struct PinnedPackage {
  std::string registry;  // "npm" or "pypi"
  std::string name;
  std::string version;
  std::string integrity;  // of its archive, as the registry states it
  std::string tree;       // sha256:... over every file as installed
  // The interpreter that runs it. Of one machine, so a lock has none; empty: not pinned.
  std::string runtime = {};

  bool operator==(const PinnedPackage&) const = default;
};

struct PinnedTool {
  std::string name;
  std::string title;
  std::string description;
  // JSON in the form of canonical_json(), or empty: the server sent none.
  std::string input_schema;
  std::string output_schema;
  std::string annotations;
  std::string other = {};  // an object of everything else that it says: _meta, icons, ...

  bool operator==(const PinnedTool&) const = default;
};

// What one tool of the manifest may do, as capability strings.
struct PinnedGrants {
  std::string tool;
  std::vector<std::string> capabilities;

  bool operator==(const PinnedGrants&) const = default;
};

struct Pin {
  std::string server;
  std::string manifest_hash;
  // The whole server's policy, canonical, but ${HOME} for the caller's home directory: a lock is
  // the same on every machine. policy_hash() of it stands beside it in the file.
  std::vector<std::string> policy;
  // The same by who has it: what all tools may do, and what each one may do besides, sorted by
  // tool, only tools that have any.
  std::vector<std::string> shared;
  std::vector<PinnedGrants> grants;
  std::vector<std::string> command;  // empty: whoever starts it says it
  std::optional<PinnedPackage> package;
  // The program that the `#!` lines of the command lead to. Of one machine, so a lock has none;
  // empty: no script, or not pinned.
  std::string interpreter = {};
  std::string protocol;                          // that it speaks; empty without tools
  std::optional<std::vector<PinnedTool>> tools;  // sorted by name; none: they were not asked for
  // What the server says of itself; clients put it before the model. None: a pin of an earlier
  // version, which did not ask for it.
  std::optional<std::string> instructions = {};
  // What it declares to have: "prompts", "tools", "extensions/x". Sorted; none as above.
  std::optional<std::vector<std::string>> declares = {};

  bool operator==(const Pin&) const = default;
};

// Keys sorted by their bytes, no white space, strings as RFC 8785 has them, numbers as they are
// spelled: what a server may change without changing what it says.
void write_canonical(text::Value value, text::JsonWriter& json);
// Nothing if it is no JSON.
[[nodiscard]] std::optional<std::string> canonical_json(std::string_view json);

// "sha256:..." over everything that it says.
[[nodiscard]] std::string tool_hash(const PinnedTool& tool);
[[nodiscard]] std::string policy_hash(const std::vector<std::string>& policy);

// "fs:read:/home/me/x" -> "fs:read:${HOME}/x"
[[nodiscard]] std::string without_home(std::string_view line, std::string_view home);

// The pin as a manifest (JSON), to be parsed with HOME bound and compared by core/diff.h: whose
// tools and capabilities are those that were approved.
[[nodiscard]] std::string manifest_of(const Pin& pin);

using PinProblem = std::string;  // in words

// Strictly: a key that is not known, a hash that does not fit its text, or a wrong order is a
// problem. What is printed is read again as the same value.
[[nodiscard]] std::expected<Pin, PinProblem> read_pin(text::Value value);
void write_pin(const Pin& pin, text::JsonWriter& json);
[[nodiscard]] std::expected<std::vector<Pin>, PinProblem> parse_pins(std::string text);
[[nodiscard]] std::string print_pins(std::vector<Pin> pins);

[[nodiscard]] const Pin* find_pin(const std::vector<Pin>& pins, std::string_view server);

}  // namespace capgate::clients
