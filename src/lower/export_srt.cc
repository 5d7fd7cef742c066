#include "lower/export_srt.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/address_blocks.h"
#include "core/base_system.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "lower/export_common.h"

namespace capgate::lower {
namespace {

using core::HostPattern;
using Shape = core::PathPattern::Shape;

// Writable for every command of every srt unless it is denied.
constexpr std::string_view shared_directory = "/tmp/claude";

constexpr Reasons reasons{
    .listen = "nobody can connect to its network namespace, in which every port is free",
    .exec = "every program that can be read can be started",
    .limit = "it limits no resource",
};

class Settings {
 public:
  explicit Settings(const Input& input)
      : input_(input), policy_(input.policy), support_("srt", input) {}

  Checked<Artifact> write() {
    allow_system();
    for (const auto& grant : policy_.files) allow_files(grant);
    allow_hosts();
    refuse_kinds(input_, reasons, support_);
    refuse_sealed(input_, support_);
    refuse_variables();
    allow_sockets();
    Artifact artifact;
    artifact.env_injections = env_injections(policy_);
    artifact.files.push_back({.name = "srt-settings.json", .contents = print()});
    artifact.notes = notes();
    artifact.unenforced = TRY(std::move(support_).finish());
    return artifact;
  }

 private:
  void allow_system() {
    for (const std::string_view path : core::system_directories) allow_read_.emplace_back(path);
    for (const std::string_view path : base_etc_paths()) allow_read_.emplace_back(path);
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      allow_read_.emplace_back(core::timezone_file);
    }
    for (const std::string& program : input_.options.programs) allow_read_.push_back(program);
  }

  void allow_files(const FileGrant& grant) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) return;
    if (fs.path.base.find_first_of("*?[]") != std::string::npos) {
      return support_.impossible(fs, grant.origins, "it takes these characters for a pattern",
                                 "grant the directory above it");
    }
    hide_inside(grant);
    if (fs.path.shape == Shape::entries) return allow_entries(grant);
    if (!writes(fs)) {
      allow_read_.push_back(fs.path.base);
      return;
    }
    refuse_split_writes(grant, support_);
    if (lies_in_a_readable_one(fs.path.base)) {
      support_.unsupported(fs, grant.origins,
                           "below a directory that can only be read nothing can be written there",
                           "grant the two beside each other, or use capgate run");
      return;  // srt would not start
    }
    allow_write_.push_back(fs.path.base);
    allow_read_.push_back(fs.path.base);  // macOS, and who reads the file: `/` is denied
    for (std::string& path : kept_from_writing(input_, fs.path.base)) {
      deny_write_.push_back(std::move(path));
    }
  }

  // srt looks for them when it starts, as capgate does.
  void allow_entries(const FileGrant& grant) {
    const core::FsCapability& fs = grant.capability;
    allow_read_.push_back(core::print(fs.path));
    support_.unsupported(fs, grant.origins,
                         writes(fs)
                             ? "it takes no pattern for writing, so that they can only be read"
                             : "it follows a link among them out of the directory",
                         "grant the directory, or use capgate run");
  }

  [[nodiscard]] bool lies_in_a_readable_one(std::string_view path) const {
    const auto holds = [&](std::string_view directory) {
      return core::is_at_or_below(path, directory);
    };
    const auto is_read_there = [&](const FileGrant& other) {
      const core::FsCapability& fs = other.capability;
      return !writes(fs) && fs.path.base != path && holds(fs.path.base);
    };
    return std::ranges::any_of(core::system_directories, holds) ||
           std::ranges::any_of(base_etc_paths(), holds) ||
           std::ranges::any_of(input_.options.programs, holds) ||
           std::ranges::any_of(policy_.files, is_read_there);
  }

  void hide_inside(const FileGrant& grant) {
    const core::FsCapability& fs = grant.capability;
    for (const auto& hidden : core::credentials_below(fs.path.base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      if (holds_a_grant(policy_, hidden.path)) {
        support_.unsupported(fs, grant.origins,
                             format("hiding {} would hide a grant below it", hidden.path),
                             "grant what is needed, not the directory around both");
        continue;
      }
      deny_read_.push_back(hidden.path);
    }
    for (const std::string_view name : core::workspace_secret_names()) {
      std::string path = format("{}/{}", fs.path.base, name);
      if (!holds_a_grant(policy_, path)) deny_read_.push_back(std::move(path));
    }
  }

  static bool is_name(const HostPattern& host) {
    return host.kind == HostPattern::Kind::name || host.kind == HostPattern::Kind::subdomains;
  }

  // One list of addresses holds for all names, so private ones are open for all of them or none.
  [[nodiscard]] bool opens_private_addresses() const {
    const auto is_open = [](const ConnectGrant& grant) {
      return grant.capability.refinements.private_network;
    };
    const auto may_be = [&](const ConnectGrant& grant) {
      const HostPattern& host = grant.capability.endpoint.host;
      return is_open(grant) || !is_name(host) || core::names_private_endpoint(host);
    };
    return std::ranges::any_of(policy_.connect, is_open) &&
           std::ranges::all_of(policy_.connect, may_be);
  }

  void allow_hosts() {
    const bool opens_private = opens_private_addresses();
    for (const auto& grant : policy_.connect) {
      const core::NetConnect& net = grant.capability;
      if (!is_srt_domain(net.endpoint.host)) {
        support_.unsupported(net, grant.origins,
                             "it takes no such host, so that nothing is opened for it",
                             "name the hosts, or use capgate run");
        continue;
      }
      refuse_requests(grant, support_);
      if (net.refinements.private_network && !opens_private) {
        support_.unsupported(net, grant.origins,
                             "private addresses are closed for all names or for none, so that "
                             "this one leads to public ones only",
                             "write private=true for each name, or use capgate run");
      }
      domains_.push_back(core::print(net.endpoint));
    }
    // The command itself cannot connect to it: srt lets it make no Unix socket.
    if (!domains_.empty()) {
      allow_read_.push_back(format("{}/{}", socket_place(), core::srt_proxy_sockets));
    }
    // To srt a block that holds ::ffff:0:0/96 holds every IPv4 address; mapped ones it judges by
    // the IPv4 blocks.
    for (const core::AddressBlock& block :
         core::without_mapped(opens_private ? core::closed_blocks() : core::private_blocks())) {
      closed_addresses_.push_back(core::print(block));
    }
  }

  // Where srt makes that socket: its TMPDIR.
  [[nodiscard]] std::string_view socket_place() const {
    const std::string& own = input_.options.runtime_dir;
    return own.empty() ? std::string_view("/tmp") : own;
  }

  void refuse_variables() {
    for (const auto& grant : policy_.variables) {
      if (!grant.capability.to.empty()) continue;
      support_.unsupported(grant.capability, grant.origins,
                           "it passes on the caller's whole environment, and not only this name",
                           "start it with env -i and this name, or use capgate run");
    }
  }

  void allow_sockets() {
    for (const auto& grant : policy_.sockets) {
      support_.unsupported(grant.capability, grant.origins,
                           "on Linux it lets no Unix socket be made, on macOS it looks at paths",
                           "use capgate run");
      if (grant.capability.kind == core::IpcCapability::Kind::unix_path) {
        sockets_.push_back(grant.capability.path);
      }
    }
  }

  [[nodiscard]] std::string print() {
    for (auto* list : {&allow_read_, &allow_write_, &deny_read_, &deny_write_}) {
      sort_and_deduplicate(*list);
    }
    deny_read_.insert(deny_read_.begin(), {"/", "/sys"});
    deny_write_.insert(deny_write_.begin(), std::string(shared_directory));
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("network").begin_object();
    write_list(json, "allowedDomains", domains_);
    write_list(json, "deniedDomains", {});
    json.key("strictAllowlist").boolean(true).key("requireHostMatch").boolean(true);
    write_list(json, "deniedResolvedAddresses", closed_addresses_);
    if (!sockets_.empty()) write_list(json, "allowUnixSockets", sockets_);
    json.end_object().key("filesystem").begin_object();
    write_list(json, "denyRead", deny_read_);
    write_list(json, "allowRead", allow_read_);
    write_list(json, "allowWrite", allow_write_);
    write_list(json, "denyWrite", deny_write_);
    json.end_object().end_object();
    return std::move(json).take() + '\n';
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes = policy_notes(input_);
    for (const std::string_view text :
         {"srt: start it in an empty environment, with its temporary directory in the private "
          "/tmp: "
          "env -i PATH=... HOME=... CLAUDE_CODE_TMPDIR=/tmp srt --settings FILE COMMAND",
          "srt: it must lie in /usr itself, or be named with --program: the sandbox starts a "
          "program of its package",
          "srt: every program can be started, no resource is limited, netlink sockets are open",
          "srt: the host's /tmp/claude stays readable, and the names of the directories in / can "
          "be seen"}) {
      notes.emplace_back(text);
    }
    if (domains_.empty()) return notes;
    notes.emplace_back(
        "net: srt reaches hosts by its proxy, for clients that heed HTTP_PROXY; without a proxy of "
        "its own in the environment, which would resolve names unchecked");
    notes.emplace_back("net: the name inside TLS is not compared with the host");
    notes.push_back(
        format("net: srt's TMPDIR must be {}, or nothing is reached{}", socket_place(),
               input_.options.runtime_dir.empty()
                   ? "; where others can write to /tmp, name a directory of your own with --set "
                     "XDG_RUNTIME_DIR, since a link that they make there could show a file of /tmp"
                   : ""));
    return notes;
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  std::vector<std::string> domains_;
  std::vector<std::string> closed_addresses_;
  std::vector<std::string> sockets_;
  std::vector<std::string> deny_read_;
  std::vector<std::string> allow_read_;
  std::vector<std::string> allow_write_;
  std::vector<std::string> deny_write_;
};

}  // namespace

Checked<Artifact> export_to_srt(const Input& input, text::Value) { return Settings(input).write(); }

}  // namespace capgate::lower
