// Every golden profile, read back and asked: at least 150 operations each, whose answers come from
// the policy and from tables written by hand, never from the lowering.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/format.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "seatbelt/common_operations.h"
#include "support/files.h"
#include "support/sbpl.h"
#include "support/seatbelt_oracle.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::seatbelt_test {
namespace {

namespace fs = std::filesystem;
using support::SeatbeltOracle;
using Right = SeatbeltOracle::Right;

constexpr std::string_view tmpdir = "/private/tmp/capgate.A1b2C3d4";

// 'it'\''s' -> it's
std::string unquote(std::string_view word) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'') {
      inside = !inside;
    } else if (!inside && word[i] == '\\') {
      out += word[++i];
    } else {
      out += word[i];
    }
  }
  return out;
}

// One case: its policy, the options it was compiled with, and its profile.
struct Case {
  std::string name;
  core::Manifest manifest;
  core::Policy policy;
  std::string home;
  std::vector<std::string> programs;
  std::uint64_t port = 3128;
  bool script = false;
  sbpl::Profile profile;
};

std::string golden(std::string_view name, std::string_view file) {
  return format("tests/golden/{}/{}", name, file);
}
bool exists(const std::string& path) {
  return fs::exists(fs::path(support::source_directory()) / path);
}

core::Bindings bindings_of(std::string_view name) {
  core::Bindings out;
  const std::string path = golden(name, "options.txt");
  if (!exists(path)) return out;
  for (const std::string& line : support::read_lines(path)) {
    constexpr std::string_view set = "--set=";
    if (!line.starts_with(set)) continue;
    const std::size_t equal = line.find('=', set.size());
    out.push_back(
        {.name = line.substr(set.size(), equal - set.size()), .values = {line.substr(equal + 1)}});
  }
  return out;
}

void read_policy(Case& out) {
  const bool yaml = exists(golden(out.name, "manifest.yaml"));
  const std::string text =
      support::read_text(golden(out.name, yaml ? "manifest.yaml" : "manifest.json"));
  const auto document = yaml ? text::parse_yaml(text) : text::parse_json(text);
  ASSERT_TRUE(document);
  auto manifest = core::parse_manifest(*document, bindings_of(out.name));
  ASSERT_TRUE(manifest);
  out.manifest = *std::move(manifest);
  auto policy = core::merge(out.manifest);
  ASSERT_TRUE(policy);
  out.policy = *std::move(policy);
}

void add_parameter(sbpl::Parameters& out, std::string_view word) {
  if (!word.starts_with("-D")) return;
  const std::size_t equal = word.find('=');
  out.emplace(word.substr(2, equal - 2), word.substr(equal + 1));
}

sbpl::Parameters parameters_of(const Case& from, text::Value artifact) {
  sbpl::Parameters out;
  if (!from.script) {
    for (const text::Value word : artifact.find("argv")->elements()) {
      add_parameter(out, word.text());
    }
    return out;
  }
  const std::string script = support::read_text(golden(from.name, "seatbelt/launch.sh"));
  for (std::string_view line : split(script, '\n')) {
    line = trim(line);
    if (!line.starts_with("'-D")) continue;
    add_parameter(out, unquote(trim(line.substr(0, line.size() - 1))));
  }
  out.emplace("TMPDIR", tmpdir);
  return out;
}

void read_profile(Case& out) {
  const auto document = text::parse_json(support::read_text(golden(out.name, "seatbelt.json")));
  ASSERT_TRUE(document);
  const text::Value options = *document->root().find("provenance")->find("options");
  if (const auto home = options.find("home")) out.home = home->text();
  if (const auto script = options.find("script")) out.script = script->text() == "true";
  if (const auto port = options.find("egressPort")) out.port = *parse_decimal(port->text());
  if (const auto programs = options.find("programs")) {
    for (const text::Value program : programs->elements())
      out.programs.emplace_back(program.text());
  }
  const auto profile = sbpl::read(support::read_text(golden(out.name, "seatbelt/server.sb")),
                                  parameters_of(out, document->root()));
  ASSERT_TRUE(profile) << profile.error();
  out.profile = *profile;
}

// Asks, compares and counts.
class Questions {
 public:
  explicit Questions(const Case& about) : about_(about) {}

  void ask(bool expected, std::string_view operation, const sbpl::Attributes& attributes) {
    ++count_;
    EXPECT_EQ(about_.profile.allows(operation, attributes), expected)
        << operation << " "
        << (attributes.empty() ? "" : attributes.begin()->first + " " + attributes.begin()->second);
  }
  void ask_path(bool expected, std::string_view operation, std::string_view path) {
    ask(expected, operation, {{"path", std::string(path)}});
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  const Case& about_;
  int count_ = 0;
};

std::string attribute_of(std::string_view operation) {
  if (operation.starts_with("sysctl")) return "sysctl-name";
  if (operation == "mach-lookup") return "global-name";
  if (operation == "iokit-open") return "iokit-registry-entry-class";
  if (operation.starts_with("ipc-posix")) return "ipc-posix-name";
  if (operation == "system-socket") return "socket-domain";
  return "target";
}

void ask_common(const Case& about, Questions& questions) {
  for (const std::string_view path : readable) {
    questions.ask_path(true, "file-read-data", path);
    questions.ask_path(false, "file-write-unlink", path);
  }
  for (const std::string_view path : closed) {
    questions.ask_path(false, "file-read-data", path);
    questions.ask_path(false, "file-write-data", path);
    questions.ask_path(false, "file-write-create", path);
    questions.ask_path(false, "process-exec", path);
  }
  for (const std::string_view path : names_only) {
    questions.ask_path(true, "file-read-metadata", path);
    questions.ask_path(false, "file-read-data", path);
  }
  for (const Named& one : allowed) {
    questions.ask(true, one.operation, {{attribute_of(one.operation), std::string(one.name)}});
  }
  for (const Named& one : denied) {
    questions.ask(false, one.operation, {{attribute_of(one.operation), std::string(one.name)}});
  }
  for (const std::string_view operation : never) {
    questions.ask_path(false, operation, "/usr/lib/x");
    for (const auto& grant : about.policy.files) {
      questions.ask_path(false, operation, SeatbeltOracle::real(grant.capability.path.base) + "/x");
    }
  }
  for (const std::string_view type : {"CHARACTER-DEVICE", "REGULAR-FILE"}) {
    questions.ask(type == "CHARACTER-DEVICE", "file-write-data",
                  {{"path", "/dev/null"}, {"vnode-type", std::string(type)}});
  }
}

void ask_network(const Case& about, Questions& questions) {
  const auto endpoint = [](std::uint64_t port) { return format("localhost:{}", port); };
  const bool connects = !about.policy.connect.empty();
  questions.ask(connects, "network-outbound", {{"remote-ip", endpoint(about.port)}});
  for (const std::uint64_t port : {22U, 53U, 80U, 443U, 5432U, 6379U, 8080U}) {
    questions.ask(false, "network-outbound", {{"remote-ip", endpoint(port)}});
    questions.ask(false, "network-outbound", {{"remote-ip", format("1.2.3.4:{}", port)}});
    // The server's own end never opens a connection.
    questions.ask(false, "network-outbound", {{"local-ip", endpoint(port)}});
    const bool listens = std::ranges::any_of(
        about.policy.listen, [&](const auto& grant) { return grant.capability.port == port; });
    questions.ask(listens, "network-bind", {{"local-ip", endpoint(port)}});
    questions.ask(listens, "network-inbound", {{"local-ip", endpoint(port)}});
    questions.ask(false, "network-bind", {{"local-ip", format("*:{}", port)}});
  }
  for (const std::string_view socket :
       {"/private/var/run/mDNSResponder", "/private/var/run/docker.sock",
        "/private/tmp/com.apple.launchd.x/Listeners", "/Users/mallory/.docker/run/docker.sock"}) {
    questions.ask(false, "network-outbound", {{"remote-unix", std::string(socket)}});
    questions.ask(false, "network-bind", {{"local-unix", std::string(socket)}});
  }
  bool netlink = false;
  for (const auto& grant : about.policy.sockets) {
    netlink |= grant.capability.kind == core::IpcCapability::Kind::netlink_route;
    if (grant.capability.kind != core::IpcCapability::Kind::unix_path) continue;
    const std::string path = SeatbeltOracle::real(grant.capability.path);
    questions.ask(true, "network-outbound", {{"remote-unix", path}});
    questions.ask(false, "network-outbound", {{"remote-unix", path + "x"}});
    questions.ask(false, "network-outbound", {{"remote-unix", path + "/x"}});
    questions.ask(false, "network-bind", {{"local-unix", path}});
    questions.ask_path(false, "file-write-unlink", path);
  }
  questions.ask(netlink, "sysctl-read", {{"sysctl-name", "net.routetable"}});
  questions.ask(!about.policy.sockets.empty() || !about.policy.programs.empty(), "system-socket",
                {{"socket-domain", "AF_UNIX"}});
}

void ask_programs(const Case& about, Questions& questions) {
  questions.ask(!about.policy.programs.empty(), "process-fork", {});
  for (const std::string& program : about.programs) {
    questions.ask_path(true, "process-exec", program);
    questions.ask_path(true, "process-exec-interpreter", program);
    questions.ask_path(true, "file-read-data", program);
    questions.ask_path(true, "file-map-executable", program);
    questions.ask_path(false, "file-write-data", program);
  }
  for (const auto& grant : about.policy.programs) {
    const std::string name = "/" + grant.capability.program;
    const bool given = std::ranges::any_of(
        about.programs, [&](const std::string& program) { return program.ends_with(name); });
    questions.ask_path(!given, "process-exec", "/usr/bin" + name);
    questions.ask_path(!given, "process-exec", "/bin" + name);
    questions.ask_path(false, "process-exec", "/private/tmp" + name);
  }
  for (const std::string_view program :
       {"/usr/bin/osascript", "/usr/bin/open", "/bin/launchctl", "/usr/bin/security", "/bin/bash",
        "/usr/bin/sandbox-exec", "/usr/bin/ssh", "/usr/bin/curl", "/usr/local/bin/x"}) {
    questions.ask_path(false, "process-exec", program);
  }
}

void ask_rights(const SeatbeltOracle& oracle, Questions& questions, const std::string& path) {
  questions.ask_path(oracle.allows(Right::read, path), "file-read-data", path);
  questions.ask_path(oracle.allows(Right::read, path), "file-read-xattr", path);
  questions.ask_path(oracle.allows(Right::modify, path), "file-write-data", path);
  questions.ask_path(oracle.allows(Right::modify, path), "file-write-mode", path);
  questions.ask_path(oracle.allows(Right::create, path), "file-write-create", path);
  questions.ask_path(oracle.allows(Right::remove, path), "file-write-unlink", path);
  questions.ask_path(false, "process-exec", path);
  if (oracle.allows(Right::read, path) || oracle.is_above_a_grant(path)) {
    questions.ask_path(true, "file-read-metadata", path);
    questions.ask_path(true, "file-test-existence", path);
  }
}

std::vector<std::string> paths_around(const core::FsCapability& grant, const std::string& home) {
  const std::string base = SeatbeltOracle::real(grant.path.base);
  const std::string parent = base.substr(0, base.rfind('/'));
  std::vector<std::string> out{base,
                               base + "/x",
                               base + "/deep/er/x.md",
                               base + "/notes.md",
                               base + "/notes.md/x",
                               base + "/.md",
                               base + "x",
                               base + "-/x",
                               parent + "/sibling/x",
                               "/System/Volumes/Data" + base + "/x"};
  if (parent.find('/', 1) != std::string::npos) out.push_back(parent);
  for (const std::string_view name : {".env",
                                      ".ENV",
                                      ".env.local",
                                      "sub/.env",
                                      "id_rsa",
                                      ".git",
                                      ".GIT",
                                      ".git/hooks",
                                      ".git/hooks/post-commit",
                                      ".Git/Hooks/post-commit",
                                      ".git/config",
                                      ".git/objects/x",
                                      ".vscode/tasks.json",
                                      ".mcp.json",
                                      ".MCP.json",
                                      ".claude",
                                      ".claude/settings.json",
                                      ".github/workflows/x.yml",
                                      ".npmrc",
                                      ".bashrc",
                                      "credentials.json",
                                      "Makefile"}) {
    out.push_back(base + "/" + std::string(name));
  }
  for (const core::HiddenPath& hidden : core::credentials_below(grant.path.base, home)) {
    out.push_back(SeatbeltOracle::real(hidden.path));
    out.push_back(SeatbeltOracle::real(hidden.path) + "/x");
  }
  return out;
}

void ask_files(const Case& about, Questions& questions) {
  const SeatbeltOracle oracle(about.policy, about.home, about.script ? std::string(tmpdir) : "");
  for (const auto& grant : about.policy.files) {
    // The system's own time zones can be read in any case.
    if (grant.capability.path.base == "/tmp" || grant.capability.path.base.starts_with("/usr/")) {
      continue;
    }
    for (const std::string& path : paths_around(grant.capability, about.home)) {
      ask_rights(oracle, questions, path);
    }
    // As it is spelled, where that is not its real name.
    const std::string& spelled = grant.capability.path.base;
    if (SeatbeltOracle::real(spelled) != spelled) {
      questions.ask_path(false, "file-read-data", spelled + "/x");
    }
  }
  const std::string home = about.home.empty() ? "/Users/alice" : about.home;
  for (const core::CredentialPath& entry : core::credential_paths()) {
    const std::string path = entry.path.starts_with('~') ? home + std::string(entry.path.substr(1))
                                                         : SeatbeltOracle::real(entry.path);
    questions.ask_path(oracle.allows(Right::read, path + "/x"), "file-read-data", path + "/x");
    questions.ask_path(oracle.allows(Right::modify, path), "file-write-data", path);
  }
  for (const std::string& path : {std::string(tmpdir), std::string(tmpdir) + "/x"}) {
    questions.ask_path(oracle.allows(Right::read, path), "file-read-data", path);
    questions.ask_path(oracle.allows(Right::create, path), "file-write-create", path);
    questions.ask_path(oracle.allows(Right::remove, path), "file-write-unlink", path);
  }
}

std::vector<std::string> cases() {
  std::vector<std::string> out;
  const fs::path root = fs::path(support::source_directory()) / "tests/golden";
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "seatbelt.json")) out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

class GoldenProfile : public testing::TestWithParam<std::string> {};

TEST_P(GoldenProfile, AnswersAsItsPolicyDemands) {
  Case about{.name = GetParam()};
  read_policy(about);
  read_profile(about);
  ASSERT_FALSE(about.profile.rules.empty());
  Questions questions(about);
  ask_common(about, questions);
  ask_network(about, questions);
  ask_programs(about, questions);
  const int before = questions.count();
  EXPECT_GE(before, 150);
  ask_files(about, questions);
  EXPECT_GE(questions.count(), before + 150);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenProfile, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(GoldenProfiles, AreThereInSufficientNumber) { EXPECT_GE(cases().size(), 20U); }

}  // namespace
}  // namespace capgate::seatbelt_test
