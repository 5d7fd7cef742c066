// One run of a server, from the Plan to its exit status. The order of everything is in session.cc,
// in one function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/policy.h"
#include "egress/policy.h"
#include "lower/artifact.h"
#include "sandbox/lacking.h"
#include "sandbox/policy_place.h"
#include "secrets/provider.h"

namespace capgate::sandbox {

// Its environment is taken over, and forgets what is secret.
struct Session {
  const lower::Artifact& artifact;  // with a plan
  const lower::Input& input;
  std::vector<PolicyPlace> policy_places;  // what decides plans: not writable by the server
  std::vector<PolicyPlace> sealed_files;   // what holds sealed values: not readable by the server
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::vector<secrets::Binding> secrets;  // --secret: names that the plan injects or seals
  std::string home;
  std::string path;
  std::vector<std::string> accepted_limits;  // stated, and not refused where they cannot be held
  std::string state;                         // --profile: a directory that is HOME inside, or empty
  std::string package;  // the tree of an installed package that the command lies in, or empty
  std::optional<int> grace;
  std::string report;  // a file, or empty
  std::string trace;   // a file, "-" for stderr, or empty
  bool dry_run = false;
  std::string audit;            // a file, or empty: a new one in
  std::string audit_directory;  // which is made where net is declared
  bool proxy_env = false;
  egress::EgressLimits net_limits;
  Lacking lacking;  // for hints, where something fails
};

// Runs it, and says on stderr what a person should know. The server's exit status, or 125, 126,
// 127.
[[nodiscard]] int run(Session session);

}  // namespace capgate::sandbox
