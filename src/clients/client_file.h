// A client's configuration as text that is edited in place: what is not part of a change keeps
// every byte, comments and odd spacing included. Pure.
//
//   const ClientFile file = TRY(read_client_file(text, shape));
//   for (const ServerEntry& server : file.servers) ...
//   const std::string wrapped = TRY(apply(file, {{.server = "github", .kind = wrap, ...}}));
//
// A wrapped entry holds everything that it takes to undo it:
//   "command": "npx", "args": ["-y", "pkg"]
//   "command": "/usr/bin/capgate", "args": ["run", "--profile", "github", "--", "npx", "-y", "pkg"]
// so that unwrap(wrap(text)) == text needs no other file, whatever else has been changed meanwhile.
// Tokens are moved as they are spelled. Where an entry had no args, the inserted text is one that
// wrap alone writes, and unwrap takes it out again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/span.h"
#include "clients/edits.h"

namespace capgate::clients {

enum class Syntax : std::uint8_t { json, toml, yaml };  // json: with comments and trailing commas

// How one client writes its servers down.
struct Shape {
  Syntax syntax = Syntax::json;
  // Keys from the root to the servers: {"mcpServers"}; "*" is any key: {"projects", "*",
  // "mcpServers"}.
  std::vector<std::vector<std::string>> paths;
  bool is_list = false;             // Continue: a list of entries with a `name` (both are read)
  std::string command = "command";  // Goose: cmd
  std::string environment = "env";  // Goose: envs
  bool command_is_array = false;    // OpenCode: command holds the arguments, too (both are read)
};

enum class Transport : std::uint8_t { stdio, http, unknown };

struct EnvironmentEntry {
  std::string name;
  std::string value;
  Span where;  // of the value's token
  // set_environment to another value and back gives the same bytes: an unusual spelling would not.
  bool plain = true;
};

struct ServerEntry {
  std::string name;
  std::string section;  // "" or the key that "*" stood for: a project of Claude Code
  Transport transport = Transport::stdio;
  bool disabled = false;             // the client itself does not start it
  std::vector<std::string> command;  // with its arguments; unwrapped, if it is wrapped
  std::vector<EnvironmentEntry> environment;
  std::string directory;  // cwd, or empty
  std::string profile;    // of a wrapped entry, else empty
  Span where;             // of the entry
  std::string problem;    // why it cannot be wrapped ("args is not an array of strings"), or empty
};

struct ClientFile {
  std::string text;
  Shape shape;
  std::vector<ServerEntry> servers;
};

[[nodiscard]] Checked<ClientFile> read_client_file(std::string text, const Shape& shape);

struct Change {
  enum class Kind : std::uint8_t { wrap, unwrap, set_environment };
  Kind kind = Kind::wrap;
  std::size_t server = 0;  // index in ClientFile::servers
  std::vector<std::string> prefix =
      {};                 // wrap: {"/usr/bin/capgate", "run", "--profile", "x", "--"}
  std::string name = {};  // set_environment: an existing variable
  std::string value = {};
};

// All changes at once. What is already so is no change; of a server that is wrapped already only
// capgate's path and the profile's name are brought up to date. The result is read again and
// compared with what was meant before it is returned: an edit that would do anything else is an
// error.
[[nodiscard]] Result<std::string> apply(const ClientFile& file, const std::vector<Change>& changes);

// The same as edits of file.text, sorted, for whoever shows them. Only apply() checks what they do.
[[nodiscard]] Result<std::vector<Edit>> edits(const ClientFile& file,
                                              const std::vector<Change>& changes);

}  // namespace capgate::clients
