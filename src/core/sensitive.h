// The tables of what must not be granted by accident: scopes that are refused, credential paths
// that stay hidden inside a granted parent, startup files that stay read-only inside a writable
// one, variables and sockets that hand over control. Data, with a few pure questions about it.
//
// Paths in the tables that start with "~/" are relative to the home directory. A home directory is
// the one that the caller names, and always also /root, /home/NAME and /Users/NAME (a grant that
// holds all of these, such as /home, is a refused scope). Paths given are canonical: absolute, no
// "." or ".." or double slash. Everything compares whole components, byte by byte.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::core {

enum class SensitiveKind { directory, file };

// One credential path. `path` is "~/..." or absolute, and has no glob: families such as
// ~/.config/google-chrome-beta are listed by their known spellings.
struct CredentialPath {
  std::string_view group;  // "cloud", "browsers" ...: for notes and docs
  std::string_view path;
  SensitiveKind kind = SensitiveKind::directory;
};
[[nodiscard]] std::span<const CredentialPath> credential_paths();

// Files that a shell, a session or a daemon runs later (~/.bashrc, ~/.config/autostart, the
// crontabs), or in which an MCP client finds its servers (client_places.h): no secrets, but
// read-only inside a writable grant unless granted by name.
struct StartupPath {
  std::string_view path;
  SensitiveKind kind = SensitiveKind::directory;
};
[[nodiscard]] std::span<const StartupPath> home_startup_paths();

// File names inside workspaces that usually hold secrets (glob on the last component, any depth;
// only ".git/config" has two components), for notes.
[[nodiscard]] std::span<const std::string_view> workspace_secret_globs();

// The plain names among them, which the native engine hides at the root of a granted directory.
[[nodiscard]] std::span<const std::string_view> workspace_secret_names();

// One of these globs matches the end of `path`, and it is no example such as ".env.sample".
[[nodiscard]] bool is_workspace_secret(std::string_view path);

// Files that a host program runs or trusts later (.git/hooks, .vscode, .mcp.json ...), relative to
// the root of a writable grant: read-only there unless granted by name.
[[nodiscard]] std::span<const std::string_view> protected_workspace_paths();

// `below` is what follows the root of a grant ("/.git/hooks/x"): it is, or lies
// below, a name of the two lists.
[[nodiscard]] bool is_held_name(std::string_view below);

// Why a scope is refused outright, in words, or nothing. `path` is canonical and absolute; it
// stands for the directory that the grant opens. `home` is the caller's home directory, or empty.
[[nodiscard]] std::optional<std::string> refused_scope(std::string_view path,
                                                       std::string_view home);

// Writes at or below these need `?unsafe=true`: /usr, /etc and the merged-usr names. The matching
// directory, or nothing.
[[nodiscard]] std::optional<std::string_view> unsafe_write(std::string_view path);

// Variables that make a program load code or change its interpreter (LD_PRELOAD, NODE_OPTIONS,
// PATH ...): need `?unsafe=true`.
[[nodiscard]] bool is_loader_variable(std::string_view name);

// Variables that hold a secret, by their names: *_TOKEN, *_KEY, *_SECRET, *PASSWORD*.
[[nodiscard]] bool is_secret_name(std::string_view name);

// Sockets through which a container engine or a service manager can be told to do anything. The
// name of what is controlled ("the Docker engine"), or nothing.
[[nodiscard]] std::optional<std::string_view> control_socket(std::string_view path);

// The credential entry that `path` is, or lies below: the innermost one; nothing if it is neither.
// /root is an entry for everyone but the one whose home it is.
[[nodiscard]] const CredentialPath* credential_at(std::string_view path, std::string_view home);

// True if a grant of the directory `above` does not open `path`, which is at or below it: a
// credential that `above` is not part of, or a held name. Only its own grant opens it.
[[nodiscard]] bool is_held_back(std::string_view path, std::string_view above,
                                std::string_view home);

// A credential path strictly below a granted directory, spelled out as an absolute path.
struct HiddenPath {
  std::string path;
  const CredentialPath* entry = nullptr;
};
// Sorted by path. Empty for a path that cannot hold any (the common case, and quick).
[[nodiscard]] std::vector<HiddenPath> credentials_below(std::string_view path,
                                                        std::string_view home);

// The same two questions about startup paths, for grants that write. Those among credentials that
// the grant does not open are left out: they are hidden.
[[nodiscard]] const StartupPath* startup_at(std::string_view path, std::string_view home);
struct ReadOnlyPath {
  std::string path;
  const StartupPath* entry = nullptr;
};
[[nodiscard]] std::vector<ReadOnlyPath> startup_below(std::string_view path, std::string_view home);

}  // namespace capgate::core
