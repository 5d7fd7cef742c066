// The findings for people and for programs.
#include "base/format.h"
#include "base/text.h"
#include "sandbox/doctor.h"
#include "text/json_write.h"

namespace capgate::sandbox {
namespace {

using text::JsonWriter;

std::string host_line(const Facts& facts) {
  std::string line =
      format("{}, kernel {}, uid {}",
             escape_for_terminal(facts.pretty_name.empty() ? "Linux" : facts.pretty_name),
             escape_for_terminal(facts.kernel), facts.uid);
  if (facts.wsl != Wsl::none) line += facts.wsl == Wsl::wsl1 ? ", WSL 1" : ", WSL 2";
  if (!facts.container.empty()) {
    line += format(", in a container ({})", escape_for_terminal(facts.container));
  }
  return line;
}

constexpr std::string_view margin = "                            ";

void print(const Remedy& remedy, std::string& out) {
  out += format("{}fix: {}\n", margin, escape_for_terminal(remedy.what));
  if (remedy.file) {
    out += format("{}create {} with\n", margin, escape_for_terminal(remedy.file->path));
    for (const std::string_view line : EachPart(trim(remedy.file->contents), '\n')) {
      out += format("{}  | {}\n", margin, escape_for_terminal(line));
    }
  }
  for (const std::string& command : remedy.commands) {
    out += format("{}  {}\n", margin, escape_for_terminal(command));
  }
}

void write(const Remedy& remedy, JsonWriter& json) {
  json.begin_object().key("what").string(remedy.what);
  if (remedy.file) {
    json.key("file").begin_object().key("path").string(remedy.file->path);
    json.key("contents").string(remedy.file->contents).end_object();
  }
  json.key("commands").begin_array();
  for (const std::string& command : remedy.commands) json.string(command);
  json.end_array().end_object();
}

void write(const Finding& finding, JsonWriter& json) {
  json.begin_object().key("check").string(name_of(finding.check));
  json.key("status").string(name_of(finding.status)).key("detail").string(finding.detail);
  if (finding.cause != Cause::none) json.key("cause").string(name_of(finding.cause));
  json.key("remedies").begin_array();
  for (const Remedy& remedy : finding.remedies) write(remedy, json);
  json.end_array().end_object();
}

void write_setting(std::string_view key, const Setting& setting, JsonWriter& json) {
  json.key(key);
  if (setting) {
    json.number(*setting);
  } else {
    json.null();
  }
}

void write_text(std::string_view key, std::string_view text, JsonWriter& json) {
  json.key(key);
  if (text.empty()) {
    json.null();
  } else {
    json.string(escape_for_terminal(text));
  }
}

void write_host(const Facts& facts, JsonWriter& json) {
  static constexpr std::string_view cgroup_kinds[] = {"none", "v1", "v2"};
  json.begin_object();
  write_text("name", facts.pretty_name, json);
  json.key("distribution").string(name_of(facts.distribution));
  write_text("kernel", facts.kernel, json);
  json.key("uid").number(facts.uid);
  write_setting("wsl", facts.wsl == Wsl::none ? Setting{} : Setting{facts.wsl == Wsl::wsl1 ? 1 : 2},
                json);
  write_text("container", facts.container, json);
  write_text("appArmorProfile", facts.apparmor_profile, json);
  write_text("lsm", facts.lsm, json);
  json.key("landlockAbi").number(facts.landlock_abi);
  json.key("cgroup").string(cgroup_kinds[static_cast<std::size_t>(facts.cgroups.kind)]);
  json.key("settings").begin_object();
  write_setting("user.max_user_namespaces", facts.max_user_namespaces, json);
  write_setting("kernel.unprivileged_userns_clone", facts.unprivileged_userns_clone, json);
  write_setting("kernel.apparmor_restrict_unprivileged_userns", facts.apparmor_restrict_userns,
                json);
  write_setting("kernel.yama.ptrace_scope", facts.ptrace_scope, json);
  write_setting("vm.memfd_noexec", facts.memfd_noexec, json);
  json.end_object().end_object();
}

}  // namespace

std::string_view name_of(Check check) {
  switch (check) {
    case Check::namespaces: return "namespaces";
    case Check::id_map: return "id-map";
    case Check::loopback: return "loopback";
    case Check::private_mounts: return "private-mounts";
    case Check::tmpfs: return "tmpfs";
    case Check::proc: return "proc";
    case Check::pivot: return "pivot";
    case Check::landlock: return "landlock";
    case Check::seccomp: return "seccomp";
    case Check::listener: return "listener";
    case Check::cgroup: return "cgroup";
    case Check::memfd_exec: return "memfd-exec";
    case Check::any_address: return "any-address";
    case Check::redirect: return "redirect";
    case Check::broker: return "broker";
    case Check::audit: return "audit";
    case Check::locked_memory: return "locked-memory";
    case Check::tls_broker: return "broker-tls";
    case Check::store: return "store";
    case Check::count: break;
  }
  return "";
}

std::string_view name_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::other: return "other";
    case Distribution::debian: return "debian";
    case Distribution::ubuntu: return "ubuntu";
    case Distribution::fedora: return "fedora";
    case Distribution::arch: return "arch";
    case Distribution::opensuse: return "opensuse";
    case Distribution::alpine: return "alpine";
    case Distribution::nixos: return "nixos";
  }
  return "";
}

std::string_view name_of(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::limited: return "limited";
    case Status::failed: return "failed";
    case Status::untested: return "untested";
  }
  return "";
}

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::none: return "none";
    case Cause::wsl1: return "wsl1";
    case Cause::old_kernel: return "old-kernel";
    case Cause::user_limit: return "user-namespace-limit";
    case Cause::namespace_limit: return "namespace-limit";
    case Cause::userns_clone: return "unprivileged-userns-clone";
    case Cause::unmapped_user: return "unmapped-user";
    case Cause::chroot: return "chroot";
    case Cause::apparmor: return "apparmor";
    case Cause::container_filter: return "container-filter";
    case Cause::container_proc: return "container-proc";
    case Cause::initramfs: return "initramfs";
    case Cause::landlock_not_started: return "landlock-not-started";
    case Cause::memfd_forbidden: return "memfd-forbidden";
    case Cause::second_listener: return "second-listener";
    case Cause::ptrace_forbidden: return "ptrace-forbidden";
    case Cause::no_delegation: return "no-delegation";
    case Cause::controllers_missing: return "controllers-missing";
    case Cause::no_cgroups: return "no-cgroups";
    case Cause::no_redirect: return "no-redirect";
    case Cause::no_broker: return "no-broker";
    case Cause::audit_not_writable: return "audit-not-writable";
    case Cause::memory_not_locked: return "memory-not-locked";
    case Cause::no_tls_broker: return "no-broker-tls";
    case Cause::no_store: return "no-store";
    case Cause::no_answer: return "no-answer";
    case Cause::unknown: return "unknown";
  }
  return "";
}

std::string doctor_text(const Facts& facts) {
  const std::vector<Finding> all = findings(facts);
  std::string out = format("{}\n", host_line(facts));
  for (const Finding& finding : all) {
    out += format("  {:<10}{:<16}{}\n", name_of(finding.status), name_of(finding.check),
                  escape_for_terminal(finding.detail));
    for (const Remedy& remedy : finding.remedies) print(remedy, out);
  }
  for (const auto& [name, version] : facts.engines) {
    out += format("--engine {} is there: {}\n", name, escape_for_terminal(version));
  }
  out += is_enforceable(all)
             ? "A sandbox can be enforced here.\n"
             : "No sandbox can be enforced here: capgate run refuses to start a server.\n";
  return out;
}

std::string doctor_json(const Facts& facts) {
  const std::vector<Finding> all = findings(facts);
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("enforceable").boolean(is_enforceable(all));
  json.key("host");
  write_host(facts, json);
  json.key("findings").begin_array();
  for (const Finding& finding : all) write(finding, json);
  json.end_array().key("engines").begin_object();
  for (const auto& [name, version] : facts.engines) json.key(name).string(version);
  json.end_object().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::sandbox
