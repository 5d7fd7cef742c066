// The tables of sensitive.h as its lookups want them: sorted by bytes, with absolute entries before
// those of the home directory. Only sensitive.cc needs this; everyone else asks sensitive.h.
#pragma once

#include <span>
#include <string_view>

#include "core/sensitive.h"

namespace capgate::core {

// Entries with an absolute path, and entries that start with "~/"; each part is sorted by path.
template <typename Entry>
struct SplitTable {
  std::span<const Entry> absolute;
  std::span<const Entry> home;
};

[[nodiscard]] SplitTable<CredentialPath> split_credential_paths();
[[nodiscard]] SplitTable<StartupPath> split_startup_paths();

// Exact names, sorted, and beginnings of names.
[[nodiscard]] std::span<const std::string_view> loader_variables();
[[nodiscard]] std::span<const std::string_view> loader_variable_prefixes();

struct ControlSocket {
  std::string_view path;
  std::string_view controls;
};
// Absolute paths, spelled with /run; paths below /run/user/UID; names that mean the same anywhere.
[[nodiscard]] std::span<const ControlSocket> system_control_sockets();
[[nodiscard]] std::span<const ControlSocket> user_control_sockets();
[[nodiscard]] std::span<const ControlSocket> control_socket_names();

}  // namespace capgate::core
