// capgate.yaml: which server may do what, in one short file.
//
//   servers:
//     github:
//       command: [npx, -y, "@modelcontextprotocol/server-github"]
//       manifest: catalog:github           or a file beside this one
//       secrets: {GITHUB_PERSONAL_ACCESS_TOKEN: "cmd:pass show github"}
//       seal: true
//     notes:
//       command: [notes-server]
//       capabilities: ["fs:write:${DIR}/**"]
//       variables: {DIR: /home/me/notes}
//     old:
//       command: [old-server]
//       sandbox: {network: ["api.example.com:443"], read: [~/data], write: [], exec: false}
//
// Exactly one of manifest, capabilities and sandbox; none of them is the empty policy. A `sandbox`
// block is shorthand (import/sandbox_block.h) that becomes capability strings. This file is pure:
// text in, value out; where configs lie and which one wins is config_files.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/span.h"
#include "core/variables.h"
#include "text/document.h"

namespace capgate::clients {

struct ServerConfig {
  std::string name;
  Span where;  // of the name
  std::vector<std::string> command;
  std::string url;                        // an HTTP server: it does not run here
  bool enabled = true;                    // sandbox.enabled: `run` refuses, `wrap` skips it
  std::string manifest;                   // an absolute path, "catalog:NAME", or empty
  std::vector<std::string> capabilities;  // as written, or what the sandbox block stands for
  std::vector<Span> capability_spans;     // where each stands, for diagnostics
  core::Bindings variables;
  std::vector<std::string> secrets;  // NAME=PROVIDER:REF, as `run --secret` takes them
  bool seal = false;
  std::vector<std::string> notes;  // what a person should know of this entry
};

struct Config {
  std::vector<ServerConfig> servers;

  [[nodiscard]] const ServerConfig* find(std::string_view name) const;
};

inline constexpr std::string_view catalog_prefix = "catalog:";

// What --profile takes, too: letters, digits, '-', '_' and '.'.
[[nodiscard]] bool is_server_name(std::string_view name);

// `directory` is where the file lies: relative paths in it start there; `home` is ~.
struct ConfigPlace {
  std::string directory;
  std::string home;
};

// No mistake repeats what stands for a secret, nor points at a line that holds it: a value may have
// been written where its provider belongs.
[[nodiscard]] Checked<Config> parse_config(const text::Document& document,
                                           const ConfigPlace& place);

}  // namespace capgate::clients
