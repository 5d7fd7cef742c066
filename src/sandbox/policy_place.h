// A policy is never taken from a place that a sandboxed server can write: what it wrote there would
// hold for it, or for another server, the next time. The same goes for what programs of the host
// start because of it: configurations of clients, and capgate itself.
//
//   const KeptPlaces kept =
//       TRY(check_policy_places({{.path = "/srv/project/manifest.json"}}, plan, launcher));
//
// Compared by identity, not by name: every directory on the way to the place, links followed, with
// every directory and file that the Plan lets the server write. A place that is not there counts,
// too: the server could make it. One that is a directory stands for everything in it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/host_path.h"

namespace capgate::sandbox {

struct PolicyPlace {
  std::string path;
  std::string role = "decides what the server may do";  // said of it in a refusal
  // A file that may lie inside a writable grant, where it is mounted read-only. Refused only where
  // no mount can keep it: the grant is for this very file, or it lies in HOME of a profile.
  bool is_read_only = false;
  bool may_be_missing = false;  // then its name is watched; otherwise a server could plant it
  // Asked where a grant is for this very file: whether that opens it. Null: never.
  bool (*may_be_named)(const std::string& path) = nullptr;
};

[[nodiscard]] std::expected<KeptPlaces, Refusal> check_policy_places(
    const std::vector<PolicyPlace>& places, const lower::Plan& plan, const Launcher& launcher);

// Whether the Plan lets the server write anything of the host at all.
[[nodiscard]] bool grants_writing(const lower::Plan& plan);

}  // namespace capgate::sandbox
