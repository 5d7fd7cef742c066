#include "lower/plan.h"

#include "base/text.h"
#include "lower/bpf.h"
#include "lower/common.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

using text::JsonWriter;

// What `detail` is called for a kind of mount.
std::string_view detail_key(PlanMount::Kind kind) {
  switch (kind) {
    case PlanMount::Kind::symlink: return "to";
    case PlanMount::Kind::file: return "contents";
    case PlanMount::Kind::mask: return "over";
    case PlanMount::Kind::bind:
    case PlanMount::Kind::entries:
    case PlanMount::Kind::programs:
    case PlanMount::Kind::tmpfs:
    case PlanMount::Kind::proc:
    case PlanMount::Kind::device: return "access";
  }
  return "";
}

template <typename Items>
void write_texts(JsonWriter& json, std::string_view key, const Items& items) {
  json.key(key).begin_array();
  for (const auto& item : items) json.string(item);
  json.end_array();
}

void write_ports(JsonWriter& json, std::string_view key, const std::vector<std::uint16_t>& ports) {
  json.key(key).begin_array();
  for (const std::uint16_t port : ports) json.number(port);
  json.end_array();
}

void write_mounts(JsonWriter& json, const Plan& plan) {
  json.key("mounts").begin_array();
  for (const PlanMount& mount : plan.mounts) {
    json.begin_object();
    json.key("kind").string(kind_name(mount.kind)).key("target").string(mount.target);
    if (!mount.detail.empty()) json.key(detail_key(mount.kind)).string(mount.detail);
    if (mount.size != 0) json.key("size").number(mount.size);
    if (mount.if_present) json.key("ifPresent").boolean(true);
    if (mount.directory) json.key("directory").boolean(true);
    json.end_object();
  }
  json.end_array();
}

void write_landlock(JsonWriter& json, const Plan& plan) {
  json.key("landlock").begin_object();
  json.key("handled").string("every filesystem right and scope of the running ABI");
  json.key("rules").begin_array();
  for (const LandlockRule& rule : plan.landlock) {
    json.begin_object().key("path").string(rule.path);
    write_texts(json, "rights", rule.rights);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_seccomp(JsonWriter& json, const Plan& plan) {
  const SharedFilter& filter = shared_filter(plan.arch, plan.seccomp);
  json.key("seccomp").begin_object();
  json.key("arch").string(plan.arch == Arch::x86_64 ? "x86_64" : "aarch64");
  json.key("processes").boolean(plan.seccomp.processes);
  json.key("nestedSandbox").boolean(plan.seccomp.nested_sandbox);
  json.key("unixSockets").boolean(plan.seccomp.unix_sockets);
  json.key("netlinkRoute").boolean(plan.seccomp.netlink_route);
  json.key("fixedAttributes").boolean(plan.seccomp.fixed_attributes);
  json.key("base64").plain_string(filter.base64);
  json.key("tokenPatches").begin_array();
  for (const TokenPatch& patch : filter.program.token_patches) {
    json.begin_object().key("instruction").number(patch.index).key("word").number(patch.word);
    json.end_object();
  }
  json.end_array();
  const std::string dumped = dump(filter.program);
  json.key("dump").begin_array();
  for (const std::string_view line : split(trim(dumped), '\n')) json.string(line);
  json.end_array().end_object();
}

void write_limits(JsonWriter& json, const Plan& plan) {
  json.key("limits").begin_object();
  for (const PlanLimit& limit : plan.limits) {
    json.key(limit.name).begin_object().key("value").number(limit.value);
    json.key("required").boolean(!limit.is_default).end_object();
  }
  json.end_object();
}

void write_network(JsonWriter& json, const PlanNetwork& network) {
  json.key("network").begin_object();
  write_ports(json, "listeners", network.listeners);
  json.key("everyPort").boolean(network.every_port);
  json.key("dns").boolean(network.dns);
  write_ports(json, "published", network.published);
  json.key("capture").string(capture_name(network.capture));
  if (network.redirect_port != 0) json.key("redirectPort").number(network.redirect_port);
  write_ports(json, "localhost", network.localhost);
  json.key("rules").begin_array();
  for (const PlanRule& rule : network.rules) {
    json.begin_object().key("capability").string(print(core::Capability(rule.connect)));
    json.key("at").string(rule.position).end_object();
  }
  json.end_array().key("publicOnly").boolean(network.public_only);
  json.end_object();
}

void write_environment(JsonWriter& json, const Plan& plan) {
  json.key("environment").begin_object();
  json.key("set").begin_object();
  for (const auto& [name, value] : plan.environment) json.key(name).string(value);
  json.end_object();
  write_texts(json, "read", plan.env_read);
  write_texts(json, "inject", plan.env_inject);
  json.end_object();
}

void write_seals(JsonWriter& json, const Plan& plan) {
  if (plan.seals.empty()) return;
  json.key("seals").begin_array();
  for (const PlanSeal& seal : plan.seals) {
    json.begin_object().key("capability").string(print(core::Capability(seal.env)));
    json.key("at").string(seal.position).end_object();
  }
  json.end_array();
}

void write_holes(JsonWriter& json, const Plan& plan) {
  json.key("holes").begin_array();
  for (const PlanHole& hole : plan.holes) {
    json.begin_object().key("name").string(hole.name).key("meaning").string(hole.meaning);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string_view kind_name(PlanMount::Kind kind) {
  switch (kind) {
    case PlanMount::Kind::bind: return "bind";
    case PlanMount::Kind::entries: return "entries";
    case PlanMount::Kind::programs: return "programs";
    case PlanMount::Kind::tmpfs: return "tmpfs";
    case PlanMount::Kind::proc: return "proc";
    case PlanMount::Kind::device: return "device";
    case PlanMount::Kind::symlink: return "symlink";
    case PlanMount::Kind::file: return "file";
    case PlanMount::Kind::mask: return "mask";
  }
  return "";
}

std::string_view capture_name(PlanNetwork::Capture capture) {
  switch (capture) {
    case PlanNetwork::Capture::none: return "none";
    case PlanNetwork::Capture::listeners: return "listeners";
    case PlanNetwork::Capture::redirect: return "redirect";
  }
  return "";
}

void write_plan(JsonWriter& json, const Plan& plan) {
  json.begin_object();
  json.key("schemaVersion").number(1);
  json.key("server").begin_object();
  json.key("name").string(plan.server).key("version").string(plan.version).end_object();
  constexpr std::string_view namespaces[] = {"user", "mount", "pid", "net", "ipc", "uts", "cgroup"};
  write_texts(json, "namespaces", namespaces);
  json.key("identity").begin_object();
  json.key("uid").number(1000).key("gid").number(1000);
  json.key("hostname").string(sandbox_hostname).end_object();
  write_holes(json, plan);
  write_mounts(json, plan);
  write_texts(json, "protected", plan.protected_names);
  write_texts(json, "hidden", plan.hidden_names);
  write_texts(json, "programs", plan.programs);
  write_landlock(json, plan);
  write_limits(json, plan);
  write_network(json, plan.network);
  write_environment(json, plan);
  write_seals(json, plan);
  write_seccomp(json, plan);
  json.end_object();
}

}  // namespace capgate::lower
