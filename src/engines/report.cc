#include "engines/report.h"

#include <unistd.h>

#include "base/format.h"
#include "base/ranges.h"
#include "core/version.h"
#include "lower/common.h"
#include "text/json_write.h"

namespace capgate::engines {
namespace {

using core::FsAction;
using text::JsonWriter;

constexpr std::string_view no_way_out =
    "network namespace without a way out, capgate-broker at the other end of a socket";

class Reporter {
 public:
  explicit Reporter(JsonWriter& json, const EngineRun& run)
      : json_(json), run_(run), is_bwrap_(run.setting.kind == Kind::bwrap) {}

  void write() {
    json_.key("guarantees").begin_array();
    write_files();
    write_network();
    write_processes();
    guarantee("no privilege, now or later",
              is_bwrap_ ? "user namespace, empty capability sets, no_new_privs, seccomp"
                        : "unprivileged user, empty capability sets, no_new_privs, seccomp");
    guarantee("system calls by allowlist", "seccomp");
    guarantee(is_bwrap_ ? "no variable but the listed ones"
                        : "no variable but the listed ones and the image's own",
              is_bwrap_ ? "cleared environment" : "the container's own environment");
    json_.end_array();
  }

 private:
  void guarantee(std::string_view what, std::string_view mechanism) {
    json_.begin_object().key("guarantee").string(what).key("by").string(mechanism).end_object();
  }

  void write_files() {
    for (const auto& grant : run_.input.policy.files) {
      if (lower::is_private_tmp(grant.capability)) continue;
      const bool reads = grant.capability.actions.has(FsAction::read);
      guarantee(format("{} can be read{}", grant.capability.path.base, reads ? "" : " and written"),
                "bind mount");
    }
    guarantee(is_bwrap_
                  ? "no other file of the host can be seen, but /usr and the parts of /etc that "
                    "every program needs"
                  : "no other file of the host can be seen",
              is_bwrap_ ? "mount namespace with a root of its own"
                        : "mount namespace with the image as its root, read-only");
  }

  void write_network() {
    const core::Policy& policy = run_.input.policy;
    if (policy.connect.empty()) {
      return guarantee("no network but the sandbox's own loopback", "network namespace");
    }
    for (const auto& grant : policy.connect) {
      guarantee(format("{} can be reached", print(core::Capability(grant.capability))), no_way_out);
    }
    guarantee("no other host or port can be reached", no_way_out);
    guarantee("the name that TLS or plain HTTP says on the wire is the one that was allowed",
              "capgate-broker: SNI of each TLS connection, Host of each plain HTTP request");
  }

  void write_processes() {
    if (is_bwrap_ && run_.input.policy.programs.empty()) {
      guarantee("no child process", "seccomp");
    } else if (is_bwrap_) {
      guarantee("of the programs in /usr/bin and its like only declared ones can be run",
                "program directories that hold nothing else");
    }
    guarantee("processes outside cannot be seen or signalled", "pid namespace");
  }

  JsonWriter& json_;
  const EngineRun& run_;
  bool is_bwrap_;
};

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key).begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

std::vector<std::string> exceptions(const Ended& ended) {
  const Kind kind = ended.run.setting.kind;
  const core::Policy& policy = ended.run.input.policy;
  std::vector<std::string> out{
      "no Landlock: what the mounts show can be used as far as its owner and mode allow"};
  for (const auto& grant : policy.files) {
    if (grant.capability.actions.has(FsAction::read)) continue;
    out.emplace_back(
        "in a writable grant, files that programs of yours run later are not protected, and files "
        "that hold secrets are not hidden");
    break;
  }
  if (!policy.connect.empty()) {
    out.emplace_back("what is said inside TLS is not seen");
    out.emplace_back("only programs that use the proxy variables reach what is declared");
  }
  if (kind == Kind::bwrap && ::getuid() == 0) {
    out.emplace_back("started by root, the server has root's user id on the host, without rights");
  }
  if (kind != Kind::bwrap) {
    out.push_back(format("every program of the image can be started, and {} is trusted with all",
                         name_of(kind)));
    out.emplace_back(
        "if capgate is killed, the container goes on until the server has read the end of its "
        "input");
    if (!ended.run.artifact.env_injections.empty()) {
      out.push_back(format("the values of declared variables are in {}'s record of the container",
                           name_of(kind)));
    }
  }
  if (ended.memory_is_watched) {
    out.emplace_back("the memory limit is looked at four times a second and can be passed between");
  }
  return out;
}

void write_limits(JsonWriter& json, const std::vector<sandbox::HeldLimit>& limits) {
  json.key("limits").begin_array();
  for (const sandbox::HeldLimit& limit : limits) {
    json.begin_object().key("name").string(limit.name);
    json.key("value").string(sandbox::limit_text(limit.name, limit.value));
    json.key("by").string(limit.mechanism.empty() ? "not held" : limit.mechanism).end_object();
  }
  json.end_array();
}

// Names only: the values are the caller's.
void write_environment(JsonWriter& json, const EngineRun& run) {
  std::vector<std::string> names = run.artifact.env_injections;
  if (run.setting.kind == Kind::bwrap) {
    for (const std::string_view name : {"HOME", "LANG", "PATH", "PWD", "TMPDIR"})
      names.emplace_back(name);
  }
  sort_and_deduplicate(names);
  write_strings(json, "environment", names);
}

std::vector<std::string> unenforced(const Ended& ended) {
  std::vector<std::string> out = ended.run.artifact.unenforced;
  for (const sandbox::HeldLimit& limit : ended.limits) {
    if (!limit.mechanism.empty()) continue;
    out.push_back(format("limit:{}:{}", limit.name, sandbox::limit_text(limit.name, limit.value)));
  }
  return out;
}

}  // namespace

std::string print_report(const Ended& ended) {
  const EngineRun& run = ended.run;
  const lower::Plan& plan = *run.session.artifact.plan;
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("server").string(plan.server).key("version").string(plan.version);
  json.key("engine").string(name_of(run.setting.kind));
  if (!run.setting.image.empty()) json.key("image").string(run.setting.image);
  if (!ended.audit.empty()) json.key("audit").string(ended.audit);
  json.key("policyHash").string(run.input.policy.hash);
  json.key("manifestHash").string(run.input.manifest.hash);
  json.key("program").string(run.setting.command.front());
  write_strings(json, "executables", run.setting.executables);
  write_environment(json, run);
  Reporter(json, run).write();
  write_limits(json, ended.limits);
  write_strings(json, "notHeld", exceptions(ended));
  write_strings(json, "unenforced", unenforced(ended));
  write_strings(json, "notes", run.artifact.notes);
  json.key("exit").begin_object().key("status").number(
      static_cast<std::uint64_t>(ended.outcome.exit_code));
  if (!ended.outcome.explanation.empty()) {
    json.key("explanation").string(ended.outcome.explanation);
  }
  json.end_object().key("compiler").string(core::compiler_id).end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::engines
