#include "core/sensitive.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/sensitive_tables.h"

namespace capgate::core {
namespace {

using Names = std::vector<std::string>;

// ---- The tables themselves -------------------------------------------------------------------

// Written out from the reference, independent of the tables, with globs in one known spelling.
constexpr std::string_view documented_in_home =
    R"(.ssh, .gnupg, .pki, .keys, .secrets, .credentials, .password-store, .local/share/keyrings,
.local/share/kwalletd, .age, .config/age, .config/sops, .aws, .azure, .config/gcloud, .boto,
.s3cfg, .oci, .config/doctl, .config/hcloud, .linode-cli, .config/linode-cli, .fly,
.config/flyctl, .vercel, .local/share/com.vercel.cli, .netlify, .config/netlify, .config/heroku,
.wrangler, .config/.wrangler, .databricks.cfg, .snowflake, .bluemix, .aliyun, .tccli,
.config/scw, .config/rclone, .kube, .docker, .config/containers/auth.json, .helm, .config/helm,
.terraform.d, .terraformrc, .pulumi, .ansible, .vault-token, .vagrant.d, .minikube,
.git-credentials, .config/git/credentials, .config/gh, .config/hub, .config/glab-cli,
.config/github-copilot, .netrc, _netrc, .authinfo, .authinfo.gpg, .gitconfig, .npmrc, .yarnrc,
.yarnrc.yml, .config/pnpm/rc, .pypirc, .config/pip/pip.conf, .pip, .config/uv,
.local/share/uv/credentials, .cargo/credentials, .cargo/credentials.toml, .gem/credentials,
.bundle/config, .m2/settings.xml, .m2/settings-security.xml, .gradle/gradle.properties, .nuget,
.composer/auth.json, .config/composer/auth.json, .hex, .condarc, .cache/huggingface/token,
.huggingface, .kaggle, .config/wandb, .pgpass, .pg_service.conf, .my.cnf, .mylogin.cnf,
.mongorc.js, .config/mongosh, .dbshell, .rediscli_auth, .config/DBeaver, .config/DBeaverData,
.cassandra, .claude, .claude.json, .config/claude, .config/Claude, .codex, .gemini, .cursor,
.config/Cursor, .copilot, .continue, .cline, .codeium, .windsurf, .aider, .aider.conf.yml,
.openclaw, .hermes, .rampart, .mcp-auth, .config/mcp, .ollama/id_ed25519, .config/opencode,
.local/share/opencode, .config/goose, .config/capgate, .local/state/capgate,
.local/share/capgate, .cache/capgate, .mozilla, .librewolf, .thunderbird, .config/google-chrome,
.config/google-chrome-beta, .config/chromium, .config/BraveSoftware, .config/microsoft-edge,
.config/microsoft-edge-dev, .config/vivaldi, .config/opera, .config/Signal, .config/Slack,
.config/discord, .config/Element, .var/app, snap/firefox, snap/chromium, .config/1Password,
.config/op, .config/Bitwarden, .config/Bitwarden CLI, .config/keepassxc, .local/share/bitwarden,
.lastpass, .config/Keybase, .config/keybase, .bitcoin, .ethereum, .config/solana, .electrum,
.monero, .config/Exodus, .bash_history, .zsh_history, .histfile, .local/share/fish/fish_history,
.python_history, .node_repl_history, .psql_history, .mysql_history, .sqlite_history,
.rediscli_history, .lesshst, .viminfo, .wget-hsts, .config/Code/History, Library/Keychains,
Library/Cookies, Library/Mail, Library/Messages, Library/Safari, Library/Accounts,
Library/IdentityServices, Library/Group Containers, Library/Containers, Library/LaunchAgents,
Library/Preferences, Library/Application Support/Google, Library/Application Support/Firefox,
Library/Application Support/BraveSoftware, Library/Application Support/Microsoft Edge,
Library/Application Support/1Password, Library/Application Support/Bitwarden,
Library/Application Support/Claude, Library/Application Support/Cursor,
Library/Application Support/Code, Library/Application Support/Slack,
Library/Application Support/Signal, Library/Application Support/com.apple.TCC,
Library/Application Support/AddressBook, .zsh_sessions)";

constexpr std::string_view documented_in_system =
    R"(/etc/shadow, /etc/shadow-, /etc/gshadow, /etc/gshadow-, /etc/sudoers, /etc/sudoers.d,
/etc/master.passwd, /etc/ssh, /etc/krb5.keytab, /etc/wireguard, /etc/NetworkManager,
/etc/netplan, /etc/openvpn, /etc/docker, /etc/kubernetes, /etc/rancher, /root, /var/lib/docker,
/var/lib/kubelet, /var/lib/rancher, /var/run/docker.sock, /run/docker, /run/docker.sock,
/run/containerd, /run/crio, /run/podman, /run/user, /run/secrets, /var/run/secrets, /proc/kcore,
/sys/firmware, /Library/Keychains, /Library/LaunchAgents, /Library/LaunchDaemons, /Volumes)";

constexpr std::string_view documented_startup =
    R"(.bashrc, .bash_profile, .bash_login, .bash_logout, .bash_aliases, .profile, .zshrc, .zshenv,
.zprofile, .zlogin, .zlogout, .config/fish, .config/autostart, .config/systemd/user, .local/bin,
.local/lib, .local/share/applications, .local/share/systemd, .local/share/dbus-1,
.config/environment.d, .pam_environment, .xprofile, .xinitrc, .inputrc, .vimrc, .config/nvim,
.emacs, .emacs.d, .emacs.el, .gitconfig, .config/git, .npmrc, .config/pip, bin)";

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view item : split(text, ',')) {
    out.emplace_back(trim(item));
  }
  return out;
}

const CredentialPath* entry_spelled(std::string_view path) {
  const auto found = std::ranges::find(credential_paths(), path, &CredentialPath::path);
  return found == credential_paths().end() ? nullptr : &*found;
}

TEST(SensitiveTables, HoldEveryDocumentedCredentialPath) {
  for (const std::string& path : listed(documented_in_home)) {
    EXPECT_NE(entry_spelled("~/" + path), nullptr) << path;
  }
  for (const std::string& path : listed(documented_in_system)) {
    EXPECT_NE(entry_spelled(path), nullptr) << path;
  }
}

TEST(SensitiveTables, HoldEveryDocumentedStartupPath) {
  std::set<std::string_view> present;
  for (const StartupPath& entry : home_startup_paths()) {
    present.insert(entry.path);
  }
  for (const std::string& path : listed(documented_startup)) {
    EXPECT_TRUE(present.contains("~/" + path)) << path;
  }
  EXPECT_TRUE(present.contains("/var/spool/cron")) << "the documented \"crontabs\"";
}

template <typename Entry>
void expect_canonical_sorted_and_unique(std::span<const Entry> table) {
  std::string_view before;
  for (const Entry& entry : table) {
    EXPECT_LT(before, entry.path) << "sorted, and no path twice";
    before = entry.path;
    EXPECT_TRUE(entry.path.starts_with('/') || entry.path.starts_with("~/")) << entry.path;
    EXPECT_FALSE(entry.path.ends_with('/')) << entry.path;
    EXPECT_EQ(entry.path.find_first_of("*?[]{}$\\"), std::string_view::npos) << entry.path;
    for (const std::string_view bad : {"//", "/./", "/../"}) {
      EXPECT_EQ(entry.path.find(bad), std::string_view::npos) << entry.path;
    }
  }
}

TEST(SensitiveTables, AreCanonicalSortedAndWithoutDuplicates) {
  expect_canonical_sorted_and_unique(credential_paths());
  expect_canonical_sorted_and_unique(home_startup_paths());
  for (const CredentialPath& entry : credential_paths()) {
    EXPECT_FALSE(entry.group.empty()) << entry.path;
  }
}

TEST(SensitiveTables, KnowWhichEntriesAreFiles) {
  for (const std::string_view file : {"~/.netrc", "~/.gitconfig", "~/.config/hub", "~/.claude.json",
                                      "/etc/shadow", "~/.config/containers/auth.json"}) {
    ASSERT_NE(entry_spelled(file), nullptr) << file;
    EXPECT_EQ(entry_spelled(file)->kind, SensitiveKind::file) << file;
  }
  for (const std::string_view directory : {"~/.ssh", "~/.config/gh", "/root", "/run/user"}) {
    ASSERT_NE(entry_spelled(directory), nullptr) << directory;
    EXPECT_EQ(entry_spelled(directory)->kind, SensitiveKind::directory) << directory;
  }
}

TEST(SensitiveTables, ProtectTheDocumentedWorkspaceFiles) {
  const auto table = protected_workspace_paths();
  for (const std::string_view path : {".gitconfig",     ".gitmodules",
                                      ".bashrc",        ".bash_profile",
                                      ".zshrc",         ".zprofile",
                                      ".profile",       ".ripgreprc",
                                      ".mcp.json",      ".vscode",
                                      ".idea",          ".claude/commands",
                                      ".claude/agents", ".git/hooks",
                                      ".git/config",    ".envrc",
                                      ".tool-versions", ".npmrc",
                                      ".yarnrc",        ".yarnrc.yml",
                                      ".pnp.cjs",       ".pre-commit-config.yaml",
                                      ".husky",         ".github/workflows",
                                      ".devcontainer"}) {
    EXPECT_NE(std::ranges::find(table, path), table.end()) << path;
  }
  EXPECT_EQ(std::ranges::find(table, "Makefile"), table.end()) << "deliberately writable";
}

TEST(SensitiveTables, HaveSortedVariablesWithoutDuplicates) {
  const auto names = loader_variables();
  EXPECT_EQ(std::ranges::adjacent_find(names, std::ranges::greater_equal{}), names.end());
}

// ---- Secrets in workspaces -------------------------------------------------------------------

TEST(IsWorkspaceSecret, LooksAtTheEndOfThePath) {
  for (const std::string_view secret : {".env",
                                        "/w/.env",
                                        "/w/.env.production",
                                        "/w/.envrc",
                                        "a/tls.pem",
                                        "a/tls.key",
                                        "a/x.p12",
                                        "a/x.pfx",
                                        "a/db.kdbx",
                                        "id_rsa",
                                        "/w/id_ed25519",
                                        "id_ecdsa",
                                        "id_dsa",
                                        "credentials.json",
                                        "service-account.json",
                                        "service-account-prod.json",
                                        ".git/config",
                                        "/w/.git/config",
                                        "terraform.tfstate",
                                        "terraform.tfstate.backup",
                                        "secrets.yaml",
                                        "secrets.toml.ml"}) {
    EXPECT_TRUE(is_workspace_secret(secret)) << secret;
  }
  for (const std::string_view harmless :
       {"", "env", ".environment", "/w/.env/readme", ".env.example", "a/.env.sample",
        ".env.template", "id_rsa.pub", "x.git/config", "git/config", "secrets.json",
        "service-accoun.json", "pem", "monkey"}) {
    EXPECT_FALSE(is_workspace_secret(harmless)) << harmless;
  }
}

// ---- Scopes ----------------------------------------------------------------------------------

TEST(RefusedScope, SaysInWordsWhyAScopeIsRefused) {
  struct Case {
    std::string_view path;
    std::string_view home;
    std::string_view reason;
  };
  for (const auto& [path, home, reason] : std::initializer_list<Case>{
           {"/", "", "/ is the whole machine"},
           {"/etc", "", "/etc holds the configuration and the secrets of the whole machine"},
           {"/run", "", "/run holds the sockets and the secrets of the whole machine"},
           {"/var/run", "", "/var/run holds the sockets and the secrets of the whole machine"},
           {"/proc", "", "/proc is the sandbox's own"},
           {"/proc/self/fd", "", "/proc/self/fd lies in /proc, which is the sandbox's own"},
           {"/sys", "", "/sys is the sandbox's own"},
           {"/sys/fs", "", "/sys/fs lies in /sys, which is the sandbox's own"},
           {"/dev", "", "/dev is the sandbox's own"},
           {"/dev/kvm", "", "/dev/kvm lies in /dev, which is the sandbox's own"},
           {"/root", "", "/root is a home directory"},
           {"/home", "", "/home holds every home directory"},
           {"/home/u", "", "/home/u is a home directory"},
           {"/home/other", "/home/u", "/home/other is a home directory"},
           {"/home/u", "/home/u", "/home/u is the home directory"},
           {"/Users", "", "/Users holds every home directory"},
           {"/Users/alice", "", "/Users/alice is a home directory"},
           {"/data/alice", "/data/alice", "/data/alice is the home directory"},
           {"/data/alice", "/data/alice/", "/data/alice is the home directory"},
           {"/data", "/data/alice", "/data holds the home directory /data/alice"},
           {"/home/u", "/home/u/deep/home", "/home/u holds the home directory /home/u/deep/home"},
       }) {
    EXPECT_EQ(refused_scope(path, home), reason) << path;
  }
}

TEST(RefusedScope, LeavesEverythingElseToTheOtherQuestions) {
  for (const std::string_view path :
       {"/workspace", "/etc/hosts",       "/etcetera",     "/run/app",         "/runner",
        "/var",       "/var/runs",        "/var/run/app",  "/procs",           "/system",
        "/device",    "/home/u/project",  "/homes",        "/homes/u",         "/root/project",
        "/rootfs",    "/Users/alice/src", "/data/alicent", "/data/alice/work", "/usr",
        "/dat"}) {
    EXPECT_EQ(refused_scope(path, "/data/alice"), std::nullopt) << path;
  }
  EXPECT_EQ(refused_scope("/data/alice", ""), std::nullopt) << "a home that nobody named";
  EXPECT_EQ(refused_scope("/workspace", "/"), std::nullopt) << "HOME=/ refuses / alone";
  EXPECT_EQ(refused_scope("/workspace", "workspace"), std::nullopt) << "a relative home is none";
}

TEST(UnsafeWrite, NamesTheDirectoryThatMatches) {
  EXPECT_EQ(unsafe_write("/usr"), "/usr");
  EXPECT_EQ(unsafe_write("/usr/local/bin"), "/usr");
  EXPECT_EQ(unsafe_write("/etc/hosts"), "/etc");
  EXPECT_EQ(unsafe_write("/bin/sh"), "/bin");
  EXPECT_EQ(unsafe_write("/lib64"), "/lib64");
  EXPECT_EQ(unsafe_write("/boot/grub"), "/boot");
  for (const std::string_view path : {"/", "/usrx", "/etcetera", "/opt", "/var", "/library",
                                      "/lib6", "/workspace/usr", "/home/u/etc"}) {
    EXPECT_EQ(unsafe_write(path), std::nullopt) << path;
  }
}

// ---- Variables and sockets -------------------------------------------------------------------

TEST(IsLoaderVariable, KnowsNamesAndFamilies) {
  for (const std::string_view name : {"LD_PRELOAD",
                                      "LD_LIBRARY_PATH",
                                      "LD_",
                                      "DYLD_INSERT_LIBRARIES",
                                      "GCONV_PATH",
                                      "NODE_OPTIONS",
                                      "NODE_PATH",
                                      "NODE_EXTRA_CA_CERTS",
                                      "PYTHONPATH",
                                      "PYTHONSTARTUP",
                                      "PYTHONHOME",
                                      "PERL5LIB",
                                      "PERL5OPT",
                                      "RUBYOPT",
                                      "RUBYLIB",
                                      "BASH_ENV",
                                      "ENV",
                                      "SHELLOPTS",
                                      "IFS",
                                      "PATH",
                                      "HOME",
                                      "TMPDIR",
                                      "JAVA_TOOL_OPTIONS",
                                      "_JAVA_OPTIONS",
                                      "JDK_JAVA_OPTIONS",
                                      "GIT_SSH",
                                      "GIT_SSH_COMMAND",
                                      "GIT_EXEC_PATH",
                                      "GIT_CONFIG",
                                      "GIT_CONFIG_GLOBAL",
                                      "GIT_CONFIG_KEY_0",
                                      "SSL_CERT_FILE",
                                      "SSL_CERT_DIR",
                                      "LUA_INIT_5_4"}) {
    EXPECT_TRUE(is_loader_variable(name)) << name;
  }
}

TEST(IsLoaderVariable, LeavesOrdinaryNamesAlone) {
  for (const std::string_view name :
       {"", "GITHUB_PERSONAL_ACCESS_TOKEN", "LANG", "TZ", "DEBUG", "PATHS", "XPATH", "ENVIRONMENT",
        "HOMEPAGE", "LDAP_URL", "OLD_PRELOAD", "GIT_AUTHOR_NAME", "GIT_DIR", "HTTPS_PROXY",
        "NODE_ENV", "PYTHONUNBUFFERED", "JAVA_HOME"}) {
    EXPECT_FALSE(is_loader_variable(name)) << name;
  }
}

TEST(ControlSocket, IsKnownByPathByUserAndByName) {
  struct Case {
    std::string_view path;
    std::string_view controls;
  };
  for (const auto& [path, controls] : std::initializer_list<Case>{
           {"/run/docker.sock", "the Docker engine"},
           {"/var/run/docker.sock", "the Docker engine"},
           {"/run/podman/podman.sock", "the Podman engine"},
           {"/var/run/podman/podman.sock", "the Podman engine"},
           {"/run/containerd/containerd.sock", "the containerd engine"},
           {"/run/k3s/containerd/containerd.sock", "the containerd engine of k3s"},
           {"/run/crio/crio.sock", "the CRI-O engine"},
           {"/run/buildkit/buildkitd.sock", "the BuildKit daemon"},
           {"/var/snap/lxd/common/lxd/unix.socket", "the LXD daemon"},
           {"/run/libvirt/libvirt-sock", "the libvirt daemon"},
           {"/var/run/snapd.socket", "the snap daemon"},
           {"/run/systemd/private", "systemd"},
           {"/run/systemd/notify", "systemd"},
           {"/var/run/dbus/system_bus_socket", "the system bus, and systemd through it"},
           {"/run/user/1000/docker.sock", "the rootless Docker engine"},
           {"/var/run/user/0/podman/podman.sock", "the rootless Podman engine"},
           {"/run/user/1000/systemd/private", "the user's systemd"},
           {"/run/user/1000/bus", "the session bus, and the user's systemd through it"},
           {"/home/u/.docker/run/docker.sock", "a Docker engine"},
           {"/docker.sock", "a Docker engine"},
           {"/mnt/podman.sock", "a Podman engine"},
       }) {
    EXPECT_EQ(control_socket(path), controls) << path;
  }
}

TEST(ControlSocket, IsNotAnyOtherSocket) {
  for (const std::string_view path :
       {"/run/postgresql/.s.PGSQL.5432", "/run/mydocker.sock", "/run/docker.sock.d/x",
        "/run/user/1000/wayland-0", "/run/user/bus", "/run/user", "/run/user/1000", "/run/user/",
        "/tmp/bus", "/run/systemd/journal/socket", "/variable/run/snapd.socket", "/var/run", "/"}) {
    EXPECT_EQ(control_socket(path), std::nullopt) << path;
  }
}

// ---- Credentials -----------------------------------------------------------------------------

std::string_view path_of(const CredentialPath* entry) { return entry ? entry->path : "none"; }

TEST(CredentialAt, FindsTheInnermostEntryAtOrAboveThePath) {
  struct Case {
    std::string_view path;
    std::string_view home;
    std::string_view entry;
  };
  for (const auto& [path, home, entry] : std::initializer_list<Case>{
           {"/home/u/.ssh", "", "~/.ssh"},
           {"/home/u/.ssh/id_ed25519", "", "~/.ssh"},
           {"/home/u/.sshx", "", "none"},
           {"/home/u/.config", "", "none"},
           {"/home/u/.config/gh/hosts.yml", "/data/alice", "~/.config/gh"},
           {"/home/u/.config/git", "", "none"},
           {"/home/u/.config/git/credentials", "", "~/.config/git/credentials"},
           {"/home/u", "", "none"},
           {"/home/.ssh", "", "none"},
           {"/Users/a/Library/Application Support/Slack/x", "",
            "~/Library/Application Support/Slack"},
           {"/data/alice/.aws/config", "/data/alice", "~/.aws"},
           {"/data/alice/.aws/config", "", "none"},
           {"/data/alicent/.aws", "/data/alice", "none"},
           {"/root", "", "/root"},
           {"/root/project", "", "/root"},
           {"/root/project", "/home/u", "/root"},
           {"/root/project", "/root", "none"},
           {"/root", "/root/", "none"},
           {"/root/.ssh/x", "", "~/.ssh"},
           {"/root/.ssh/x", "/root", "~/.ssh"},
           {"/.ssh", "/", "~/.ssh"},
           {"/.ssh", "", "none"},
           {"/Library/Keychains", "/", "/Library/Keychains"},
           {"/etc/shadow", "", "/etc/shadow"},
           {"/etc/shadows", "", "none"},
           {"/etc", "", "none"},
           {"/run/user/1000/containers/auth.json", "", "/run/user"},
           {"/var/lib/docker/volumes/x", "", "/var/lib/docker"},
           {"/workspace", "/home/u", "none"},
           {"/", "/home/u", "none"},
       }) {
    EXPECT_EQ(path_of(credential_at(path, home)), entry) << path << " with home " << home;
  }
}

Names below(std::string_view path, std::string_view home) {
  Names out;
  for (const HiddenPath& hidden : credentials_below(path, home)) {
    out.push_back(hidden.path);
  }
  return out;
}

TEST(CredentialsBelow, SpellsOutWhatAGrantWouldUncover) {
  EXPECT_EQ(below("/var/lib", ""),
            (Names{"/var/lib/docker", "/var/lib/kubelet", "/var/lib/rancher"}));
  EXPECT_EQ(below("/home/u/.m2", ""),
            (Names{"/home/u/.m2/settings-security.xml", "/home/u/.m2/settings-security4.xml",
                   "/home/u/.m2/settings.xml"}));
  EXPECT_EQ(below("/data/alice/.cargo", "/data/alice"),
            (Names{"/data/alice/.cargo/credentials", "/data/alice/.cargo/credentials.toml"}));
  EXPECT_EQ(below("/home/u/.gem", "/data/alice"), (Names{"/home/u/.gem/credentials"}));
  EXPECT_EQ(below("/.gem", "/"), (Names{"/.gem/credentials"}));
  EXPECT_EQ(below("/sys", ""), (Names{"/sys/firmware"}));
}

TEST(CredentialsBelow, IsEmptyForPathsThatHoldNone) {
  for (const std::string_view path :
       {"/workspace", "/home/u/project", "/home/u/.confi", "/home/u/.config/ghx", "/home/u/.m",
        "/va", "/var/li", "/var/lib/docker", "/home/u/.ssh", "/home/u/.ssh/deeper", "/srv", "/data",
        "/data/alicent", "/data/alice/.sshx"}) {
    EXPECT_EQ(below(path, path == "/data" ? "" : "/data/alice"), Names{}) << path;
  }
}

TEST(CredentialsBelow, CoversTheHomeThatLiesDeeperThanTheGrant) {
  const Names hidden = below("/data", "/data/alice");
  EXPECT_EQ(hidden, below("/data/alice", "/data/alice"));
  EXPECT_TRUE(std::ranges::binary_search(hidden, "/data/alice/.ssh"));
  EXPECT_TRUE(std::ranges::binary_search(hidden, "/data/alice/.config/gh"));
}

TEST(CredentialsBelow, ListsAPathOnceWhenTwoEntriesMeet) {
  const auto hidden = credentials_below("/Library", "/");
  const auto keychains = std::ranges::find(hidden, "/Library/Keychains", &HiddenPath::path);
  ASSERT_NE(keychains, hidden.end());
  EXPECT_EQ(keychains->entry->path, "/Library/Keychains");
  EXPECT_EQ(std::ranges::count(hidden, "/Library/Keychains", &HiddenPath::path), 1);
}

TEST(StartupBelow, AnswersForStartupPathsLikewise) {
  Names found;
  for (const ReadOnlyPath& entry : startup_below("/home/u/.local", "")) {
    found.push_back(entry.path);
  }
  EXPECT_EQ(found,
            (Names{"/home/u/.local/bin", "/home/u/.local/lib", "/home/u/.local/share/applications",
                   "/home/u/.local/share/dbus-1", "/home/u/.local/share/systemd"}));
  EXPECT_TRUE(startup_below("/workspace", "/home/u").empty());
  ASSERT_NE(startup_at("/home/u/.config/fish/config.fish", ""), nullptr);
  EXPECT_EQ(startup_at("/home/u/.config/fish/config.fish", "")->path, "~/.config/fish");
  EXPECT_EQ(startup_at("/home/u/.bashrcs", ""), nullptr);
}

// ---- Against the slow and obvious answer -----------------------------------------------------

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> out;
  std::string part;
  for (const char c : std::string(path) + "/") {
    if (c != '/') {
      part += c;
    } else if (!part.empty()) {
      out.push_back(std::exchange(part, ""));
    }
  }
  return out;
}

bool starts_with_components(std::string_view path, std::string_view directory) {
  const auto long_one = components(path);
  const auto short_one = components(directory);
  return long_one.size() >= short_one.size() &&
         std::ranges::equal(short_one, std::span(long_one).first(short_one.size()));
}

std::set<std::string> homes_for(std::string_view path, std::string_view home) {
  std::set<std::string> out{"/root"};
  if (!home.empty()) out.insert(std::string(home));
  const auto parts = components(path);
  if (parts.size() >= 2 && (parts[0] == "home" || parts[0] == "Users")) {
    out.insert("/" + parts[0] + "/" + parts[1]);
  }
  return out;
}

// Every entry at every place where it can stand.
std::set<std::string> all_places(std::string_view path, std::string_view home) {
  std::set<std::string> out;
  for (const CredentialPath& entry : credential_paths()) {
    if (entry.path.starts_with('/') && entry.path != home) out.insert(std::string(entry.path));
    if (entry.path.starts_with('/')) continue;
    for (const std::string& place : homes_for(path, home)) {
      out.insert((place == "/" ? "" : place) + std::string(entry.path.substr(1)));
    }
  }
  return out;
}

Names brute_force_below(std::string_view path, std::string_view home) {
  Names out;
  for (const std::string& place : all_places(path, home)) {
    if (starts_with_components(place, path) && components(place) != components(path)) {
      out.push_back(place);
    }
  }
  return out;
}

bool brute_force_at(std::string_view path, std::string_view home) {
  return std::ranges::any_of(all_places(path, home), [&](const std::string& place) {
    return starts_with_components(path, place);
  });
}

std::string generated_home() {
  return *rc::gen::element<std::string>("", "/", "/root", "/home/u", "/Users/a", "/data/alice",
                                        "/home/u/nested", "/var/lib", "/etc", "/home");
}

// A path near the tables: some entry's place, cut after a component or in one, or made longer.
std::string generated_path(std::string_view home) {
  const std::string root = *rc::gen::element<std::string>(
      "/home/u", "/root", "/Users/a", std::string(home), "/workspace", "", "/home/u/nested");
  const auto& entry =
      credential_paths()[*rc::gen::inRange<std::size_t>(0, credential_paths().size())];
  std::string path = entry.path.starts_with('~') ? root + std::string(entry.path.substr(1))
                                                 : std::string(entry.path);
  path += *rc::gen::element<std::string>("", "", "x", "/x", "/.ssh", "-", " ");
  const auto size = *rc::gen::inRange<std::size_t>(1, path.size() + 1);
  if (*rc::gen::arbitrary<bool>()) path.resize(size);
  std::string canonical;
  for (const std::string& part : components(path)) {
    canonical += "/" + part;
  }
  return canonical.empty() ? "/" : canonical;
}

RC_GTEST_PROP(Sensitive, CredentialsBelowIsTheFilterOverAllPlaces, ()) {
  const std::string home = generated_home();
  const std::string path = generated_path(home);
  RC_ASSERT(below(path, home) == brute_force_below(path, home));
}

RC_GTEST_PROP(Sensitive, CredentialAtIsAnEntryAtOrAbove, ()) {
  const std::string home = generated_home();
  const std::string path = generated_path(home);
  RC_ASSERT((credential_at(path, home) != nullptr) == brute_force_at(path, home));
}

}  // namespace
}  // namespace capgate::core
