#include "cli/policy_places.h"

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/entry.h"
#include "cli/project.h"
#include "clients/config_files.h"
#include "clients/store.h"

namespace capgate::cli {
namespace {

using sandbox::PolicyPlace;

constexpr const char* decides = "decides what servers may do";

void add_configs(const clients::Places& places, std::vector<PolicyPlace>& out) {
  for (std::string& file : clients::deciding_files(places)) {
    out.push_back({.path = std::move(file), .role = decides});
  }
  for (clients::FoundServer& each : clients::readable_servers(places)) {
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
}

}  // namespace

// The program of a secret runs outside, as the user. One that PATH names is found in the user's own
// directories.
std::vector<PolicyPlace> secret_places(const std::vector<secrets::Binding>& bindings) {
  std::vector<PolicyPlace> out;
  using enum secrets::Binding::Provider;
  for (const secrets::Binding& each : bindings) {
    if (each.provider == file) {
      out.push_back({.path = each.reference, .role = format("holds the secret {}", each.name)});
    } else if (each.provider == cmd && each.command.front().contains('/')) {
      out.push_back({.path = each.command.front(),
                     .role = format("runs outside, for the secret {}", each.name)});
    }
  }
  return out;
}

std::vector<PolicyPlace> policy_places(const Arguments& arguments) {
  std::vector<PolicyPlace> out;
  const clients::Places places = config_places(arguments);
  const std::string home = home_directory();
  add_configs(places, out);
  if (const std::string usual = home + "/.config/capgate"; usual != places.config) {
    add_configs({.flag = {}, .directory = {}, .config = usual, .system = {}, .home = home}, out);
  }
  add_state(state_base(), out);
  if (const std::string usual = home + "/.local/state/capgate"; usual != state_base()) {
    add_state(usual, out);
  }
  add_data(data_base(), out);
  if (const std::string usual = home + "/.local/share/capgate"; usual != data_base()) {
    add_data(usual, out);
  }
  return out;
}

}  // namespace capgate::cli
