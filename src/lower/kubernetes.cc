#include "lower/kubernetes.h"

#include "base/digest.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/egress_policy.h"
#include "lower/kubernetes_objects.h"
#include "lower/safe_name.h"
#include "lower/seccomp_shared.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;
using text::YamlWriter;

constexpr std::string_view broker_user = "65532";

struct User {
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
};

User parse_user(std::string_view text) {
  const auto parts = split(text, ':');
  return {.uid = parse_decimal(parts.front()).value_or(0),
          .gid = parse_decimal(parts.back()).value_or(0)};
}

// One grant, as a place in a claim.
struct Mount {
  std::string path;
  std::string claim;
  std::string inside;  // below the claim's root, or empty
  bool read_only = true;
};

// The name says the path for people, and its hash tells paths apart that look alike.
std::string claim_name(std::string_view path) {
  return format("{}-{}", safe_name(path, 40), sha256_hex(path).substr(0, 8));
}

void write_container_security(YamlWriter& yaml) {
  yaml.key("securityContext").begin_map();
  yaml.key("allowPrivilegeEscalation").boolean(false);
  yaml.key("privileged").boolean(false);
  yaml.key("readOnlyRootFilesystem").boolean(true);
  yaml.key("capabilities").begin_map().key("drop").begin_list().string("ALL").end_list().end_map();
  yaml.end_map();
}

void write_pod_security(YamlWriter& yaml, const User& user, std::string_view localhost_profile) {
  yaml.key("securityContext").begin_map();
  yaml.key("runAsNonRoot").boolean(true);
  yaml.key("runAsUser").number(user.uid).key("runAsGroup").number(user.gid);
  yaml.key("fsGroup").number(user.gid).key("fsGroupChangePolicy").string("OnRootMismatch");
  yaml.key("seccompProfile").begin_map();
  if (localhost_profile.empty()) {
    yaml.key("type").string("RuntimeDefault");
  } else {
    yaml.key("type").string("Localhost");
    yaml.key("localhostProfile").string(format("profiles/{}", localhost_profile));
  }
  yaml.end_map().end_map();
}

void write_strings(YamlWriter& yaml, std::string_view key, const std::vector<std::string>& words) {
  yaml.key(key).begin_list();
  for (const std::string& word : words) yaml.string(word);
  yaml.end_list();
}

void write_value(YamlWriter& yaml, std::string_view name, std::string_view value) {
  yaml.begin_map().key("name").string(name).key("value").string(value).end_map();
}

void write_reference(YamlWriter& yaml, std::string_view variable, std::string_view kind,
                     std::string_view object, std::string_view key) {
  yaml.begin_map().key("name").string(variable).key("valueFrom").begin_map().key(kind).begin_map();
  yaml.key("name").string(object).key("key").string(key);
  if (kind == "configMapKeyRef") yaml.key("optional").boolean(true);
  yaml.end_map().end_map().end_map();
}

void write_mount(YamlWriter& yaml, std::string_view volume, std::string_view path, bool read_only) {
  yaml.begin_map().key("name").string(volume).key("mountPath").string(path);
  if (read_only) yaml.key("readOnly").boolean(true);
  yaml.end_map();
}

// In memory, where its size is a limit and not a reason for eviction.
void write_private_place(YamlWriter& yaml, std::string_view name, std::uint64_t size) {
  yaml.begin_map().key("name").string(name).key("emptyDir").begin_map();
  yaml.key("medium").string("Memory").key("sizeLimit").string(std::to_string(size));
  yaml.end_map().end_map();
}

class Kubernetes {
 public:
  explicit Kubernetes(const Input& input)
      : input_(input),
        policy_(input.policy),
        names_(object_names(input.manifest.name)),
        user_(parse_user(input.options.user)),
        support_("kubernetes", input) {
    artifact_.target = "kubernetes";
  }

  Checked<Artifact> lower() {
    TRY(check_options());
    refuse_what_it_cannot_keep();
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    find_mounts();
    write_account(names_.server);
    // First, so that its address is known when the server's pod is made.
    if (has_egress()) write_broker();
    write_network_policies(yaml_, input_, names_);
    yaml_.next_document();
    write_server();
    artifact_.files.push_back({.name = artifact_.texts.keep(names_.server + ".yaml"),
                               .contents = std::move(yaml_).take()});
    artifact_.files.push_back({.name = artifact_.texts.keep(names_.seccomp_file),
                               .contents = shared_docker_profile(seccomp_needs(policy_)).json});
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  [[nodiscard]] Checked<void> check_options() const {
    const auto refusal = [](std::string message, std::string help) {
      return std::unexpected(Diagnostics{{.code = Code::adapter_unsupported,
                                          .where = Span::nowhere(),
                                          .message = std::move(message),
                                          .help = std::move(help)}});
    };
    if (user_.uid == 0 || user_.gid == 0) {
      return refusal("kubernetes runs no server as root", "write another --user: 1000:1000");
    }
    if (input_.options.writable_root) {
      return refusal("kubernetes keeps the image's root read-only", "leave --writable-root out");
    }
    if (has_egress() && input_.options.broker_image.empty()) {
      return refusal("net:connect on kubernetes needs --broker-image",
                     "name an image that holds capgate: --broker-image ghcr.io/me/capgate:1.0");
    }
    return {};
  }

  [[nodiscard]] bool has_egress() const { return !policy_.connect.empty(); }

  void refuse_what_it_cannot_keep() {
    refuse_native_only(input_, support_);
    refuse_listeners(input_, support_);
    refuse_unseen_requests(input_, support_);
    refuse_loopback(input_, support_);
    refuse_credentials();
    for (const auto& grant : policy_.programs) {
      support_.unsupported(grant.capability, grant.origins,
                           "every program of the image can be started", "use the native engine");
    }
    for (const auto& grant : policy_.sockets) {
      using enum IpcCapability::Kind;
      if (grant.capability.kind == self || grant.capability.kind == netlink_route) continue;
      support_.impossible(grant.capability, grant.origins, "a pod has no sockets of a host",
                          "use an engine on the host itself");
    }
    for (const auto& grant : policy_.limits) {
      using enum LimitCapability::Kind;
      const LimitCapability::Kind kind = grant.capability.kind;
      if (kind == memory || kind == cpu || kind == disk) continue;
      support_.unsupported(grant.capability, grant.origins,
                           kind == pids
                               ? "how many processes a pod may have is a setting of the node"
                               : "a Deployment sets no such limit",
                           "use --target systemd or the native engine");
    }
  }

  void refuse_credentials() {
    for (const auto& grant : policy_.files) {
      if (is_private_tmp(grant.capability)) continue;
      const auto hidden = core::credentials_below(grant.capability.path.base, input_.options.home);
      if (hidden.empty()) continue;
      support_.unsupported(grant.capability, grant.origins,
                           format("it cannot hide {} inside the grant", hidden.front().path),
                           "grant what is needed below it, or use the native engine");
    }
  }

  // A grant inside another one is a place in the same claim, so that both see the same files.
  void find_mounts() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      const std::string& path = fs.path.base;
      Mount mount{.path = path, .claim = claim_name(path), .inside = {}};
      mount.read_only = fs.actions.has(FsAction::read);
      for (const Mount& outer : mounts_) {
        if (!outer.inside.empty() || !core::is_at_or_below(path, outer.path)) continue;
        mount.claim = outer.claim;
        mount.inside = path.substr(outer.path.size() + 1);
      }
      mounts_.push_back(std::move(mount));
    }
  }

  void write_account(std::string_view name) {
    begin_object(yaml_, "v1", "ServiceAccount", name);
    yaml_.key("automountServiceAccountToken").boolean(false).end_map();
  }

  void write_broker() {
    yaml_.next_document();
    write_account(names_.broker);
    yaml_.next_document();
    begin_object(yaml_, "v1", "ConfigMap", names_.broker);
    yaml_.key("data").begin_map().key("egress.yaml").block(egress_policy_yaml(input_));
    yaml_.end_map().end_map().next_document();
    begin_object(yaml_, "v1", "Service", names_.broker);
    yaml_.key("spec").begin_map().key("selector").begin_map();
    yaml_.key("app.kubernetes.io/name").string(names_.broker).end_map();
    yaml_.key("ports").begin_list().begin_map().key("port").number(broker_port);
    yaml_.key("protocol").string("TCP").end_map().end_list().end_map().end_map();
    yaml_.next_document();
    begin_deployment(names_.broker);
    write_pod_security(yaml_, parse_user(format("{0}:{0}", broker_user)), "");
    yaml_.key("enableServiceLinks").boolean(false);
    write_broker_container();
    end_deployment();
  }

  void write_broker_container() {
    yaml_.key("containers").begin_list().begin_map();
    yaml_.key("name").string("egress").key("image").string(input_.options.broker_image);
    write_strings(yaml_, "command",
                  {"/usr/bin/capgate", "egress", "--policy", "/etc/capgate/egress.yaml", "--listen",
                   format("tcp:$(POD_IP):{}", broker_port), "--expose", "--token-file",
                   "/run/secrets/capgate/token"});
    yaml_.key("env").begin_list().begin_map().key("name").string("POD_IP");
    yaml_.key("valueFrom").begin_map().key("fieldRef").begin_map();
    yaml_.key("fieldPath").string("status.podIP").end_map().end_map().end_map();
    write_value(yaml_, "HOME", "/tmp");
    yaml_.end_list().key("ports").begin_list().begin_map();
    yaml_.key("containerPort").number(broker_port).end_map().end_list();
    write_container_security(yaml_);
    yaml_.key("resources").begin_map().key("limits").begin_map();
    yaml_.key("memory").string("268435456").key("ephemeral-storage").string("268435456");
    yaml_.end_map().end_map().key("volumeMounts").begin_list();
    write_mount(yaml_, "policy", "/etc/capgate", true);
    write_mount(yaml_, "token", "/run/secrets/capgate", true);
    write_mount(yaml_, "tmp", "/tmp", false);
    yaml_.end_list().end_map().end_list().key("volumes").begin_list();
    yaml_.begin_map().key("name").string("policy").key("configMap").begin_map();
    yaml_.key("name").string(names_.broker).end_map().end_map();
    yaml_.begin_map().key("name").string("token").key("secret").begin_map();
    yaml_.key("secretName").string(names_.token).end_map().end_map();
    write_private_place(yaml_, "tmp", std::uint64_t{64} << 20);
    yaml_.end_list();
  }

  // Leaves the pod's spec open.
  void begin_deployment(std::string_view name) {
    begin_object(yaml_, "apps/v1", "Deployment", name);
    yaml_.key("spec").begin_map().key("replicas").number(1);
    yaml_.key("strategy").begin_map().key("type").string("Recreate").end_map();
    yaml_.key("selector").begin_map().key("matchLabels").begin_map();
    yaml_.key("app.kubernetes.io/name").string(name).end_map().end_map();
    yaml_.key("template").begin_map().key("metadata").begin_map().key("labels");
    write_labels(yaml_, name);
    yaml_.key("annotations").begin_map().key("capgate/policy-hash").string(policy_.hash).end_map();
    yaml_.end_map().key("spec").begin_map();
    yaml_.key("serviceAccountName").string(name);
    yaml_.key("automountServiceAccountToken").boolean(false);
    yaml_.key("terminationGracePeriodSeconds").number(10);
  }

  void end_deployment() { yaml_.end_map().end_map().end_map().end_map(); }

  void write_server() {
    begin_deployment(names_.server);
    write_pod_security(yaml_, user_, names_.seccomp_file);
    yaml_.key("hostname").string(sandbox_hostname);
    yaml_.key("hostNetwork").boolean(false).key("hostPID").boolean(false);
    yaml_.key("hostIPC").boolean(false).key("shareProcessNamespace").boolean(false);
    // The broker's address comes by a variable, since the server may not ask a name server.
    yaml_.key("enableServiceLinks").boolean(has_egress());
    yaml_.key("dnsPolicy").string("None").key("dnsConfig").begin_map();
    yaml_.key("nameservers").begin_list().string("127.0.0.1").end_list().end_map();
    yaml_.key("containers").begin_list().begin_map();
    yaml_.key("name").string("server").key("image").string(input_.options.image);
    if (!input_.options.command.empty()) write_command();
    // A client that detaches ends the server, and the next one gets a new server.
    yaml_.key("stdin").boolean(true).key("stdinOnce").boolean(true).key("tty").boolean(false);
    write_environment();
    write_container_security(yaml_);
    write_resources();
    write_server_mounts();
    end_deployment();
  }

  void write_command() {
    std::vector<std::string> words;
    words.reserve(input_.options.command.size());
    for (const std::string& word : input_.options.command) words.push_back(literal(word));
    write_strings(yaml_, "command", words);
  }

  void write_environment() {
    yaml_.key("env").begin_list();
    write_value(yaml_, "HOME", "/tmp");
    write_value(yaml_, "TMPDIR", "/tmp");
    for (const auto& grant : policy_.variables) {
      const bool read = grant.capability.action == core::EnvCapability::Action::read;
      const std::string& name = grant.capability.name;
      write_reference(yaml_, name, read ? "configMapKeyRef" : "secretKeyRef", names_.environment,
                      name);
    }
    if (has_egress()) write_proxy_variables();
    yaml_.end_list();
  }

  // A variable can hold another one that stands before it, or that Kubernetes itself sets.
  void write_proxy_variables() {
    constexpr std::string_view token = "CAPGATE_EGRESS_TOKEN";
    const auto write = [&](std::string_view name, std::string_view value) {
      if (!contains(artifact_.env_injections, name)) write_value(yaml_, name, value);
    };
    write_reference(yaml_, token, "secretKeyRef", names_.token, "token");
    const std::string proxy =
        format("http://capgate:$({})@$({}):{}", token, names_.broker_address, broker_port);
    for (const std::string_view name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}) {
      write(name, proxy);
    }
    write("NO_PROXY", "localhost,127.0.0.1,::1");
    write("no_proxy", "localhost,127.0.0.1,::1");
    write("NODE_USE_ENV_PROXY", "1");
  }

  void write_resources() {
    const PlanLimit cpu = limit_of(policy_, LimitCapability::Kind::cpu);
    yaml_.key("resources").begin_map().key("limits").begin_map();
    yaml_.key("memory").string(
        std::to_string(limit_of(policy_, LimitCapability::Kind::memory).value));
    if (cpu.value != 0) yaml_.key("cpu").string(format("{}m", cpu.value * 10));
    yaml_.key("ephemeral-storage")
        .string(std::to_string(limit_of(policy_, LimitCapability::Kind::disk).value));
    yaml_.end_map().end_map();
  }

  void write_server_mounts() {
    yaml_.key("volumeMounts").begin_list();
    write_mount(yaml_, "tmp", "/tmp", false);
    for (const Mount& mount : mounts_) {
      yaml_.begin_map().key("name").string(mount.claim).key("mountPath").string(mount.path);
      if (!mount.inside.empty()) yaml_.key("subPath").string(mount.inside);
      yaml_.key("readOnly").boolean(mount.read_only).end_map();
    }
    yaml_.end_list().end_map().end_list().key("volumes").begin_list();
    write_private_place(yaml_, "tmp", limit_of(policy_, LimitCapability::Kind::disk).value);
    for (const Mount& mount : mounts_) {
      if (!mount.inside.empty()) continue;
      yaml_.begin_map().key("name").string(mount.claim).key("persistentVolumeClaim").begin_map();
      yaml_.key("claimName").string(mount.claim).end_map().end_map();
    }
    yaml_.end_list();
  }

  void add_notes() {
    artifact_.notes.push_back(
        format("seccomp: {} must lie in profiles/ of the kubelet's seccomp folder on each node; "
               "without it "
               "the server does not start",
               names_.seccomp_file));
    artifact_.notes.emplace_back(
        "net: the cluster's network plugin must enforce network policies, or none of this holds");
    artifact_.notes.emplace_back("limit: the node decides how many processes and files a pod has");
    for (const Mount& mount : mounts_) {
      if (!mount.inside.empty()) continue;
      artifact_.notes.push_back(format("fs: {} is the persistent volume claim {}",
                                       escape_for_terminal(mount.path), mount.claim));
    }
    if (!policy_.variables.empty()) {
      artifact_.notes.push_back(
          format("env: injected values come from the Secret {0}, others from the ConfigMap {0}",
                 names_.environment));
    }
    if (has_egress()) {
      artifact_.notes.push_back(
          format("net: the broker's token is the key token of the Secret {}", names_.token));
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  ObjectNames names_;
  User user_;
  Support support_;
  Artifact artifact_;
  YamlWriter yaml_;
  std::vector<Mount> mounts_;
};

}  // namespace

Checked<Artifact> lower_to_kubernetes(const Input& input) { return Kubernetes(input).lower(); }

}  // namespace capgate::lower
