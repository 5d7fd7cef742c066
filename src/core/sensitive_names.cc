// The tables of names: files of a workspace, control sockets, environment variables.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "core/client_places_table.h"
#include "core/sensitive_tables.h"

namespace capgate::core {
namespace {

constexpr std::string_view secret_names[] = {
    ".env",
    ".env.development",
    ".env.development.local",
    ".env.local",
    ".env.production",
    ".env.production.local",
    ".env.staging",
    ".env.test",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "service-account.json",
    "terraform.tfstate",
    "terraform.tfstate.backup",
};

constexpr std::string_view secret_globs[] = {".env",
                                             ".env.*",
                                             ".envrc",
                                             "*.pem",
                                             "*.key",
                                             "*.p12",
                                             "*.pfx",
                                             "*.kdbx",
                                             "id_rsa",
                                             "id_ed25519",
                                             "id_ecdsa",
                                             "id_dsa",
                                             "credentials.json",
                                             "service-account*.json",
                                             ".git/config",
                                             "terraform.tfstate*",
                                             "secrets.*ml"};

// The list of process-sandbox.md section 3, then agent settings that start programs on the host
// (hooks, server commands) and that a server in the workspace could otherwise plant. The clients'
// own files come from client_places.h.
constexpr std::string_view workspace_files[] = {".gitconfig",
                                                ".gitmodules",
                                                ".bashrc",
                                                ".bash_profile",
                                                ".zshrc",
                                                ".zprofile",
                                                ".profile",
                                                ".ripgreprc",
                                                ".vscode",
                                                ".idea",
                                                ".claude/commands",
                                                ".claude/agents",
                                                ".git/hooks",
                                                ".git/config",
                                                ".git/commondir",
                                                ".git/config.worktree",
                                                ".envrc",
                                                ".tool-versions",
                                                ".npmrc",
                                                ".yarnrc",
                                                ".yarnrc.yml",
                                                ".pnp.cjs",
                                                ".pre-commit-config.yaml",
                                                ".husky",
                                                ".github/workflows",
                                                ".devcontainer",
                                                ".claude/settings.json",
                                                ".claude/settings.local.json"};

// Sorted, so that a directory precedes what lies in it: it is mounted first.
consteval auto sorted_protected() {
  std::array<std::string_view,
             std::size(workspace_files) + client_tables::count_with(project_prefix)>
      all;
  auto* end = std::ranges::copy(workspace_files, all.begin()).out;
  for (const ClientConfig& client : client_tables::all) {
    for (const std::string_view place : client.places) {
      if (place.starts_with(project_prefix)) *end++ = place.substr(project_prefix.size());
    }
  }
  std::ranges::sort(all);
  const auto doubles = std::ranges::unique(all);
  return std::pair(all, static_cast<std::size_t>(doubles.begin() - all.begin()));
}
constexpr auto workspace_protected = sorted_protected();

constexpr ControlSocket system_sockets[] = {
    {"/run/docker.sock", "the Docker engine"},
    {"/run/dockershim.sock", "the Kubernetes runtime"},
    {"/run/cri-dockerd.sock", "the Kubernetes runtime"},
    {"/run/podman/podman.sock", "the Podman engine"},
    {"/run/containerd/containerd.sock", "the containerd engine"},
    {"/run/containerd/containerd.sock.ttrpc", "the containerd engine"},
    {"/run/containerd/debug.sock", "the containerd engine"},
    {"/run/k3s/containerd/containerd.sock", "the containerd engine of k3s"},
    {"/run/crio/crio.sock", "the CRI-O engine"},
    {"/run/buildkit/buildkitd.sock", "the BuildKit daemon"},
    {"/run/lxd.socket", "the LXD daemon"},
    {"/var/lib/lxd/unix.socket", "the LXD daemon"},
    {"/var/snap/lxd/common/lxd/unix.socket", "the LXD daemon"},
    {"/run/incus/unix.socket", "the Incus daemon"},
    {"/var/lib/incus/unix.socket", "the Incus daemon"},
    {"/run/libvirt/libvirt-sock", "the libvirt daemon"},
    {"/run/libvirt/libvirt-sock-ro", "the libvirt daemon"},
    {"/run/libvirt/libvirt-admin-sock", "the libvirt daemon"},
    {"/run/libvirt/virtqemud-sock", "the libvirt daemon"},
    {"/run/libvirt/virtqemud-admin-sock", "the libvirt daemon"},
    {"/run/snapd.socket", "the snap daemon"},
    {"/run/snapd-snap.socket", "the snap daemon"},
    {"/run/systemd/private", "systemd"},
    {"/run/systemd/notify", "systemd"},
    {"/run/dbus/system_bus_socket", "the system bus, and systemd through it"},
};

constexpr ControlSocket user_sockets[] = {
    {"docker.sock", "the rootless Docker engine"},
    {"docker/docker.sock", "the rootless Docker engine"},
    {"podman/podman.sock", "the rootless Podman engine"},
    {"containerd/containerd.sock", "the rootless containerd engine"},
    {"containerd-rootless/api.sock", "the rootless containerd engine"},
    {"buildkit/buildkitd.sock", "the rootless BuildKit daemon"},
    {"libvirt/libvirt-sock", "the user's libvirt daemon"},
    {"libvirt/virtqemud-sock", "the user's libvirt daemon"},
    {"systemd/private", "the user's systemd"},
    {"systemd/notify", "the user's systemd"},
    {"bus", "the session bus, and the user's systemd through it"},
    {"dbus/user_bus_socket", "the session bus, and the user's systemd through it"},
};

// Desktop engines and virtual machines put these into directories of their own
// (~/.docker/run/docker.sock, ~/.colima/default/docker.sock ...).
constexpr ControlSocket socket_names[] = {
    {"docker.sock", "a Docker engine"},   {"docker.raw.sock", "a Docker engine"},
    {"podman.sock", "a Podman engine"},   {"containerd.sock", "a containerd engine"},
    {"crio.sock", "a CRI-O engine"},      {"buildkitd.sock", "a BuildKit daemon"},
    {"libvirt-sock", "a libvirt daemon"},
};

// The sandbox sets these itself; another value would undo its private HOME and its list of
// programs.
constexpr std::string_view set_by_the_sandbox[] = {"PATH", "HOME", "TMPDIR"};

// The C library loads code, or answers name look-ups, as these say: what glibc itself drops for
// set-user-id programs (LD_* and DYLD_* are prefixes, below).
constexpr std::string_view c_library[] = {"GCONV_PATH",  "GETCONF_DIR",      "GLIBC_TUNABLES",
                                          "LOCPATH",     "NLSPATH",          "HOSTALIASES",
                                          "LOCALDOMAIN", "RESOLV_HOST_CONF", "RES_OPTIONS"};

// A shell runs or splits according to these before its first line.
constexpr std::string_view shells[] = {
    "BASH_ENV",       "ENV",     "SHELLOPTS", "BASHOPTS", "IFS",
    "PROMPT_COMMAND", "ZDOTDIR", "CDPATH",    "PS4",      "FPATH"};

// Interpreters load modules, options or agents from these before the program starts.
constexpr std::string_view interpreters[] = {"NODE_OPTIONS",
                                             "NODE_PATH",
                                             "NODE_REPL_EXTERNAL_MODULE",
                                             "BUN_OPTIONS",
                                             "ELECTRON_RUN_AS_NODE",
                                             "PYTHONPATH",
                                             "PYTHONSTARTUP",
                                             "PYTHONHOME",
                                             "PYTHONUSERBASE",
                                             "PYTHONBREAKPOINT",
                                             "PYTHONEXECUTABLE",
                                             "PYTHONINSPECT",
                                             "PYTHONPLATLIBDIR",
                                             "PYTHONPYCACHEPREFIX",
                                             "PYTHONWARNINGS",
                                             "PERL5LIB",
                                             "PERL5OPT",
                                             "PERL5DB",
                                             "PERLLIB",
                                             "RUBYOPT",
                                             "RUBYLIB",
                                             "GEM_HOME",
                                             "GEM_PATH",
                                             "BUNDLE_GEMFILE",
                                             "PHPRC",
                                             "PHP_INI_SCAN_DIR",
                                             "CLASSPATH",
                                             "JAVA_TOOL_OPTIONS",
                                             "_JAVA_OPTIONS",
                                             "JDK_JAVA_OPTIONS",
                                             "DOTNET_STARTUP_HOOKS",
                                             "DOTNET_ADDITIONAL_DEPS",
                                             "CORECLR_ENABLE_PROFILING",
                                             "CORECLR_PROFILER",
                                             "CORECLR_PROFILER_PATH",
                                             "R_PROFILE",
                                             "R_PROFILE_USER"};

// These name a program, or a directory of programs, that another program runs. GIT_SSH* and
// GIT_CONFIG* (whose keys name programs too) are prefixes, below.
constexpr std::string_view helper_programs[] = {"GIT_EXEC_PATH",
                                                "GIT_EXTERNAL_DIFF",
                                                "GIT_PROXY_COMMAND",
                                                "GIT_EDITOR",
                                                "GIT_SEQUENCE_EDITOR",
                                                "GIT_PAGER",
                                                "GIT_ASKPASS",
                                                "GIT_TEMPLATE_DIR",
                                                "SSH_ASKPASS",
                                                "SUDO_ASKPASS",
                                                "LESSOPEN",
                                                "LESSCLOSE",
                                                "EDITOR",
                                                "VISUAL",
                                                "PAGER",
                                                "MANPAGER",
                                                "BROWSER",
                                                "SHELL"};

// These decide whom TLS trusts, or load code into it: a foreign root would let anyone on the way
// read what the broker protects. The broker's own root reaches the sandbox without them.
constexpr std::string_view trust[] = {
    "SSL_CERT_FILE",      "SSL_CERT_DIR",   "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",      "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",  "OPENSSL_CONF",   "OPENSSL_MODULES",     "OPENSSL_ENGINES"};

constexpr std::span<const std::string_view> variable_groups[] = {
    set_by_the_sandbox, c_library, shells, interpreters, helper_programs, trust};

consteval std::size_t count_variables() {
  std::size_t count = 0;
  for (const auto group : variable_groups) {
    count += group.size();
  }
  return count;
}

consteval auto sorted_variables() {
  std::array<std::string_view, count_variables()> out;
  std::size_t next = 0;
  for (const auto group : variable_groups) {
    for (const std::string_view name : group) {
      out[next++] = name;
    }
  }
  std::ranges::sort(out);
  return out;
}
constexpr auto variables = sorted_variables();

// Lua reads LUA_INIT and, before it, LUA_INIT_5_4: hence prefixes.
constexpr std::string_view variable_prefixes[] = {
    "LD_", "DYLD_", "GIT_SSH", "GIT_CONFIG", "BASH_FUNC_", "LUA_INIT", "LUA_PATH", "LUA_CPATH"};

}  // namespace

std::span<const std::string_view> workspace_secret_globs() { return secret_globs; }
std::span<const std::string_view> workspace_secret_names() { return secret_names; }
std::span<const std::string_view> protected_workspace_paths() {
  return std::span(workspace_protected.first).first(workspace_protected.second);
}
std::span<const std::string_view> loader_variables() { return variables; }
std::span<const std::string_view> loader_variable_prefixes() { return variable_prefixes; }
std::span<const ControlSocket> system_control_sockets() { return system_sockets; }
std::span<const ControlSocket> user_control_sockets() { return user_sockets; }
std::span<const ControlSocket> control_socket_names() { return socket_names; }

bool is_secret_name(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; });
  constexpr std::string_view ends[] = {"TOKEN", "_KEY", "APIKEY", "SECRET", "_PAT", "PASSWD"};
  return upper.contains("PASSWORD") || upper == "KEY" ||
         std::ranges::any_of(ends, [&](std::string_view end) { return upper.ends_with(end); });
}

}  // namespace capgate::core
