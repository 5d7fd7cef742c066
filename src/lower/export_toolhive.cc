#include "lower/export_toolhive.h"

#include <map>
#include <set>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/export_common.h"

namespace capgate::lower {
namespace {

using core::HostPattern;
using Ports = std::set<std::uint16_t>;  // empty: every port

constexpr Reasons reasons{
    .listen = "a profile names no port of the server",
    .exec = "every program of the image can be started",
    .limit = "a profile limits no resource",
};

// A colon divides the host's path from the container's; the others are refused as commands.
constexpr std::string_view no_mount_characters = ":$&;|`\\";

bool is_public_host(const HostPattern& host) {
  return host.text != "localhost" && !core::is_localhost_address(host);
}

// Of the rule that the profile makes: every host on every port.
struct Product {
  std::map<HostPattern, Ports> hosts;
  Ports ports;  // of all of them together
  bool every_host = false;

  [[nodiscard]] bool is_exact(const HostPattern& host) const {
    if (every_host && host.kind != HostPattern::Kind::any) return false;
    return hosts.at(host) == ports;
  }
};

Product product_of(const std::vector<const ConnectGrant*>& grants) {
  Product out;
  bool every_port = false;
  for (const ConnectGrant* grant : grants) {
    const core::Endpoint& endpoint = grant->capability.endpoint;
    Ports& ports = out.hosts[endpoint.host];
    if (endpoint.port) ports.insert(*endpoint.port);
    every_port |= !endpoint.port;
    out.every_host |= endpoint.host.kind == HostPattern::Kind::any;
  }
  // A host with all ports and single ones has had those merged into all.
  for (const auto& [host, ports] : out.hosts) out.ports.insert(ports.begin(), ports.end());
  if (every_port) out.ports.clear();
  return out;
}

class Profile {
 public:
  explicit Profile(const Input& input)
      : input_(input), policy_(input.policy), support_("toolhive", input) {}

  Checked<Artifact> write() {
    for (const auto& grant : policy_.files) mount(grant);
    allow_hosts();
    refuse_kinds(input_, reasons, support_);
    refuse_sealed(input_, support_);
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind == core::IpcCapability::Kind::self) continue;
      support_.unsupported(grant.capability, grant.origins,
                           "the container has no socket of the host", "use capgate run");
    }
    Artifact artifact;
    artifact.env_injections = env_injections(policy_);
    artifact.files.push_back({.name = "profile.json", .contents = print()});
    artifact.notes = notes();
    artifact.unenforced = TRY(std::move(support_).finish());
    return artifact;
  }

 private:
  void mount(const FileGrant& grant) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) return;  // the container's own
    if (fs.path.shape == core::PathPattern::Shape::entries) {
      support_.unsupported(fs, grant.origins,
                           "which entries match is only known at launch, so none is mounted",
                           "grant the directory, or use capgate run");
      return;
    }
    if (fs.path.base.find_first_of(no_mount_characters) != std::string::npos) {
      support_.unsupported(fs, grant.origins,
                           "a profile cannot write that path, so that it is not "
                           "mounted",
                           "rename it, or grant the directory above it");
      return;
    }
    refuse_split_writes(grant, support_);
    const auto hidden = core::credentials_below(fs.path.base, input_.options.home);
    if (!hidden.empty()) {
      support_.unsupported(fs, grant.origins,
                           format("it cannot hide {} inside the grant", hidden.front().path),
                           "grant what is needed below it, or use capgate run");
    }
    (writes(fs) ? write_ : read_).push_back(fs.path.base);
  }

  void allow_hosts() {
    std::vector<const ConnectGrant*> rules;
    for (const auto& grant : policy_.connect) {
      if (check_host(grant)) rules.push_back(&grant);
    }
    const Product product = product_of(rules);
    for (const ConnectGrant* grant : rules) {
      if (product.is_exact(grant->capability.endpoint.host)) continue;
      support_.unsupported(
          grant->capability, grant->origins,
          "each host of a profile is open on each of its ports, and others have other ports",
          "a server for each, or use capgate run");
    }
    ports_.assign(product.ports.begin(), product.ports.end());
    allow_all_ = product.every_host && ports_.empty();
    if (product.every_host) return;
    for (const auto& [host, ports] : product.hosts) {
      const bool below = host.kind == HostPattern::Kind::subdomains;
      hosts_.push_back(below ? "." + host.text : core::print(host));
    }
    sort_and_deduplicate(hosts_);
  }

  // True if a rule can be written for it.
  bool check_host(const ConnectGrant& grant) {
    const core::NetConnect& net = grant.capability;
    const HostPattern& host = net.endpoint.host;
    if (!is_public_host(host)) {
      support_.unsupported(net, grant.origins,
                           "localhost is the proxy's own, so that nothing is opened for it",
                           "use capgate run");
      return false;
    }
    refuse_requests(grant, support_);
    if (host.kind == HostPattern::Kind::subdomains) {
      support_.unsupported(net, grant.origins,
                           format(".{} stands for {} itself as well", host.text, host.text),
                           format("grant {} too, if it is meant, or use capgate run", host.text));
    }
    if (host.kind == HostPattern::Kind::any) {
      support_.unsupported(net, grant.origins, "without a list private addresses are open as well",
                           "name the hosts, or use capgate run");
    }
    return true;
  }

  [[nodiscard]] std::string print() const {
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("name").string(input_.manifest.name);
    write_list(json, "read", read_);
    write_list(json, "write", write_);
    json.key("network").begin_object().key("outbound").begin_object();
    json.key("insecure_allow_all").boolean(allow_all_);
    write_list(json, "allow_host", hosts_);
    json.key("allow_port").begin_array();
    for (const std::uint16_t port : ports_) json.number(port);
    json.end_array().end_object().end_object();
    json.key("privileged").boolean(false).end_object();
    return std::move(json).take() + '\n';
  }

  // What capgate run hides at the root of a granted directory, unless a grant names it.
  [[nodiscard]] std::vector<std::string> open_secrets() const {
    std::vector<std::string> out;
    for (const auto* mounts : {&read_, &write_}) {
      for (const std::string& base : *mounts) {
        for (const std::string_view name : core::workspace_secret_names()) {
          if (!holds_a_grant(policy_, format("{}/{}", base, name))) out.emplace_back(name);
        }
      }
    }
    sort_and_deduplicate(out);
    return out;
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes = policy_notes(input_);
    notes.emplace_back(
        "toolhive: the lists hold with network isolation only: thv run --isolate-network");
    notes.emplace_back(
        "toolhive: every program of the image can be started, and no resource is limited");
    if (const auto open = open_secrets(); !open.empty()) {
      notes.push_back(
          format("fs: a mount hides nothing: what capgate run hides at the root of a grant is open "
                 "({})",
                 join(open, ", ")));
    }
    if (!write_.empty()) {
      notes.emplace_back(
          "fs: what host programs run later (.git/hooks, .vscode ...) is not protected inside "
          "writable grants");
    }
    if (!policy_.connect.empty()) {
      notes.emplace_back("net: its proxy carries HTTP and CONNECT only, for clients that heed it");
      notes.emplace_back(
          "net: a name may lead into a private network, and an address whose reverse name is in "
          "the list passes as that name");
    }
    return notes;
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  std::vector<std::string> read_;
  std::vector<std::string> write_;
  std::vector<std::string> hosts_;
  std::vector<std::uint16_t> ports_;
  bool allow_all_ = false;
};

}  // namespace

Checked<Artifact> export_to_toolhive(const Input& input, text::Value) {
  return Profile(input).write();
}

}  // namespace capgate::lower
