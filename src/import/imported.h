// A manifest made of somebody else's format, and what was lost on the way.
//
//   const Imported imported = TRY(read_toolhive(document, {.name = "github"}));
//   imported.tools[0].capabilities   -> {"fs:read:/srv/data/**", "net:connect:api.github.com:443"}
//   imported.losses                  -> "insecure_allow_all: ..."
//
// Every reader gives the same shape; print_manifest() writes it, and what it writes parses. A
// reader refuses what it does not know: a version of the schema, a key that may grant something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"

namespace capgate::imports {

// What a person must know about one import.
struct Loss {
  enum class Kind : unsigned char {
    unsaid,   // the format has no way to say it, so the manifest does not have it
    assumed,  // the format leaves it open, and this is what the manifest says
    dropped,  // the source says it, and the language has no such thing
  };
  Kind kind = Kind::unsaid;
  std::string subject;  // a key of the source ("network.outbound"), or a kind ("exec")
  std::string message;  // what that means for the manifest, and what to do
};

struct ImportedTool {
  std::string name;
  std::string description;
  std::vector<std::string> capabilities;
};

struct Imported {
  std::string format;  // "toolhive"
  std::string name;    // of the server, never empty
  std::string version;
  std::vector<std::string> capabilities;  // of the whole server, canonical, sorted, distinct
  std::vector<ImportedTool> tools;
  std::vector<std::string> variables;  // ${NAME}s in them, to be bound with --set
  std::vector<std::string> command;    // how the source starts the server, if it says so
  std::vector<Loss> losses;
};

// What the caller knows beside the file.
struct ImportPlace {
  std::string file;       // its name, for a server that has none
  std::string directory;  // relative paths start here
  std::string home;       // ~
  std::string server;     // --server, where a file holds several; empty: the only one
};

// The manifest as JSON, pretty, with a newline at its end.
[[nodiscard]] std::string print_manifest(const Imported& imported);

}  // namespace capgate::imports
