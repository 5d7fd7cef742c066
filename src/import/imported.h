// A manifest made of somebody else's format, and what was lost on the way.
//
//   const Imported imported = TRY(read_toolhive(document, {.name = "github"}));
//   imported.tools[0].capabilities   -> {"fs:read:/srv/data/**", "net:connect:api.github.com:443"}
//   imported.losses                  -> "insecure_allow_all: ..."
//
// Every reader gives the same shape; print_manifest() writes it, and what it writes parses. A
// reader refuses what it does not know: a version of the schema, a key that may grant something.
// Readers fill a Collector, which is where capabilities get their canonical spelling.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"
#include "core/capability.h"
#include "text/json_write.h"

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

  friend bool operator==(const Loss&, const Loss&) = default;
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
  std::string description;                // of capgate's own manifest, carried along
  std::vector<std::string> capabilities;  // of the whole server, canonical, sorted, distinct
  std::vector<ImportedTool> tools;
  bool is_chosen = false;              // by ImportPlace::server, or as the only one
  bool seal = false;                   // capgate's own manifest, carried along, says so
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
// The same as a value of a larger document.
void write_manifest(const Imported& imported, text::JsonWriter& json);

[[nodiscard]] std::string_view kind_name(Loss::Kind kind);  // "unsaid", "assumed", "dropped"

// What the readers fill.
//
//   Collector out("toolhive", place);
//   out.grant_path(Access::read, "/srv/data", "read");
//   out.grant_host("api.github.com", "network.outbound");   // any port, and an `assumed` loss
//   out.unsaid("exec", "...");
//   return std::move(out).take();
//
// Whatever is granted is checked by the grammar and by the rules on scopes. What these refuse is
// not in the manifest: it is a `dropped` loss with the reason, so the manifest never grants more
// than the source does, and always parses.
enum class Access : std::uint8_t { read, write, read_write };

class Collector {
 public:
  Collector(std::string_view format, const ImportPlace& place);

  // Of the server; what is never said becomes the file's name, and version 0.0.0 (`assumed`).
  void name(std::string_view text);
  void version(std::string_view text);
  void command(std::vector<std::string> words);
  void seal() { out_.seal = true; }
  // The format names its servers, and place().server was heeded.
  void chosen() { out_.is_chosen = true; }
  void description(std::string_view text);

  // What is granted from here on is this tool's; before the first one, the whole server's. A second
  // tool of the same name is the first one.
  void tool(std::string_view name, std::string_view description);
  void whole_server() { tool_ = none; }

  // `subject` is the place in the source that says it. True if it was granted.
  bool grant(std::string_view capability, std::string_view subject);
  bool grant(const core::Capability& capability, std::string_view subject);
  // Absolute, ~ or ~/..., or from the file's directory. PATH/ and PATH/** are a directory.
  bool grant_path(Access access, std::string_view path, std::string_view subject);
  // HOST or HOST:PORT; a host alone is every port of it, with an `assumed` loss.
  bool grant_host(std::string_view host, std::string_view subject);
  bool grant_env(core::EnvCapability::Action action, std::string_view name,
                 std::string_view subject);
  // A variable that the source sets to a value of its own. A manifest holds no values, so that the
  // server gets the caller's value of that name: dropped if that is a secret (false), else told.
  bool keep_fixed_env(std::string_view name, std::string_view subject);
  void tell_fixed_env(std::string_view name, std::string_view subject);
  bool grant_program(std::string_view name, std::string_view subject);

  // A name for ${NAME} made of a key of the source ("allowed-dirs" -> "ALLOWED_DIRS"); the same for
  // the same key, another one for another key. `wanted` is what it is made of, where that is less
  // than the key.
  std::string variable(std::string_view key) { return variable(key, key); }
  std::string variable(std::string_view key, std::string_view wanted);
  // A ${NAME} that the reader uses itself, so that no key of the source gets it.
  void reserve(std::string_view variable);

  // Each is told once, however often it is said.
  void unsaid(std::string_view subject, std::string message);
  void assumed(std::string_view subject, std::string message);
  void dropped(std::string_view subject, std::string message);

  [[nodiscard]] const ImportPlace& place() const { return place_; }
  // In normal form: capabilities canonical, sorted, distinct; the variables that they use.
  [[nodiscard]] Imported take() &&;

 private:
  static constexpr std::size_t none = SIZE_MAX;
  void lose(Loss::Kind kind, std::string_view subject, std::string message);
  bool refuse(std::string_view what, std::string_view subject, const Diagnostic& reason);
  bool add(std::string capability);

  ImportPlace place_;
  Imported out_;
  std::size_t tool_ = none;
  // Sources are foreign: each of these keeps a long list from costing its square.
  std::map<std::string, std::size_t, std::less<>> tools_;      // by name
  std::map<std::string, std::string, std::less<>> variables_;  // names by key
  std::map<std::string, std::size_t, std::less<>> names_;      // how often each was wanted
  std::set<std::string, std::less<>> told_;
};

// The name of a server that nobody named: the file's, without directory and ending.
[[nodiscard]] std::string name_of_file(std::string_view file);

}  // namespace capgate::imports
