#include "lower/compose.h"

#include <span>

#include "base/format.h"
#include "base/text.h"
#include "lower/container.h"
#include "lower/forwarder.h"
#include "lower/seccomp_shared.h"
#include "text/yaml_write.h"

namespace capgate::lower {
namespace {

using text::YamlWriter;

constexpr std::string_view compose_file = "compose.yaml";
constexpr std::string_view seccomp_file = "seccomp.json";
constexpr std::string_view egress_file = "egress.json";
constexpr std::string_view egress_file_inside = "/etc/capgate/egress.json";
constexpr std::string_view shared_volume = "capgate";
constexpr std::string_view network = "egress";
// Compose refuses to start anything as long as the variable is not set.
constexpr std::string_view unnamed_broker_image =
    "${CAPGATE_IMAGE:?name an image that holds capgate}";

constexpr std::uint64_t broker_memory = std::uint64_t{256} << 20;
constexpr std::uint64_t broker_pids = 64;

// Compose replaces $NAME and ${NAME} in every value; a doubled sign stands for itself.
std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    out += c;
    if (c == '$') out += c;
  }
  return out;
}

class ComposeFile {
 public:
  ComposeFile(const Container& container, const Input& input)
      : container_(container), input_(input) {}

  std::string write() {
    yaml_.begin_map().key("services").begin_map();
    if (container_.forwards) write_broker();
    write_server();
    yaml_.end_map();
    if (container_.forwards) write_shared();
    yaml_.end_map();
    return std::move(yaml_).take();
  }

 private:
  void text(std::string_view key, std::string_view value) { yaml_.key(key).string(value); }

  template <typename Texts>
  void list(std::string_view key, const Texts& texts) {
    yaml_.key(key).begin_list();
    for (const std::string_view text : texts) yaml_.string(text);
    yaml_.end_list();
  }

  // What both services are: no rights, nothing writable but a /tmp in memory.
  void isolate(std::string_view tmp_options, std::string_view filter) {
    text("user", input_.options.user);
    list("cap_drop", std::initializer_list<std::string_view>{"ALL"});
    yaml_.key("security_opt").begin_list().string("no-new-privileges:true");
    if (!filter.empty()) yaml_.string(format("seccomp={}", filter));
    yaml_.end_list();
    yaml_.key("tmpfs").begin_list().string(format("/tmp:{}", tmp_options)).end_list();
    text("ipc", "private");
    yaml_.key("init").boolean(true);
  }

  void limit(std::uint64_t pids, std::uint64_t memory) {
    yaml_.key("pids_limit").number(pids);
    yaml_.key("mem_limit").number(memory);
    yaml_.key("memswap_limit").number(memory);
  }

  void write_server() {
    yaml_.key("server").begin_map();
    text("image", plain(input_.options.image));
    write_command();
    text("network_mode", "none");
    text("hostname", sandbox_hostname);
    yaml_.key("stdin_open").boolean(true);
    isolate(format("rw,noexec,nosuid,nodev,size={}", container_.disk.value), seccomp_file);
    if (!input_.options.writable_root) yaml_.key("read_only").boolean(true);
    limit(container_.pids.value, container_.memory.value);
    yaml_.key("ulimits").begin_map().key("nofile").number(container_.files.value).end_map();
    limit_processors();
    yaml_.key("environment").begin_list();
    for (const ContainerVariable& variable : container_.variables) {
      yaml_.string(plain(variable.setting));
    }
    yaml_.end_list();
    write_mounts();
    yaml_.end_map();
  }

  void write_command() {
    if (container_.forwards) {
      yaml_.key("depends_on").begin_map().key("broker").begin_map();
      text("condition", "service_healthy");
      yaml_.end_map().end_map();
      yaml_.key("entrypoint").begin_list().string(forwarder_program);
      for (const std::string_view word : command_prefix(container_)) yaml_.string(word);
      yaml_.end_list();
    }
    if (input_.options.command.empty()) return;
    yaml_.key("command").begin_list();
    for (const std::string& word : input_.options.command) yaml_.string(plain(word));
    yaml_.end_list();
  }

  void limit_processors() {
    if (container_.cpu.value == 0) return;
    constexpr std::uint64_t period = 100'000;  // microseconds
    yaml_.key("cpu_period").number(period);
    yaml_.key("cpu_quota").number(container_.cpu.value * (period / 100));
  }

  // The long form: the short one makes a missing source on the host, and splits paths at ':'.
  void write_mounts() {
    if (container_.mounts.empty() && !container_.forwards) return;
    yaml_.key("volumes").begin_list();
    for (const ContainerMount& mount : container_.mounts) {
      const bool read_only = mount.access == ContainerMount::Access::read_only;
      yaml_.begin_map();
      text("type", "bind");
      text("source", plain(mount.source));
      text("target", plain(mount.target));
      if (read_only) yaml_.key("read_only").boolean(true);
      yaml_.key("bind").begin_map().key("create_host_path").boolean(false);
      // Not every engine makes mounts below a read-only one read-only, so they are left out.
      if (read_only) text("recursive", "disabled");
      yaml_.end_map().end_map();
    }
    if (container_.forwards) mount_shared(ContainerMount::Access::read_only);
    yaml_.end_list();
  }

  void mount_shared(ContainerMount::Access access) {
    yaml_.begin_map();
    text("type", "volume");
    text("source", shared_volume);
    text("target", forwarder_directory);
    if (access == ContainerMount::Access::read_only) yaml_.key("read_only").boolean(true);
    yaml_.key("volume").begin_map().key("nocopy").boolean(true).end_map();
    yaml_.end_map();
  }

  // It runs as the server's user, to whom alone the shared directory belongs.
  void write_broker() {
    const std::string socket = format("unix:{}/egress.sock", forwarder_directory);
    yaml_.key("broker").begin_map();
    text("image", input_.options.broker_image.empty()
                      ? unnamed_broker_image
                      : std::string_view(input_.options.broker_image));
    list("entrypoint",
         std::initializer_list<std::string_view>{"capgate", "egress", "--policy",
                                                 egress_file_inside, "--listen", socket});
    list("command", std::initializer_list<std::string_view>{});
    list("networks", std::initializer_list<std::string_view>{network});
    list("environment", std::initializer_list<std::string_view>{"HOME=/tmp"});
    isolate("rw,noexec,nosuid,nodev,size=67108864", "");
    yaml_.key("read_only").boolean(true);
    limit(broker_pids, broker_memory);
    yaml_.key("volumes").begin_list();
    yaml_.string(format("./{}:{}:ro", egress_file, egress_file_inside));
    mount_shared(ContainerMount::Access::read_write);
    yaml_.end_list();
    write_health();
    yaml_.end_map();
  }

  // The forwarder connects to the broker before it starts anything.
  void write_health() {
    yaml_.key("healthcheck").begin_map();
    list("test", std::initializer_list<std::string_view>{"CMD", forwarder_program, "forward", "--",
                                                         "capgate", "--version"});
    text("interval", "2s");
    text("timeout", "10s");
    yaml_.key("retries").number(15);
    yaml_.end_map();
  }

  void write_shared() {
    const auto user = split(input_.options.user, ':');
    yaml_.key("networks").begin_map().key(network).begin_map();
    text("driver", "bridge");
    yaml_.end_map().end_map();
    yaml_.key("volumes").begin_map().key(shared_volume).begin_map();
    text("driver", "local");
    yaml_.key("driver_opts").begin_map();
    text("type", "tmpfs");
    text("device", "tmpfs");
    text("o",
         format("nosuid,nodev,size=16777216,mode=0700,uid={},gid={}", user.front(), user.back()));
    yaml_.end_map().end_map().end_map();
  }

  const Container& container_;
  const Input& input_;
  YamlWriter yaml_;
};

// What the broker could not see is here only where the caller accepted that (refuse_unseen_requests
// in forwarder.cc); the broker itself would refuse to serve it.
core::NetConnect without_unseen(core::NetConnect connect) {
  if (connect.refinements.proto == core::NetRefinements::Proto::http) return connect;
  connect.refinements.methods.clear();
  connect.refinements.paths.clear();
  return connect;
}

// What the broker enforces, as a manifest of its own: it needs no other capability of the server.
std::string egress_manifest(const Input& input) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object();
  json.key("name").string(input.manifest.name);
  json.key("version").string(input.manifest.version);
  json.key("grammar").string(input.manifest.grammar);
  json.key("serverCapabilities").begin_array();
  for (const auto& grant : input.policy.connect)
    json.string(print(without_unseen(grant.capability)));
  for (const auto& grant : input.policy.assertions) json.string(print(grant.capability));
  json.end_array();
  json.key("tools").begin_array().end_array();
  json.end_object();
  return std::move(json).take() + "\n";
}

// Compose does not use the image's own command where the entry point is another.
void refuse_missing_command(const Input& input, Support& support) {
  if (!uses_forwarder(input.policy) || !input.options.command.empty()) return;
  const auto& grant = input.policy.connect.front();
  support.impossible(grant.capability, grant.origins,
                     "the forwarder starts the server, so its command must be said",
                     "write it last: capgate compile FILE --target compose --image REF -- COMMAND");
}

std::vector<std::string> notes_of(const Container& container, const Input& input) {
  std::vector<std::string> notes = policy_notes(input);
  notes.emplace_back("compose: in the directory of these files: docker compose run --rm -T server");
  notes.emplace_back(
      "exec: docker starts the server below its own init, so programs of the image can be started");
  if (!env_injections(input.policy).empty()) {
    notes.emplace_back(
        "env: compose takes the values of variables from its own environment, or from .env");
  }
  if (!container.mounts.empty()) {
    notes.emplace_back("fs: needs Docker Compose 2.27 or later, which can leave out mounts below");
    notes.emplace_back(
        "fs: files keep their owners: choose with --user the user that may use the grants");
  }
  if (container.forwards) {
    notes.emplace_back(
        "net: the server has no network; the service broker has one, and ends with docker compose "
        "down");
    notes.emplace_back(
        "net: only programs that use the proxy variables (HTTPS_PROXY ...) reach the declared "
        "endpoints");
  }
  return notes;
}

}  // namespace

Checked<Artifact> lower_to_compose(const Input& input) {
  Support support("compose", input);
  refuse_missing_command(input, support);
  const Container container = container_of(input, CallersProxies::must_be_overwritten, support);
  Artifact artifact;
  artifact.target = "compose";
  artifact.files.push_back(
      {.name = compose_file, .contents = ComposeFile(container, input).write()});
  artifact.files.push_back(
      {.name = seccomp_file, .contents = shared_docker_profile(container.needs).json});
  if (container.forwards) {
    artifact.files.push_back({.name = egress_file, .contents = egress_manifest(input)});
  }
  artifact.env_injections = env_injections(input.policy);
  artifact.notes = notes_of(container, input);
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
