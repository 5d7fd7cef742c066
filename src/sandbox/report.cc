#include "sandbox/report.h"

#include <grp.h>
#include <linux/mount.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>

#include "base/format.h"
#include "base/text.h"
#include "core/describe.h"
#include "core/version.h"
#include "sandbox/memory_bound.h"
#include "text/json_write.h"

namespace capgate::sandbox {
namespace {

using text::JsonWriter;

std::string_view kind_name(orders::MountKind kind) {
  using enum orders::MountKind;
  switch (kind) {
    case directory: return "directory";
    case file: return "file";
    case symlink: return "symlink";
    case tmpfs: return "tmpfs";
    case proc: return "proc";
    case bind:
    case tree: return "bind";
    case pin: return "pin";
    case cover: return "cover";
    case attributes: return "read-only";
  }
  return "";
}

std::string attribute_names(std::uint64_t attributes) {
  std::string out;
  const auto add = [&](std::uint64_t bit, std::string_view name) {
    if ((attributes & bit) != 0) out += format("{}{}", out.empty() ? "" : ",", name);
  };
  add(MOUNT_ATTR_RDONLY, "ro");
  add(MOUNT_ATTR_NOSUID, "nosuid");
  add(MOUNT_ATTR_NODEV, "nodev");
  add(MOUNT_ATTR_NOEXEC, "noexec");
  return out;
}

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key).begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

// Without the values: they are the caller's.
void write_environment(JsonWriter& json, const Bound& bound) {
  json.key("environment").begin_array();
  for (const std::string& entry : bound.environment) json.string(entry.substr(0, entry.find('=')));
  for (const std::string& name : bound.injected) json.string(name);
  json.end_array();
}

void write_mounts(JsonWriter& json, const Bound& bound) {
  json.key("mounts").begin_array();
  for (const BoundMount& mount : bound.mounts) {
    json.begin_object()
        .key("kind")
        .string(kind_name(mount.kind))
        .key("target")
        .string(mount.target);
    const bool has_source =
        mount.kind == orders::MountKind::bind || mount.kind == orders::MountKind::symlink;
    if (has_source) json.key("source").string(mount.source);
    if (mount.attributes != 0) json.key("attributes").string(attribute_names(mount.attributes));
    if (mount.size != 0) json.key("size").number(mount.size);
    json.end_object();
  }
  json.end_array();
}

// What init makes of the network, without the bytes.
void write_capture(JsonWriter& json, const Capture& capture) {
  json.key("capture").begin_object();
  json.key("messages").begin_array();
  for (const CaptureMessage& message : capture.messages) json.string(message.what);
  json.end_array().key("sockets").begin_array();
  for (const CaptureSocket& socket : capture.sockets) {
    if ((socket.flags & orders::instead) != 0) continue;
    json.begin_object().key("kind").string(sandbox::kind_name(socket.kind));
    if (socket.port != 0) json.key("port").number(socket.port);
    json.end_object();
  }
  json.end_array();
  json.key("inboundSockets").boolean(capture.inner_sockets);
  json.end_object();
}

void write_bound(JsonWriter& json, const Bound& bound) {
  json.key("bound").begin_object();
  json.key("program").string(bound.program);
  write_strings(json, "arguments", bound.arguments);
  write_strings(json, "executables", bound.executables);
  json.key("directory").string(bound.directory);
  write_environment(json, bound);
  write_mounts(json, bound);
  json.key("landlock").begin_array();
  for (const BoundRule& rule : bound.landlock) {
    json.begin_object().key("path").string(rule.path).key("access").number(rule.access);
    json.end_object();
  }
  json.end_array();
  if (bound.capture.is_needed()) write_capture(json, bound.capture);
  write_strings(json, "notes", bound.notes);
  write_strings(json, "notHeld", bound.not_held);
  json.end_object();
}

// ---- the report ---------------------------------------------------------------------------------

class Reporter {
 public:
  explicit Reporter(JsonWriter& json) : json_(json) {}

  void guarantee(std::string_view what, std::string_view mechanism) {
    json_.begin_object().key("guarantee").string(what).key("by").string(mechanism).end_object();
  }

 private:
  JsonWriter& json_;
};

std::string_view words_for(std::string_view rights) {
  if (rights == "write") return "can be read and written";
  if (rights == "create") return "can be read, added to and changed, but nothing in it removed";
  if (rights == "delete")
    return "can be read and things in it removed, but nothing changed or added";
  if (rights == "socket") return "can be connected to";
  return "can be read";
}

void write_network_guarantees(Reporter& report, const Run& run) {
  const core::Policy& policy = run.input.policy;
  if (policy.connect.empty()) {
    report.guarantee("no network but the sandbox's own loopback", "network namespace");
  }
  for (const auto& grant : policy.connect) {
    report.guarantee(format("{} can be reached", print(core::Capability(grant.capability))),
                     "network namespace without a way out, capgate-broker");
  }
  if (!policy.connect.empty()) {
    report.guarantee("no other host or port can be reached",
                     "network namespace without a way out, capgate-broker");
    report.guarantee("names are answered by capgate, and asked outside only when one is dialled",
                     "DNS sockets of the network namespace, capgate-broker");
    report.guarantee("the name that TLS or plain HTTP says on the wire is the one that was allowed",
                     "capgate-broker: SNI of each TLS connection, Host of each plain HTTP request");
  }
  for (const auto& grant : policy.listen) {
    report.guarantee(
        format("port {} inside is reached from this host's loopback alone", grant.capability.port),
        "capgate-broker, at 127.0.0.1 and ::1");
  }
  if (!run.audit.empty()) {
    report.guarantee("each connection is written down before it is opened",
                     format("hash-chained lines in {}", run.audit));
  }
}

void write_secret_guarantees(Reporter& report, const Run& run) {
  for (const lower::PlanSeal& seal : run.artifact.plan->seals) {
    std::vector<std::string> endpoints;
    endpoints.reserve(seal.env.to.size());
    for (const core::Endpoint& to : seal.env.to) endpoints.push_back(print(to));
    report.guarantee(
        format("the value of {} is not in the sandbox, and goes into requests to {} alone",
               seal.env.name, join(endpoints, " and ")),
        "a placeholder in the environment, capgate-broker-tls");
  }
  if (run.artifact.plan->seals.empty()) return;
  report.guarantee("no other host's TLS can be terminated",
                   "a certificate authority of this sandbox alone, constrained to those hosts");
}

void write_guarantees(JsonWriter& json, const Run& run) {
  const lower::Plan& plan = *run.artifact.plan;
  const Bound& bound = run.bound;
  const Launcher& launcher = run.launcher;
  const HostUser& user = run.user;
  json.key("guarantees").begin_array();
  Reporter report(json);
  for (const BoundMount& mount : bound.mounts) {
    if (!mount.owned) continue;
    report.guarantee(format("{} {}", mount.target, words_for(mount.rights)),
                     user.leaves_root ? "idmapped bind mount, Landlock" : "bind mount, Landlock");
  }
  report.guarantee(
      "no other file of the host can be seen, but /usr and the parts of /etc that every program "
      "needs",
      "mount namespace with a root of its own");
  for (const auto& [path, entry] : bound.watched.held) {
    if (!entry.is_hidden) continue;
    report.guarantee(
        format("{} is hidden", path),
        "an empty mount over it; when the host replaces it, the keeper mounts it again, "
        "a moment later");
  }
  for (const BoundMount& mount : bound.mounts) {
    const bool read_only = (mount.attributes & MOUNT_ATTR_RDONLY) != 0;
    if (mount.kind == orders::MountKind::pin && read_only) {
      report.guarantee(format("{} cannot be changed or moved", mount.target),
                       "read-only mount over itself, ancestors pinned; when the host replaces it, "
                       "the keeper mounts it again, a moment later");
    }
  }
  write_network_guarantees(report, run);
  write_secret_guarantees(report, run);
  report.guarantee(plan.programs.empty() ? "no child process, no second exec"
                                         : "only declared programs can be run",
                   plan.programs.empty()
                       ? "seccomp: exec needs a random token that only init held"
                       : "program directories, Landlock execute, noexec on writable mounts");
  report.guarantee("processes outside cannot be seen or signalled",
                   launcher.landlock_abi >= 6 ? "pid namespace, Landlock scope" : "pid namespace");
  report.guarantee("no privilege, now or later",
                   "user namespace, empty capability sets, no_new_privs, nosuid mounts, seccomp");
  report.guarantee("system calls by allowlist", "seccomp");
  report.guarantee("no variable but the listed ones", "cleared environment");
  json.end_array();
}

std::vector<std::string> kept_groups() {
  // A user may have thousands.
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  std::vector<std::string> out;
  for (const gid_t group : groups) {
    if (group != ::getgid()) out.push_back(std::to_string(group));
  }
  return out;
}

std::uint64_t value_of(const Limits& limits, std::string_view name) {
  const auto found = std::ranges::find(limits.held(), name, &HeldLimit::name);
  return found == limits.held().end() ? 0 : found->value;
}

MemoryFacts memory_facts(const Run& run) {
  const bool has_children = run.artifact.plan->seccomp.processes;
  MemoryFacts facts{.memory = *run.limits.watched_memory(),
                    .processes = has_children ? value_of(run.limits, "pids") : 1,
                    .files = value_of(run.limits, "files"),
                    .file_systems = {},
                    .buffers = kernel_buffers(),
                    .tcp_is_bounded = run.outcome.tcp_is_bounded};
  for (const BoundMount& mount : run.bound.mounts) {
    if (mount.kind == orders::MountKind::tmpfs) facts.file_systems.push_back(mount.size);
  }
  return facts;
}

// Where no cgroup holds the memory: what all bounds together let a server have.
void write_memory_bound(JsonWriter& json, const Run& run) {
  if (!run.limits.watched_memory()) return;
  std::uint64_t total = 0;
  json.key("memoryWorstCase").begin_object().key("parts").begin_array();
  for (const MemoryPart& part : memory_parts(memory_facts(run))) {
    total += part.bytes;
    json.begin_object().key("what").string(part.what);
    json.key("most").string(bytes_text(part.bytes)).key("by").string(part.by).end_object();
  }
  json.end_array().key("total").string(bytes_text(total)).end_object();
}

void write_limits(JsonWriter& json, const Limits& limits) {
  json.key("limits").begin_array();
  for (const HeldLimit& limit : limits.held()) {
    json.begin_object().key("name").string(limit.name);
    json.key("value").string(limit_text(limit.name, limit.value));
    json.key("by").string(limit.mechanism.empty() ? "not held" : limit.mechanism).end_object();
  }
  json.end_array();
}

bool grants_a_directory(const Bound& bound) {
  return std::ranges::any_of(bound.mounts, [](const BoundMount& mount) {
    return mount.owned && mount.identity.is_directory();
  });
}

std::vector<std::string> exceptions(const lower::Plan& plan, const Bound& bound,
                                    const Limits& limits, const HostUser& user) {
  std::vector<std::string> out;
  if (bound.watched.is_needed()) {
    out.emplace_back(
        "an entry that the host replaces, or that appears later, is hidden, read-only or set aside "
        "a moment after that; in directories that are made later only git's own names count");
  }
  if (!bound.not_held.empty()) {
    constexpr std::size_t most = 20;
    std::string names;
    for (const std::string& path : bound.not_held | std::views::take(most)) {
      names += format("{}{}", names.empty() ? "" : ", ", path);
    }
    const std::size_t count = bound.not_held.size();
    if (count > most) names += format(" and {} more", count - most);
    out.push_back(format("not looked at, so neither hidden nor protected below: {}", names));
  }
  if (!user.leaves_root) {
    for (const std::string& group : kept_groups()) {
      out.push_back(format("the supplementary group {} of the caller cannot be dropped", group));
    }
  }
  if (user.leaves_root) {
    out.emplace_back(
        "what others than the owner of a granted path own in it is open as far as its mode lets "
        "everyone");
  }
  if (plan.network.dns) {
    out.push_back(format(
        "what is said inside TLS is not seen{}: the inner name of an encrypted hello (ECH) and the "
        "Host of an HTTPS request are not verified",
        plan.seals.empty() ? "" : ", but where a sealed secret goes"));
  }
  if (!plan.seals.empty()) {
    out.emplace_back(
        "answers are searched for the values of sealed secrets; what a service gives away in "
        "another form is not found");
  }
  if (!plan.network.published.empty()) {
    out.emplace_back("every program of this host can connect to the published ports");
  }
  if (plan.seccomp.unix_sockets && grants_a_directory(bound)) {
    out.emplace_back("a socket of the host that lies in a granted directory can be connected to");
  }
  if (!plan.programs.empty()) {
    out.emplace_back("code that a program makes in its own memory is not limited");
    out.emplace_back("the dynamic loader, called by name, runs any file that can be read");
  }
  if (limits.watched_memory()) {
    out.emplace_back(
        "the memory limit is looked at four times a second and can be passed between; shared "
        "memory that a process touched and then unmapped in part is not seen; memoryWorstCase adds "
        "up the bounds of everything else");
  }
  if (!limits.scope_failure().empty()) {
    out.push_back(format("no cgroup: {}", limits.scope_failure()));
  }
  return out;
}

}  // namespace

std::string print_bound(const lower::Artifact& artifact, const lower::Input& input,
                        const Bound& bound) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_plan(json.key("plan"), *artifact.plan);
  write_bound(json, bound);
  json.key("policyHash").string(input.policy.hash);
  json.end_object();
  return std::move(json).take() + "\n";
}

std::string print_report(const Run& run) {
  const auto& [artifact, input, bound, limits, launcher, user, outcome, audit] = run;
  const lower::Plan& plan = *artifact.plan;
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("server").string(plan.server).key("version").string(plan.version);
  json.key("engine")
      .string("native")
      .key("landlockAbi")
      .number(static_cast<std::uint64_t>(launcher.landlock_abi));
  if (!audit.empty()) json.key("audit").string(audit);
  json.key("policyHash").string(input.policy.hash);
  json.key("manifestHash").string(input.manifest.hash);
  json.key("program").string(bound.program);
  write_strings(json, "executables", bound.executables);
  write_environment(json, bound);
  write_guarantees(json, run);
  write_limits(json, limits);
  write_memory_bound(json, run);
  write_strings(json, "notHeld", exceptions(plan, bound, limits, user));
  std::vector<std::string> unenforced = artifact.unenforced;
  for (const HeldLimit& limit : limits.held()) {
    if (limit.mechanism.empty()) {
      unenforced.push_back(format("limit:{}:{}", limit.name, limit_text(limit.name, limit.value)));
    }
  }
  write_strings(json, "unenforced", unenforced);
  std::vector<std::string> notes = artifact.notes;
  notes.insert(notes.end(), bound.notes.begin(), bound.notes.end());
  write_strings(json, "notes", notes);
  json.key("exit").begin_object().key("status").number(
      static_cast<std::uint64_t>(outcome.exit_code));
  if (!outcome.explanation.empty()) json.key("explanation").string(outcome.explanation);
  json.end_object();
  json.key("compiler").string(core::compiler_id);
  json.end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::sandbox
