// The file of a wrapped server: one entry of capgate.yaml, written once by `wrap` and a person's
// from then on. Pure.
//
//   print_profile({.name = "github", .command = {"npx", ...}, .manifest = "catalog:github", ...})
//
//   # What the MCP server "github" may do: read by `capgate run --profile github`. ...
//   servers:
//     github:
//       command: ["npx", "-y", "@modelcontextprotocol/server-github"]
//       manifest: "catalog:github"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/grammar.h"

namespace capgate::clients {

struct Profile {
  std::string name;
  std::string client;  // for whom it was made: "Claude Desktop"
  std::string server;  // as the client calls it
  std::vector<std::string> command;
  std::string manifest;  // "catalog:NAME", or empty: no capability
  core::Bindings variables;
  std::vector<std::string> secrets;         // in the store, and the policy injects them
  std::vector<std::string> unused_secrets;  // in the store, and the policy does not inject them
  bool seal = false;
  std::vector<std::string> policy;  // what it comes to, one capability a line: a comment
  std::vector<std::string> notes;

  // The same policy for the same command, whoever it was made for.
  [[nodiscard]] bool says_the_same(const Profile& other) const;
};

// Its last line is a hash of the rest, by which a file that nobody changed is known.
[[nodiscard]] std::string print_profile(const Profile& profile);
[[nodiscard]] bool is_as_printed(std::string_view text);
// Was this text made for the same client, and does it say the same but for the client?
[[nodiscard]] bool is_for_client_of(std::string_view text, const Profile& profile);
[[nodiscard]] bool prints_the_same(std::string_view text, const Profile& profile);

// A name for --profile from a name that may be anything: "My Server!" -> "My-Server".
[[nodiscard]] std::string profile_name(std::string_view server);

// The words of a command so that a person can read them and a shell takes them: nothing is cut.
[[nodiscard]] std::string print_command(const std::vector<std::string>& command);

}  // namespace capgate::clients
