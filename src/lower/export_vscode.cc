#include "lower/export_vscode.h"

#include "base/format.h"
#include "base/ranges.h"
#include "core/sensitive.h"
#include "lower/export_common.h"

namespace capgate::lower {
namespace {

using Shape = core::PathPattern::Shape;

constexpr Reasons reasons{
    .listen = "nobody can connect to its network namespace, in which every port is free",
    .exec = "every program can be started",
    .limit = "it limits no resource",
};

class McpJson {
 public:
  explicit McpJson(const Input& input)
      : input_(input), policy_(input.policy), support_("vscode", input) {}

  Checked<Artifact> write() {
    for (const auto& grant : policy_.files) allow_files(grant);
    hide_credentials();
    for (const auto& grant : policy_.connect) allow_host(grant);
    refuse_kinds(input_, reasons, support_);
    refuse_sealed(input_, support_);
    refuse_rest();
    Artifact artifact;
    artifact.env_injections = env_injections(policy_);
    artifact.files.push_back({.name = "mcp.json", .contents = print()});
    artifact.notes = notes();
    artifact.unenforced = TRY(std::move(support_).finish());
    return artifact;
  }

 private:
  void allow_files(const FileGrant& grant) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) {
      support_.unsupported(fs, grant.origins, "its /tmp is the host's, so that nothing is opened",
                           "use capgate run, or grant a directory of the host");
      return;
    }
    if (!writes(fs)) {
      support_.unsupported(fs, grant.origins, "everything else can be read as well",
                           "use capgate export --to srt, or capgate run");
      return;
    }
    if (fs.path.shape == Shape::entries) {
      support_.unsupported(fs, grant.origins,
                           "it takes no pattern for writing, so that nothing is opened",
                           "grant the directory, or use capgate run");
      return;
    }
    if (fs.path.base.find_first_of("*?[]") != std::string::npos) {
      return support_.impossible(fs, grant.origins, "it takes these characters for a pattern",
                                 "grant the directory above it");
    }
    refuse_split_writes(grant, support_);
    allow_write_.push_back(fs.path.base);
    for (std::string& path : kept_from_writing(input_, fs.path.base)) {
      deny_write_.push_back(std::move(path));
    }
    for (const std::string_view name : core::workspace_secret_names()) {
      std::string path = format("{}/{}", fs.path.base, name);
      if (!holds_a_grant(policy_, path)) deny_read_.push_back(std::move(path));
    }
  }

  // Little against an allowlist, but the files of which everyone knows where they are.
  void hide_credentials() {
    for (const core::CredentialPath& entry : core::credential_paths()) {
      std::string path(entry.path);
      if (path.starts_with("~/") && !input_.options.home.empty()) {
        path.replace(0, 1, input_.options.home);
      }
      if (path == input_.options.home) continue;
      if (!holds_a_grant(policy_, path)) deny_read_.push_back(std::move(path));
    }
  }

  void allow_host(const ConnectGrant& grant) {
    const core::NetConnect& net = grant.capability;
    if (!is_srt_domain(net.endpoint.host)) {
      support_.unsupported(net, grant.origins,
                           "it takes no such host, so that nothing is opened for it",
                           "name the hosts, or use capgate run");
      return;
    }
    refuse_requests(grant, support_);
    if (net.endpoint.port) {
      support_.unsupported(net, grant.origins, "its domains have no port: every one is open",
                           "use capgate export --to srt, or capgate run");
    }
    domains_.push_back(core::print(net.endpoint.host));
  }

  void refuse_rest() {
    for (const auto& grant : policy_.variables) {
      if (!grant.capability.to.empty()) continue;
      support_.unsupported(grant.capability, grant.origins,
                           "the server gets the whole environment of VS Code", "use capgate run");
    }
    for (const auto& grant : policy_.sockets) {
      support_.unsupported(grant.capability, grant.origins, "no Unix socket can be made there",
                           "use capgate run");
    }
  }

  [[nodiscard]] std::string print() {
    for (auto* list : {&allow_write_, &deny_read_, &deny_write_, &domains_}) {
      sort_and_deduplicate(*list);
    }
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("servers").begin_object();
    json.key(input_.manifest.name).begin_object().key("type").string("stdio");
    const std::vector<std::string>& command = input_.options.command;
    if (!command.empty()) {
      json.key("command").string(command.front());
      write_list(json, "args", {command.begin() + 1, command.end()});
    }
    json.key("sandboxEnabled").boolean(true).end_object().end_object();
    json.key("sandbox").begin_object().key("filesystem").begin_object();
    write_list(json, "allowWrite", allow_write_);
    write_list(json, "denyRead", deny_read_);
    write_list(json, "denyWrite", deny_write_);
    json.end_object().key("network").begin_object();
    write_list(json, "allowedDomains", domains_);
    write_list(json, "deniedDomains", {});
    json.end_object().end_object().end_object();
    return std::move(json).take() + '\n';
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes = policy_notes(input_);
    for (const std::string_view text :
         {"vscode: with sandboxEnabled VS Code asks nobody before it calls a tool of this server",
          "vscode: the sandbox is one for all servers of the file that have it: a file for each",
          "vscode: everything can be read but what denyRead lists, every program started, and no "
          "resource is limited",
          "vscode: on macOS and Linux only; elsewhere the server runs without a sandbox"}) {
      notes.emplace_back(text);
    }
    if (!domains_.empty()) {
      notes.emplace_back("net: a name may lead into a private network; no address is looked at");
    }
    if (input_.options.command.empty()) {
      notes.emplace_back("vscode: the server has no command yet: name it after --");
    }
    return notes;
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  std::vector<std::string> domains_;
  std::vector<std::string> allow_write_;
  std::vector<std::string> deny_read_;
  std::vector<std::string> deny_write_;
};

}  // namespace

Checked<Artifact> export_to_vscode(const Input& input, text::Value) {
  return McpJson(input).write();
}

}  // namespace capgate::lower
