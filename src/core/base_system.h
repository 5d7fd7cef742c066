// The system that every sandbox shows, read-only, whatever a manifest grants: what programs are
// loaded from and the files of /etc that they need. Not every host has them all.
#pragma once

#include <algorithm>
#include <string_view>

namespace capgate::core {

inline constexpr std::string_view system_directories[] = {"/bin",    "/lib",  "/lib32", "/lib64",
                                                          "/libx32", "/sbin", "/usr"};

// None of them holds a secret. Everything else of /etc stays away: machine ids, keys, network
// secrets and tokens.
inline constexpr std::string_view base_etc_paths[] = {
    "/etc/alternatives",    "/etc/ca-certificates", "/etc/ca-certificates.conf",
    "/etc/crypto-policies", "/etc/ld.so.cache",     "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",    "/etc/mime.types",      "/etc/os-release",
    "/etc/pki/ca-trust",    "/etc/pki/tls/certs",   "/etc/pki/tls/cert.pem",
    "/etc/protocols",       "/etc/services",        "/etc/ssl/cert.pem",
    "/etc/ssl/certs",       "/etc/ssl/openssl.cnf",
};

// What clock:tzdata opens.
inline constexpr std::string_view timezone_file = "/etc/localtime";

// sandbox-runtime's relay inside its sandbox connects to its proxy outside over such a socket in
// its TMPDIR: settings with a deny of `/` must let it be read.
inline constexpr std::string_view srt_proxy_sockets = "claude-http-*.sock";

// One of these paths itself.
[[nodiscard]] constexpr bool is_base_system(std::string_view path) {
  return std::ranges::find(system_directories, path) != std::end(system_directories) ||
         std::ranges::find(base_etc_paths, path) != std::end(base_etc_paths);
}

}  // namespace capgate::core
