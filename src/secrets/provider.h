// Where a secret comes from: NAME=PROVIDER:REF of `run --secret`, resolved once, at launch, outside
// the sandbox.
//
//   const Binding binding = TRY(parse_binding("GITHUB_TOKEN=cmd:pass show github/token"));
//   const Resolved token = TRY(resolve(binding, context));
//
//   env:NAME                  the launcher's variable; what a name without a binding means
//   file:PATH                 refused when others than its owner can read or write it; one newline
//                             at the end is not part of the value
//   cmd:PROGRAM ARGUMENT...   any program (pass, age, vault, secret-tool, op), no shell: words are
//                             separated by spaces, '...' and "..." keep them together. Its stdout
//                             is the value, one newline at the end is not part of it; its stderr is
//                             shown; it has 30 seconds.
//   cmd?ttl=SECONDS:...       the same, and renewed before that many seconds are over
//   cmd?json:...              its stdout is {"value": "...", "expires": "2026-11-15T12:00:00Z"} or
//                             {"value": "...", "expires_in": 3600}; renewed before it expires
//   systemd-credential:NAME   a file in $CREDENTIALS_DIRECTORY
//   keyring:NAME              a "user" key of the kernel's session or user keyring
//   store:NAME                capgate's own encrypted store (docs/secrets.md), of this server
//
// No error text holds a byte of a value.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "secrets/secret.h"

namespace capgate::secrets {

inline constexpr std::size_t longest_value = 16384;

struct Binding {
  enum class Provider : unsigned char { env, file, cmd, systemd_credential, keyring, store };
  std::string name;  // of the variable
  Provider provider = Provider::env;
  std::string reference;
  std::vector<std::string> command;  // cmd: its words
  std::uint32_t ttl = 0;             // cmd?ttl=
  bool is_json = false;              // cmd?json

  [[nodiscard]] bool expires() const { return ttl != 0 || is_json; }
};

// The name is checked like that of an env capability.
[[nodiscard]] Result<Binding> parse_binding(std::string_view text);

struct Context {
  const std::vector<std::string>& environment;  // NAME=VALUE, of the launcher
  std::string server;                           // whose store: entries are meant
  std::string store_program;                    // capgate-store, beside capgate
  std::chrono::milliseconds command_limit = std::chrono::seconds(30);
  int cancel = -1;  // a descriptor whose other end closes when nobody waits for the value any more
};

struct Resolved {
  Secret value;
  std::int64_t expires = 0;  // Unix seconds; 0: never
};

struct Problem {
  std::string message;
  std::string help;
};

// A value is not empty and holds no NUL: no variable could carry it. What a sealed one must not
// hold is in sealable.h.
[[nodiscard]] std::expected<Resolved, Problem> resolve(const Binding& binding,
                                                       const Context& context);

}  // namespace capgate::secrets
