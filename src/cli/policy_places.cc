#include "cli/policy_places.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/entry.h"
#include "cli/project.h"
#include "cli/secret_places.h"
#include "cli/wrapped_files.h"
#include "clients/clients.h"
#include "clients/config_files.h"
#include "clients/replace_file.h"
#include "clients/store.h"
#include "sandbox/beside.h"

namespace capgate::cli {
namespace {

using sandbox::PolicyPlace;

constexpr const char* decides = "decides what servers may do";

void add_configs(const clients::Places& places, const std::string& directory,
                 std::vector<PolicyPlace>& out) {
  for (std::string& file : clients::deciding_files(places)) {
    out.push_back({.path = std::move(file), .role = decides});
  }
  const sandbox::Caller caller{
      .path = variable("PATH"), .directory = directory, .home = places.home};
  for (clients::FoundServer& each : clients::readable_servers(places)) {
    std::vector<secrets::Binding> bindings;
    for (const std::string& text : each.server.secrets) {
      if (auto binding = secrets::parse_binding(text)) bindings.push_back(*std::move(binding));
    }
    std::ranges::move(secret_places(bindings, caller), std::back_inserter(out));
    std::string& manifest = each.server.manifest;
    if (manifest.empty() || manifest.starts_with(clients::catalog_prefix)) continue;
    out.push_back({.path = std::move(manifest),
                   .role = format("is the manifest of {} in {}", each.server.name,
                                  escape_for_terminal(each.file))});
  }
}

void add_data(const std::string& base, std::vector<PolicyPlace>& out) {
  const clients::Store store{.base = base};
  out.push_back({.path = base + "/packages", .role = "holds the packages of servers"});
  out.push_back({.path = store.lock_file(), .role = "decides which package a server is"});
  out.push_back({.path = base + "/secrets.json", .role = "holds the secrets of servers"});
  // Not as a directory with all that is in it: `capgate install` grants an installer its own.
  out.push_back({.path = store.staging() + "/next", .role = "is where packages are made"});
}

void add_state(const std::string& base, std::vector<PolicyPlace>& out) {
  out.push_back({.path = base + "/approved", .role = "holds what you approved"});
  out.push_back({.path = base + "/sealed", .role = "says where unwrap finds tokens"});
  out.push_back({.path = base + "/wrapped", .role = "says which files are wrapped"});
}

// With no variable more than the places need: others may be secret.
clients::Surroundings client_surroundings(const std::string& directory) {
  clients::Surroundings out{.home = home_directory(), .directory = directory, .environment = {}};
  for (const char* name : {"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"}) {
    if (std::string value = variable(name); !value.empty()) {
      out.environment.push_back(format("{}={}", name, value));
    }
  }
  return out;
}

// Files that programs of the host act upon: read-only where they lie in a grant.
void add_read_only(const std::string& directory, std::vector<PolicyPlace>& out) {
  for (std::string& path : sandbox::own_programs()) {
    out.push_back(
        {.path = std::move(path), .role = "is a program of capgate", .is_read_only = true});
  }
  for (const std::string& file : wrapped_files()) {
    for (std::string& path : clients::backups_of(file)) {
      out.push_back({.path = std::move(path),
                     .role = "is the backup of a wrapped file",
                     .is_read_only = true,
                     .may_be_missing = true});
    }
    out.push_back({.path = file,
                   .role = "was wrapped: a client starts what it says",
                   .is_read_only = true,
                   .may_be_missing = true});
  }
  // A client that was not wrapped may be the server's own business, if its file is granted by name.
  for (std::string& path : clients::all_places(client_surroundings(directory))) {
    out.push_back({.path = std::move(path),
                   .role = "is read by an MCP client, which starts what it says",
                   .is_read_only = true,
                   .may_be_missing = true,
                   .may_be_named = is_without_wrapper});
  }
}

}  // namespace

std::vector<PolicyPlace> policy_places(const Arguments& arguments) {
  std::vector<PolicyPlace> out;
  const clients::Places places = config_places(arguments);
  const std::string home = home_directory();
  add_configs(places, places.directory, out);
  if (const std::string usual = home + "/.config/capgate"; usual != places.config) {
    add_configs({.flag = {}, .directory = {}, .config = usual, .system = {}, .home = home},
                places.directory, out);
  }
  add_state(state_base(), out);
  if (const std::string usual = home + "/.local/state/capgate"; usual != state_base()) {
    add_state(usual, out);
  }
  add_data(data_base(), out);
  if (const std::string usual = home + "/.local/share/capgate"; usual != data_base()) {
    add_data(usual, out);
  }
  add_read_only(places.directory, out);
  return out;
}

}  // namespace capgate::cli
