// The native engine's Plan: everything that `capgate run` carries out, as a plain value.
//
// It is pure: what only the host knows stands in it as a named hole, written ${NAME} inside texts
// and listed in `holes`. `run` fills the holes and decides nothing. Mounts are in the order in
// which they are made; what the Plan does not mount, the server does not see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/policy.h"
#include "lower/seccomp.h"
#include "text/json_write.h"

namespace capgate::lower {

struct PlanMount {
  enum class Kind : unsigned char {
    bind,      // a host path, at the same path inside
    entries,   // the entries of a host directory that match a glob when the sandbox starts
    programs,  // hidden, but for the programs of the holes
    tmpfs,     // private and empty
    proc,      // of the sandbox's own pid namespace
    device,    // one host device node
    symlink,   // made in a private file system
    file,      // generated, read-only
    mask,      // an empty, unreadable directory or file over a credential path, if it exists
  };
  Kind kind = Kind::bind;
  std::string target;
  std::string detail;                      // link target, file contents, glob or rights, by kind
  std::uint64_t size = 0;                  // tmpfs: bytes
  bool if_present = false;                 // part of the base system that not every host has
  bool directory = false;                  // a grant of PATH/**: a file there is refused
  const core::Origins* origins = nullptr;  // none: the base of every sandbox
};

struct LandlockRule {
  std::string path;
  std::vector<std::string_view> rights;
};

struct PlanLimit {
  std::string_view name;
  std::uint64_t value = 0;
  bool is_default = true;  // held by the strongest mechanism that the host has; else required
};

struct PlanHole {
  std::string name;
  std::string meaning;
};

// One net:connect, and where it is declared: "github.json:12:7".
struct PlanRule {
  core::NetConnect connect;
  std::string position;
};

struct PlanNetwork {
  enum class Capture : unsigned char {
    none,       // nothing may be reached
    listeners,  // one socket for each port, at every address
    redirect,   // every port leads to one socket, which is told where it went
  };
  std::vector<std::uint16_t> listeners;  // ports that the broker accepts on, inside
  std::vector<std::uint16_t> published;  // net:listen: ports that the host's loopback reaches
  bool every_port = false;               // a rule without a port: capture all of them
  bool dns = false;
  Capture capture = Capture::none;
  std::uint16_t redirect_port = 0;       // of that one socket; 0 unless redirect
  std::vector<std::uint16_t> localhost;  // ports of the loopback inside that lead to the host's
  std::vector<PlanRule> rules;
  bool public_only = false;  // assert:fetch.block_rfc1918

  [[nodiscard]] bool is_declared() const { return dns || !published.empty(); }
};

// A sealed variable: the server gets a placeholder, the broker puts the value into requests.
struct PlanSeal {
  core::EnvCapability env;
  std::string position;  // "github.json:12:7"
};

struct Plan {
  std::string server;
  std::string version;
  std::vector<PlanMount> mounts;
  std::vector<std::string> protected_names;  // read-only below the root of each writable grant
  std::vector<std::string> hidden_names;     // empty at the root of each granted directory
  std::vector<LandlockRule> landlock;
  SeccompNeeds seccomp;
  Arch arch = Arch::x86_64;
  std::vector<PlanLimit> limits;
  PlanNetwork network;
  std::vector<std::pair<std::string, std::string>> environment;  // fixed names and values
  std::vector<std::string> env_read;
  std::vector<std::string> env_inject;  // whose values the server holds
  std::vector<PlanSeal> seals;          // whose values it does not
  std::vector<std::string> programs;    // exec:spawn names
  std::vector<PlanHole> holes;
};

[[nodiscard]] std::string_view kind_name(PlanMount::Kind kind);
[[nodiscard]] std::string_view capture_name(PlanNetwork::Capture capture);

void write_plan(text::JsonWriter& json, const Plan& plan);

}  // namespace capgate::lower
