// What `capgate diff` compares: a word of the command line becomes the servers that it names.
//
//   github.json, -            a manifest
//   main:github.json          the same at a revision of git; ":github.json" is what is staged
//   capgate.lock              what was approved, one server for each entry
//   capgate.yaml              one server for each entry (diff_config.h)
//   /dev/null                 nothing: everything on the other side is new, or gone
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/load_symbolic.h"

namespace capgate::cli {

// A text that was read, before anybody knows what it is.
struct ReadSource {
  std::string name;  // as diagnostics call it: "main:github.json"
  std::string file;  // where a reader finds it: "github.json"
  text::SharedText text;
  bool is_nothing = false;    // /dev/null
  std::string revision = {};  // "main:", with which files beside it begin; empty: it is a file
};
[[nodiscard]] std::expected<ReadSource, int> read_source(const std::string& word, Output& output);

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
  bool has_places = true;  // the document is the one that a person wrote
  std::optional<DiffEntry> entry = {};
};

// In the order of the source; none where it is nothing.
[[nodiscard]] std::expected<std::vector<DiffServer>, int> read_servers(const ReadSource& source,
                                                                       const Arguments& arguments,
                                                                       core::Symbols& symbols,
                                                                       Output& output);

// What a lock says of one server: capability strings, of the whole and of single tools.
struct ServerLines {
  struct Tool {
    std::string name;
    std::vector<std::string> capabilities;
  };
  std::string name;
  std::vector<std::string> server;
  std::vector<Tool> tools;
};

// Where capgate.lock plugs in: `servers[]` with `server`, `policy` and `grants[]` of `tool` and
// `capabilities`. Nothing if the document is no lock.
[[nodiscard]] std::optional<std::vector<ServerLines>> lines_of_lock(const text::Document& document);

}  // namespace capgate::cli
