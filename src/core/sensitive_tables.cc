#include "core/sensitive_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/client_places_table.h"

namespace capgate::core {
namespace {

using Paths = std::span<const std::string_view>;

// Written by group, so that a reviewer can hold it against reference/process-sandbox.md section 4;
// sorted by the compiler. A family that the reference writes as a glob is spelled out.

constexpr std::string_view key_directories[] = {
    "~/.ssh",        "~/.gnupg",          "~/.pki",
    "~/.keys",       "~/.secrets",        "~/.credentials",
    "~/.age",        "~/.password-store", "~/.local/share/keyrings",
    "~/.config/age", "~/.config/sops",    "~/.local/share/kwalletd"};

constexpr std::string_view cloud_directories[] = {"~/.aws",
                                                  "~/.azure",
                                                  "~/.config/gcloud",
                                                  "~/.oci",
                                                  "~/.config/doctl",
                                                  "~/.config/hcloud",
                                                  "~/.fly",
                                                  "~/.config/flyctl",
                                                  "~/.vercel",
                                                  "~/.local/share/com.vercel.cli",
                                                  "~/.netlify",
                                                  "~/.config/netlify",
                                                  "~/.config/heroku",
                                                  "~/.wrangler",
                                                  "~/.config/.wrangler",
                                                  "~/.snowflake",
                                                  "~/.bluemix",
                                                  "~/.aliyun",
                                                  "~/.tccli",
                                                  "~/.config/scw",
                                                  "~/.config/rclone"};
// linode-cli keeps one file, not a directory, under both names.
constexpr std::string_view cloud_files[] = {"~/.boto", "~/.s3cfg", "~/.databricks.cfg",
                                            "~/.linode-cli", "~/.config/linode-cli"};

// $XDG_RUNTIME_DIR/containers/auth.json lies below /run/user, which is an entry itself.
constexpr std::string_view container_directories[] = {
    "~/.kube",   "~/.docker",  "~/.helm",      "~/.config/helm", "~/.terraform.d",
    "~/.pulumi", "~/.ansible", "~/.vagrant.d", "~/.minikube"};
constexpr std::string_view container_files[] = {"~/.config/containers/auth.json", "~/.terraformrc",
                                                "~/.vault-token"};

constexpr std::string_view forge_directories[] = {"~/.config/gh", "~/.config/glab-cli",
                                                  "~/.config/github-copilot"};
// hub's configuration is the file ~/.config/hub. .gitconfig may hold tokens (url.insteadOf,
// helpers).
constexpr std::string_view forge_files[] = {"~/.git-credentials", "~/.config/git/credentials",
                                            "~/.config/hub",      "~/.netrc",
                                            "~/_netrc",           "~/.authinfo",
                                            "~/.gitconfig",       "~/.authinfo.gpg"};

constexpr std::string_view registry_directories[] = {
    "~/.pip",    "~/.config/uv",   "~/.local/share/uv/credentials",
    "~/.nuget",  "~/.hex",         "~/.huggingface",
    "~/.kaggle", "~/.config/wandb"};
constexpr std::string_view registry_files[] = {"~/.npmrc",
                                               "~/.yarnrc",
                                               "~/.yarnrc.yml",
                                               "~/.config/pnpm/rc",
                                               "~/.pypirc",
                                               "~/.config/pip/pip.conf",
                                               "~/.cargo/credentials",
                                               "~/.cargo/credentials.toml",
                                               "~/.gem/credentials",
                                               "~/.bundle/config",
                                               "~/.m2/settings.xml",
                                               "~/.m2/settings-security.xml",
                                               "~/.m2/settings-security4.xml",
                                               "~/.gradle/gradle.properties",
                                               "~/.composer/auth.json",
                                               "~/.config/composer/auth.json",
                                               "~/.condarc",
                                               "~/.cache/huggingface/token"};

constexpr std::string_view database_directories[] = {
    "~/.config/mongosh",   "~/.config/DBeaver",   "~/.config/DBeaverData",
    "~/.config/DBeaverCE", "~/.config/DBeaverEE", "~/.local/share/DBeaverData",
    "~/.cassandra"};
constexpr std::string_view database_files[] = {
    "~/.pgpass",     "~/.pg_service.conf", "~/.my.cnf",       "~/.mylogin.cnf",
    "~/.mongorc.js", "~/.dbshell",         "~/.rediscli_auth"};

constexpr std::string_view agent_directories[] = {"~/.claude",
                                                  "~/.config/claude",
                                                  "~/.config/Claude",
                                                  "~/.codex",
                                                  "~/.gemini",
                                                  "~/.cursor",
                                                  "~/.config/Cursor",
                                                  "~/.copilot",
                                                  "~/.continue",
                                                  "~/.cline",
                                                  "~/.codeium",
                                                  "~/.windsurf",
                                                  "~/.aider",
                                                  "~/.aider.tags.cache.v3",
                                                  "~/.aider.tags.cache.v4",
                                                  "~/.openclaw",
                                                  "~/.hermes",
                                                  "~/.rampart",
                                                  "~/.mcp-auth",
                                                  "~/.config/mcp",
                                                  "~/.config/opencode",
                                                  "~/.local/share/opencode",
                                                  "~/.config/goose"};
constexpr std::string_view agent_files[] = {"~/.claude.json",
                                            "~/.aider.conf.yml",
                                            "~/.aider.input.history",
                                            "~/.aider.chat.history.md",
                                            "~/.aider.llm.history",
                                            "~/.aider.model.settings.yml",
                                            "~/.aider.model.metadata.json",
                                            "~/.ollama/id_ed25519",
                                            "~/.ollama/id_ed25519.pub"};

// A server that could write here would choose its own policy, or forge the record of what it did.
constexpr std::string_view own_directories[] = {"~/.config/capgate", "~/.local/state/capgate",
                                                "~/.local/share/capgate", "~/.cache/capgate"};

constexpr std::string_view browser_directories[] = {"~/.mozilla",
                                                    "~/.librewolf",
                                                    "~/.thunderbird",
                                                    "~/.config/google-chrome",
                                                    "~/.config/google-chrome-beta",
                                                    "~/.config/google-chrome-unstable",
                                                    "~/.config/google-chrome-canary",
                                                    "~/.config/google-chrome-for-testing",
                                                    "~/.config/chromium",
                                                    "~/.config/BraveSoftware",
                                                    "~/.config/microsoft-edge",
                                                    "~/.config/microsoft-edge-beta",
                                                    "~/.config/microsoft-edge-dev",
                                                    "~/.config/microsoft-edge-canary",
                                                    "~/.config/vivaldi",
                                                    "~/.config/opera",
                                                    "~/.config/Signal",
                                                    "~/.config/Slack",
                                                    "~/.config/discord",
                                                    "~/.config/Element",
                                                    "~/.var/app",
                                                    "~/snap/firefox",
                                                    "~/snap/chromium"};

constexpr std::string_view password_directories[] = {"~/.config/1Password",
                                                     "~/.config/op",
                                                     "~/.config/Bitwarden",
                                                     "~/.config/Bitwarden CLI",
                                                     "~/.config/keepassxc",
                                                     "~/.local/share/bitwarden",
                                                     "~/.lastpass",
                                                     "~/.config/Keybase",
                                                     "~/.config/keybase",
                                                     "~/.config/keybase.devel",
                                                     "~/.config/keybase.staging"};

constexpr std::string_view wallet_directories[] = {"~/.bitcoin",       "~/.ethereum",
                                                   "~/.config/solana", "~/.electrum",
                                                   "~/.monero",        "~/.config/Exodus"};

// .config/*/History: browsers are whole entries above; these are the editors that keep one.
constexpr std::string_view history_directories[] = {
    "~/.config/Code/History", "~/.config/Code/User/History", "~/.config/VSCodium/History",
    "~/.config/VSCodium/User/History"};
constexpr std::string_view history_files[] = {
    "~/.bash_history",   "~/.zsh_history",
    "~/.histfile",       "~/.local/share/fish/fish_history",
    "~/.python_history", "~/.node_repl_history",
    "~/.psql_history",   "~/.mysql_history",
    "~/.sqlite_history", "~/.rediscli_history",
    "~/.lesshst",        "~/.viminfo",
    "~/.wget-hsts"};

// TODO(security): APFS ignores case, so the macOS target has to fold case before it asks.
constexpr std::string_view macos_directories[] = {"~/Library/Keychains",
                                                  "~/Library/Cookies",
                                                  "~/Library/Mail",
                                                  "~/Library/Messages",
                                                  "~/Library/Safari",
                                                  "~/Library/Accounts",
                                                  "~/Library/IdentityServices",
                                                  "~/Library/Group Containers",
                                                  "~/Library/Containers",
                                                  "~/Library/LaunchAgents",
                                                  "~/Library/Preferences",
                                                  "~/Library/Application Support/Google",
                                                  "~/Library/Application Support/Firefox",
                                                  "~/Library/Application Support/BraveSoftware",
                                                  "~/Library/Application Support/Microsoft Edge",
                                                  "~/Library/Application Support/1Password",
                                                  "~/Library/Application Support/Bitwarden",
                                                  "~/Library/Application Support/Claude",
                                                  "~/Library/Application Support/Cursor",
                                                  "~/Library/Application Support/Code",
                                                  "~/Library/Application Support/Slack",
                                                  "~/Library/Application Support/Signal",
                                                  "~/Library/Application Support/com.apple.TCC",
                                                  "~/Library/Application Support/AddressBook",
                                                  "/Library/Keychains",
                                                  "/Library/LaunchAgents",
                                                  "/Library/LaunchDaemons",
                                                  "~/.zsh_sessions",
                                                  "/Volumes"};

// /var/run is a link to /run on every current distribution, but a grant may use either spelling.
constexpr std::string_view system_directories[] = {
    "/etc/sudoers.d",      "/etc/ssh",      "/etc/wireguard",  "/etc/NetworkManager",
    "/etc/netplan",        "/etc/openvpn",  "/etc/docker",     "/etc/kubernetes",
    "/etc/rancher",        "/root",         "/var/lib/docker", "/var/lib/kubelet",
    "/var/lib/rancher",    "/run/docker",   "/run/containerd", "/run/crio",
    "/run/podman",         "/run/user",     "/run/secrets",    "/var/run/docker",
    "/var/run/containerd", "/var/run/crio", "/var/run/podman", "/var/run/user",
    "/var/run/secrets",    "/sys/firmware"};
constexpr std::string_view system_files[] = {
    "/etc/shadow",      "/etc/shadow-",         "/etc/gshadow",       "/etc/gshadow-",
    "/etc/sudoers",     "/etc/sudoers.dist",    "/etc/master.passwd", "/etc/krb5.keytab",
    "/run/docker.sock", "/var/run/docker.sock", "/run/docker.pid",    "/var/run/docker.pid",
    "/run/podman.sock", "/var/run/podman.sock", "/proc/kcore"};

struct CredentialRow {
  std::string_view group;
  SensitiveKind kind;
  Paths paths;
};
constexpr CredentialRow credential_rows[] = {
    {"keys", SensitiveKind::directory, key_directories},
    {"cloud", SensitiveKind::directory, cloud_directories},
    {"cloud", SensitiveKind::file, cloud_files},
    {"containers", SensitiveKind::directory, container_directories},
    {"containers", SensitiveKind::file, container_files},
    {"forges", SensitiveKind::directory, forge_directories},
    {"forges", SensitiveKind::file, forge_files},
    {"registries", SensitiveKind::directory, registry_directories},
    {"registries", SensitiveKind::file, registry_files},
    {"databases", SensitiveKind::directory, database_directories},
    {"databases", SensitiveKind::file, database_files},
    {"agents", SensitiveKind::directory, agent_directories},
    {"agents", SensitiveKind::file, agent_files},
    {"capgate", SensitiveKind::directory, own_directories},
    {"browsers", SensitiveKind::directory, browser_directories},
    {"passwords", SensitiveKind::directory, password_directories},
    {"wallets", SensitiveKind::directory, wallet_directories},
    {"histories", SensitiveKind::directory, history_directories},
    {"histories", SensitiveKind::file, history_files},
    {"macos", SensitiveKind::directory, macos_directories},
    {"system", SensitiveKind::directory, system_directories},
    {"system", SensitiveKind::file, system_files},
};

constexpr std::string_view startup_directories[] = {
    "~/.config/fish",
    "~/.config/autostart",
    "~/.config/systemd/user",
    "~/.local/bin",
    "~/.local/lib",
    "~/.local/share/applications",
    "~/.local/share/systemd",
    "~/.local/share/dbus-1",
    "~/.config/environment.d",
    "~/.config/nvim",
    "~/.emacs.d",
    "~/.config/git",
    "~/.config/pip",
    "~/bin",
    "/var/spool/cron",  // the crontabs of all users
};
constexpr std::string_view startup_files[] = {
    "~/.bashrc",         "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases",
    "~/.profile",        "~/.zshrc",        "~/.zshenv",     "~/.zprofile",    "~/.zlogin",
    "~/.zlogout",        "~/.vimrc",        "~/.xprofile",   "~/.xinitrc",     "~/.inputrc",
    "~/.emacs",          "~/.emacs.el",     "~/.emacs.elc",  "~/.gitconfig",   "~/.npmrc",
    "~/.pam_environment"};

struct StartupRow {
  SensitiveKind kind;
  Paths paths;
};
// The clients' files of the home directory, from client_places.h.
consteval auto client_files_of_home() {
  std::array<std::string_view, client_tables::count_with(home_prefix)> out;
  auto* end = out.begin();
  for (const ClientConfig& client : client_tables::all) {
    for (const std::string_view place : client.places) {
      if (place.starts_with(home_prefix)) *end++ = place;
    }
  }
  return out;
}
constexpr auto client_files = client_files_of_home();

constexpr StartupRow startup_rows[] = {{SensitiveKind::directory, startup_directories},
                                       {SensitiveKind::file, startup_files},
                                       {SensitiveKind::file, client_files}};

consteval std::size_t count_paths(const auto& rows) {
  std::size_t count = 0;
  for (const auto& row : rows) {
    count += row.paths.size();
  }
  return count;
}

consteval auto sorted_credentials() {
  std::array<CredentialPath, count_paths(credential_rows)> out;
  std::size_t next = 0;
  for (const CredentialRow& row : credential_rows) {
    for (const std::string_view path : row.paths) {
      out[next++] = {.group = row.group, .path = path, .kind = row.kind};
    }
  }
  std::ranges::sort(out, {}, &CredentialPath::path);
  return out;
}

consteval auto sorted_startup() {
  std::array<StartupPath, count_paths(startup_rows)> out;
  std::size_t next = 0;
  for (const StartupRow& row : startup_rows) {
    for (const std::string_view path : row.paths) {
      out[next++] = {.path = path, .kind = row.kind};
    }
  }
  std::ranges::sort(out, {}, &StartupPath::path);
  return out;
}

constexpr auto credentials = sorted_credentials();
constexpr auto startup = sorted_startup();

// The split works because '/' sorts before '~'.
template <typename Entry>
constexpr SplitTable<Entry> split(std::span<const Entry> sorted) {
  const auto first_home =
      std::ranges::find_if(sorted, [](const Entry& entry) { return entry.path.starts_with('~'); });
  const auto count = static_cast<std::size_t>(first_home - sorted.begin());
  return {.absolute = sorted.first(count), .home = sorted.subspan(count)};
}

constexpr SplitTable<CredentialPath> split_credentials = split<CredentialPath>(credentials);
constexpr SplitTable<StartupPath> split_startup = split<StartupPath>(startup);

}  // namespace

std::span<const CredentialPath> credential_paths() { return credentials; }
std::span<const StartupPath> home_startup_paths() { return startup; }
SplitTable<CredentialPath> split_credential_paths() { return split_credentials; }
SplitTable<StartupPath> split_startup_paths() { return split_startup; }

}  // namespace capgate::core
