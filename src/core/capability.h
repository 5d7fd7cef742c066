// What a server may do, one value per capability string. Past the grammar nobody parses strings.
//
//   const Capability c = FsCapability{.actions = {FsAction::read}, .path = {.base = "/workspace"}};
//   print(c) -> "fs:read:/workspace"
//
// print() gives the one canonical spelling; parsing it (core/grammar.h) gives the same value.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/host.h"
#include "core/path.h"

namespace capgate::core {

// In the order in which actions are printed.
enum class FsAction : std::uint8_t { read = 1, create = 2, write = 4, remove = 8 };

class FsActions {
 public:
  constexpr FsActions() = default;
  constexpr FsActions(std::initializer_list<FsAction> actions) {
    for (const FsAction action : actions) add(action);
  }
  constexpr void add(FsAction action) { bits_ |= static_cast<std::uint8_t>(action); }
  [[nodiscard]] constexpr bool has(FsAction action) const {
    return (bits_ & static_cast<std::uint8_t>(action)) != 0;
  }
  friend constexpr auto operator<=>(FsActions, FsActions) = default;

 private:
  std::uint8_t bits_ = 0;
};

struct FsCapability {
  FsActions actions;
  PathPattern path;
  bool unsafe = false;  // the author knows that this write changes what the host itself runs
  friend auto operator<=>(const FsCapability&, const FsCapability&) = default;
};

// What the broker checks beyond host and port. Empty members mean the default check.
struct NetRefinements {
  enum class Sni : unsigned char { match, any, strict };
  enum class Proto : unsigned char { detect, tcp, tls, http };
  Sni sni = Sni::match;
  Proto proto = Proto::detect;
  std::vector<std::string> methods;  // sorted, distinct
  std::vector<std::string> paths;    // sorted, distinct
  bool private_network = false;      // ?private=true: the name may lead into one
  friend auto operator<=>(const NetRefinements&, const NetRefinements&) = default;
};

struct NetConnect {
  Endpoint endpoint;
  NetRefinements refinements;
  friend auto operator<=>(const NetConnect&, const NetConnect&) = default;
};

struct NetListen {
  std::uint16_t port = 0;
  friend auto operator<=>(const NetListen&, const NetListen&) = default;
};

struct ExecCapability {
  std::string program;
  bool nested_sandbox = false;
  friend auto operator<=>(const ExecCapability&, const ExecCapability&) = default;
};

// Where in a request a sealed secret may stand.
struct SecretPlace {
  enum class Kind : unsigned char { header, basic, query, path, body };
  Kind kind = Kind::header;
  std::string header = "authorization";  // header only, in lower case
  friend auto operator<=>(const SecretPlace&, const SecretPlace&) = default;
};

struct EnvCapability {
  enum class Action : unsigned char { read, inject };
  Action action = Action::read;
  std::string name;
  bool unsafe = false;
  // Sealed: the server gets a placeholder, and the value goes to these endpoints only.
  std::vector<Endpoint> to;  // sorted, distinct
  SecretPlace as;
  friend auto operator<=>(const EnvCapability&, const EnvCapability&) = default;
};

struct IpcCapability {
  enum class Kind : unsigned char {
    dbus_session,
    dbus_system,
    netlink_route,
    self,
    unix_path,
    x11
  };
  Kind kind = Kind::self;
  std::string path;  // unix_path only
  bool unsafe = false;
  friend auto operator<=>(const IpcCapability&, const IpcCapability&) = default;
};

struct ClockCapability {
  enum class Source : unsigned char { system, tzdata };
  Source source = Source::system;
  friend auto operator<=>(const ClockCapability&, const ClockCapability&) = default;
};

struct LimitCapability {
  enum class Kind : unsigned char { cpu, disk, files, memory, pids, time };
  Kind kind = Kind::memory;
  std::uint64_t value = 0;  // bytes, a count, percent of one processor, or seconds
  friend auto operator<=>(const LimitCapability&, const LimitCapability&) = default;
};

struct AssertCapability {
  std::string id;
  std::string text;
  friend auto operator<=>(const AssertCapability&, const AssertCapability&) = default;
};

using Capability = std::variant<FsCapability, NetConnect, NetListen, ExecCapability, EnvCapability,
                                IpcCapability, ClockCapability, LimitCapability, AssertCapability>;

[[nodiscard]] std::string print(const Capability& capability);
[[nodiscard]] std::string_view kind_name(const Capability& capability);  // "fs", "net" ...

// The endpoint of an ipc capability as it is written: "x11", "dbus:session", "unix:/run/x.sock".
[[nodiscard]] std::string print_ipc_endpoint(const IpcCapability& ipc);
// "512M", "150%", "30s": the largest unit that is exact.
[[nodiscard]] std::string print_limit_value(const LimitCapability& limit);
[[nodiscard]] std::string_view limit_name(LimitCapability::Kind kind);

}  // namespace capgate::core
