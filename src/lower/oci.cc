#include "lower/oci.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/forwarder.h"
#include "lower/seccomp_docker.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;
using text::JsonWriter;
using Texts = std::vector<std::string_view>;

// Files of /proc that show the machine or its keys. A runtime passes over those that are missing.
constexpr std::string_view masked_paths[] = {
    "/proc/acpi",       "/proc/asound",        "/proc/interrupts",  "/proc/kcore",
    "/proc/keys",       "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats"};

// The kernel guards many files of /proc by root's uid alone, which --user may be. An inner sandbox
// writes its own /proc/self/uid_map, so that /proc as a whole cannot always be read-only.
constexpr std::string_view read_only_paths[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                                "/proc/sysrq-trigger"};

struct Mount {
  std::string_view destination;
  std::string_view type;
  std::string_view source;
  Texts options;
};

void write_texts(JsonWriter& json, std::string_view key, const auto& texts) {
  json.key(key).begin_array();
  for (const std::string_view text : texts) json.string(text);
  json.end_array();
}

class Oci {
 public:
  explicit Oci(const Input& input)
      : input_(input),
        policy_(input.policy),
        support_("oci", input),
        json_(JsonWriter::Style::pretty),
        masked_(std::begin(masked_paths), std::end(masked_paths)),
        read_only_(std::begin(read_only_paths), std::end(read_only_paths)) {
    artifact_.target = "oci";
  }

  Checked<Artifact> lower() {
    refuse_what_it_cannot_keep();
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    for (const auto& grant : policy_.files) protect_inside(grant);
    json_.begin_object().key("ociVersion").string("1.0.2");
    write_process();
    json_.key("root").begin_object().key("path").string("rootfs");
    json_.key("readonly").boolean(!input_.options.writable_root).end_object();
    json_.key("hostname").string(sandbox_hostname);
    write_mounts();
    write_linux();
    json_.end_object();
    artifact_.files.push_back({.name = "config.json", .contents = std::move(json_).take() + "\n"});
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void refuse_what_it_cannot_keep() {
    refuse_native_only(input_, support_);
    refuse_beyond_forwarder(input_, support_);
    for (const auto& grant : policy_.programs) {
      support_.unsupported(grant.capability, grant.origins,
                           "every program of the rootfs can be started",
                           "use --target bwrap or the native engine");
    }
    for (const auto& grant : policy_.variables) {
      support_.unsupported(
          grant.capability, grant.origins,
          "config.json holds values, and this one is not known yet",
          "use capgate run --engine podman, or add the value to process.env where it is known");
    }
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind != IpcCapability::Kind::x11) continue;
      support_.unsupported(grant.capability, grant.origins,
                           "DISPLAY is a value that only the launch knows",
                           "use the native engine");
    }
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind != LimitCapability::Kind::time) continue;
      support_.unsupported(grant.capability, grant.origins, "it has no time limit",
                           "use the native engine");
    }
  }

  // Credentials below a grant are masked, and what the host runs later is read-only below a
  // writable one. Mounts cannot be taken off inside: there is no capability to do it with.
  void protect_inside(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    const std::string& base = fs.path.base;
    if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) return;
    for (const core::HiddenPath& hidden : core::credentials_below(base, input_.options.home)) {
      if (is_granted(policy_, hidden.path)) continue;
      if (!holds_a_grant(policy_, hidden.path)) {
        masked_.push_back(hidden.path);
        continue;
      }
      support_.unsupported(fs, grant.origins,
                           format("hiding {} would hide a grant below it", hidden.path),
                           "grant what is needed, not the directory around both");
    }
    // A node may be a file, below which no runtime can look for anything.
    if (fs.actions.has(FsAction::read) || fs.path.shape != core::PathPattern::Shape::tree) return;
    for (const core::ReadOnlyPath& startup : core::startup_below(base, input_.options.home)) {
      make_read_only(startup.path);
    }
    for (const std::string_view name : core::protected_workspace_paths()) {
      make_read_only(format("{}/{}", base, name));
    }
  }

  void make_read_only(std::string path) {
    if (!holds_a_grant(policy_, path)) read_only_.push_back(std::move(path));
  }

  void write_process() {
    json_.key("process").begin_object().key("terminal").boolean(false);
    json_.key("user").begin_object().key("uid").number(0).key("gid").number(0).end_object();
    Texts args;
    if (uses_forwarder(policy_)) {
      args = forward_words(seccomp_needs(policy_));
      args.insert(args.begin(), forwarder_program);
    }
    args.insert(args.end(), input_.options.command.begin(), input_.options.command.end());
    write_texts(json_, "args", args);
    write_environment();
    json_.key("cwd").string("/tmp");
    json_.key("capabilities").begin_object();
    for (const std::string_view set :
         {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
      json_.key(set).begin_array().end_array();
    }
    json_.end_object().key("rlimits").begin_array();
    write_rlimit("RLIMIT_NOFILE", limit(LimitCapability::Kind::files));
    write_rlimit("RLIMIT_CORE", 0);
    json_.end_array().key("noNewPrivileges").boolean(true).end_object();
  }

  void write_environment() {
    std::vector<std::string> settings{format("PATH={}", sandbox_path), "HOME=/tmp", "TMPDIR=/tmp",
                                      "LANG=C.UTF-8"};
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind != IpcCapability::Kind::dbus_session) continue;
      settings.push_back("DBUS_SESSION_BUS_ADDRESS=unix:path=" +
                         socket_path(grant, input_, support_));
    }
    write_texts(json_, "env", settings);
  }

  void write_rlimit(std::string_view type, std::uint64_t value) {
    json_.begin_object().key("type").string(type);
    json_.key("hard").number(value).key("soft").number(value).end_object();
  }

  // In order: a runtime makes them one on top of the other, and grants come sorted by their path.
  void write_mounts() {
    const std::string size = format("size={}", limit(LimitCapability::Kind::disk));
    json_.key("mounts").begin_array();
    Mount proc{"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}};
    if (!seccomp_needs(policy_).nested_sandbox) proc.options.emplace_back("ro");
    write_mount(proc);
    write_mount({"/dev", "tmpfs", "tmpfs", {"nosuid", "noexec", "mode=755", "size=64k"}});
    for (const std::string_view place : {"/dev/shm", "/tmp"}) {
      write_mount({place, "tmpfs", "tmpfs", {"nosuid", "noexec", "nodev", "mode=1777", size}});
    }
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      bind(fs.path.base, fs.actions.has(FsAction::read) ? Texts{"ro"} : Texts{"rw", "noexec"});
    }
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind == IpcCapability::Kind::x11) continue;
      const std::string path = socket_path(grant, input_, support_);
      if (!path.empty()) bind(path, {"ro"});
    }
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      for (const std::string_view path : {"/usr/share/zoneinfo", "/etc/localtime"}) {
        if (!is_granted(policy_, path)) bind(path, {"ro"});
      }
    }
    if (uses_forwarder(policy_)) bind(input_.options.egress_dir, {"ro"}, forwarder_directory);
    json_.end_array();
  }

  void write_mount(const Mount& mount) {
    json_.begin_object().key("destination").string(mount.destination);
    json_.key("type").string(mount.type).key("source").string(mount.source);
    write_texts(json_, "options", mount.options);
    json_.end_object();
  }

  // Not recursive: a runtime makes only the top of a recursive one read-only.
  void bind(std::string_view path, Texts options, std::string_view at = {}) {
    options.insert(options.begin(), {"bind", "nosuid", "nodev"});
    write_mount({at.empty() ? path : at, "bind", path, std::move(options)});
  }

  void write_linux() {
    json_.key("linux").begin_object().key("namespaces").begin_array();
    for (const std::string_view type :
         {"cgroup", "ipc", "mount", "network", "pid", "user", "uts"}) {
      json_.begin_object().key("type").string(type).end_object();
    }
    json_.end_array();
    const auto ids = split(input_.options.user, ':');
    write_mapping("uidMappings", ids.front());
    write_mapping("gidMappings", ids.back());
    write_resources();
    sort_and_deduplicate(masked_);
    sort_and_deduplicate(read_only_);
    write_texts(json_, "maskedPaths", masked_);
    write_texts(json_, "readonlyPaths", read_only_);
    SeccompNeeds needs = seccomp_needs(policy_);
    needs.forwarder = uses_forwarder(policy_);
    json_.key("seccomp").verbatim(oci_seccomp_json(input_.options.arch, seccomp_rules(needs)));
    json_.end_object();
  }

  // One identity, which an ordinary user may map without a helper; runc insists on a root inside.
  void write_mapping(std::string_view key, std::string_view host) {
    json_.key(key).begin_array().begin_object().key("containerID").number(0);
    json_.key("hostID").number(parse_decimal(host).value_or(1000)).key("size").number(1);
    json_.end_object().end_array();
  }

  void write_resources() {
    constexpr std::uint64_t period = 100'000;
    const std::uint64_t memory = limit(LimitCapability::Kind::memory);
    const std::uint64_t cpu = limit(LimitCapability::Kind::cpu);
    json_.key("resources").begin_object();
    json_.key("devices").begin_array().begin_object().key("allow").boolean(false);
    json_.key("access").string("rwm").end_object().end_array();
    json_.key("memory").begin_object().key("limit").number(memory);
    json_.key("swap").number(memory).end_object();
    json_.key("pids").begin_object();
    json_.key("limit").number(limit(LimitCapability::Kind::pids)).end_object();
    if (cpu != 0) {
      json_.key("cpu").begin_object().key("period").number(period);
      json_.key("quota").number(cpu * period / 100).end_object();
    }
    json_.end_object();
  }

  [[nodiscard]] std::uint64_t limit(LimitCapability::Kind kind) const {
    return limit_of(policy_, kind).value;
  }

  void add_notes() {
    artifact_.notes.emplace_back(
        "oci: config.json belongs beside a directory rootfs, which brings the programs and in "
        "which the runtime makes missing mount points");
    artifact_.notes.push_back(
        format("oci: root inside is user {} outside: start it as that user or as root",
               input_.options.user));
    artifact_.notes.emplace_back(
        "limit: an ordinary user needs a cgroup of its own; without one runc refuses to start, and "
        "crun starts without the limits of memory, pids and cpu");
    if (!artifact_.env_injections.empty()) {
      artifact_.notes.emplace_back(
          "env: the variables of envInjections are not set; add NAME=VALUE to process.env");
    }
    if (uses_forwarder(policy_)) add_forwarder_notes(input_, artifact_.notes);
    if (!policy_.files.empty()) {
      artifact_.notes.emplace_back(
          "fs: mounts below a grant are not part of it; what is protected inside is what exists "
          "when the container starts");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  JsonWriter json_;
  std::vector<std::string> masked_;
  std::vector<std::string> read_only_;
};

}  // namespace

Checked<Artifact> lower_to_oci(const Input& input) { return Oci(input).lower(); }

}  // namespace capgate::lower
