// What `capgate diff` compares: a word of the command line becomes the servers that it names.
//
//   github.json, -            a manifest
//   main:github.json          the same at a revision of git; ":github.json" is what is staged. A
//                             file whose name has a colon is "./a:b.json"
//   capgate.lock              what was approved, one server for each entry (diff_lock.h)
//   capgate.yaml              one server for each entry (diff_config.h)
//   /dev/null                 nothing: everything on the other side is new, or gone
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/load_symbolic.h"
#include "clients/pin.h"

namespace capgate::cli {

// A text that was read, before anybody knows what it is.
struct ReadSource {
  std::string name;  // as diagnostics call it: "main:github.json"
  std::string file;  // where a reader finds it: "github.json"
  text::SharedText text;
  bool is_nothing = false;    // /dev/null
  std::string revision = {};  // "main:", with which files beside it begin; empty: it is a file
  std::string unread = {};    // why its path leads to no file of the revision; empty: it does
};
[[nodiscard]] std::expected<ReadSource, int> read_source(const std::string& word, Output& output);

// Says so in `output`; the exit status.
std::unexpected<int> cannot_read(std::string_view name, std::string_view why, Output& output);

// What an entry of capgate.yaml says besides its permissions.
struct DiffEntry {
  std::vector<std::string> command;
  std::vector<std::string> secrets;  // NAME=PROVIDER:REF
  std::string url;                   // without what may be a secret
  std::string whole_url;             // never shown
  std::string manifest;              // that it names
  bool enabled = true;
};

// One server of a side.
struct DiffServer {
  std::string name;
  std::string file;
  Loaded loaded;
  bool has_places = true;                // the document is the one that a person wrote
  std::optional<DiffEntry> entry = {};   // of a capgate.yaml
  std::optional<clients::Pin> pin = {};  // of a capgate.lock

  // It has its name for good; a manifest may be called otherwise and yet be the same server's.
  [[nodiscard]] bool is_entry() const { return entry.has_value() || pin.has_value(); }
};

// In the order of the source; none where it is nothing.
[[nodiscard]] std::expected<std::vector<DiffServer>, int> read_servers(const ReadSource& source,
                                                                       const Arguments& arguments,
                                                                       core::Symbols& symbols,
                                                                       Output& output);

}  // namespace capgate::cli
