// docker and podman as engines: one container for one run, by the engine's own command.
#include "engines/container.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <deque>

#include "base/base64.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/text.h"
#include "engines/server.h"
#include "sandbox/network.h"
#include "secrets/secret.h"
#include "text/json.h"

namespace capgate::engines {
namespace {

using sandbox::Refusal;
using std::chrono::milliseconds;

constexpr milliseconds longest_answer{30'000};
constexpr milliseconds before_last_look{300};

// What the engine's command itself reads. Everything else of the caller stays outside.
constexpr std::array<std::string_view, 9> client_names{"HOME",
                                                       "XDG_RUNTIME_DIR",
                                                       "XDG_CONFIG_HOME",
                                                       "XDG_DATA_HOME",
                                                       "DOCKER_HOST",
                                                       "DOCKER_CONFIG",
                                                       "CONTAINERS_CONF",
                                                       "CONTAINERS_STORAGE_CONF",
                                                       "DBUS_SESSION_BUS_ADDRESS"};
constexpr std::string_view client_path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

std::string value_in(const std::vector<std::string>& environment, std::string_view name) {
  const std::string begin = format("{}=", name);
  for (const std::string& entry : environment) {
    if (entry.starts_with(begin)) return entry.substr(begin.size());
  }
  return {};
}

// A variable that the server gets is one of the command's as well, and must not steer it.
bool steers_the_command(std::string_view name) {
  constexpr std::string_view beginnings[] = {"DOCKER_",  "CONTAINER", "PODMAN",     "BUILDAH",
                                             "STORAGE_", "LD_",       "XDG_",       "GODEBUG",
                                             "NETAVARK", "REGISTRY_", "_CONTAINERS"};
  return name == "PATH" || name == "HOME" || name == "TMPDIR" ||
         std::ranges::any_of(beginnings,
                             [&](std::string_view begin) { return name.starts_with(begin); });
}

std::expected<std::vector<std::string>, Refusal> client_environment(
    const EngineRun& run, const sandbox::Prepared& prepared) {
  const std::string_view engine = name_of(run.setting.kind);
  for (const std::string& name : run.artifact.env_injections) {
    if (!steers_the_command(name)) continue;
    return refuse(format("--engine {}: the variable {} would change what {} itself does", engine,
                         name, engine),
                  "use --engine bwrap or the native engine");
  }
  const auto& caller = prepared.launcher.environment;
  const std::string host = value_in(caller, "DOCKER_HOST");
  if (run.setting.kind == Kind::docker && !host.empty() && !host.starts_with("unix:")) {
    return refuse("DOCKER_HOST is another machine, whose files would be granted",
                  "set DOCKER_HOST to a socket of this host: unix:///run/docker.sock");
  }
  std::vector<std::string> out{std::string(client_path)};
  for (const std::string_view name : client_names) {
    const std::string value = value_in(caller, name);
    if (!value.empty()) out.push_back(format("{}={}", name, value));
  }
  // Not the one that the user's configuration chose, which may be another machine, too.
  if (host.empty()) out.emplace_back("DOCKER_CONTEXT=default");
  return out;
}

std::expected<Finished, Refusal> ask(const EngineRun& run,
                                     const std::vector<std::string>& environment,
                                     std::vector<std::string> words) {
  words.insert(words.begin(), std::string(name_of(run.setting.kind)));
  return run_command({.program = run.setting.program,
                      .arguments = std::move(words),
                      .environment = environment,
                      .descriptors = {}},
                     longest_answer);
}

// The engine's own words, one line of them.
std::string last_line(std::string_view output) {
  const std::string_view text = trim(output);
  const std::size_t at = text.rfind('\n');
  return escape_for_terminal(at == std::string_view::npos ? text : text.substr(at + 1));
}

std::expected<std::string, Refusal> find_image(const EngineRun& run,
                                               const std::vector<std::string>& environment) {
  const std::string& image = run.setting.image;
  const Finished found =
      TRY(ask(run, environment, {"image", "inspect", "--format", "{{.Id}}", "--", image}));
  const std::string_view id = trim(found.output);
  if (found.status == 0 && !id.empty() && !id.contains('\n')) return std::string(id);
  const std::string_view engine = name_of(run.setting.kind);
  return refuse(format("{} has no image {}: {}", engine, quoted(image), last_line(found.output)),
                format("capgate fetches nothing by itself; fetch it first: {} pull {}", engine,
                       escape_for_terminal(image)));
}

// ---- which limits the engine holds --------------------------------------------------------------

// Of what `info` says: docker names each limit, podman its controllers.
bool holds(const text::Value& info, Kind kind, std::string_view limit) {
  if (limit == "files" || limit == "disk") return true;
  if (kind == Kind::docker) {
    const std::string_view key = limit == "memory" ? "MemoryLimit"
                                 : limit == "pids" ? "PidsLimit"
                                                   : "CpuCfsQuota";
    const auto value = info.find(key);
    return value && value->text() == "true";
  }
  const auto host = info.find("host");
  const auto controllers = host ? host->find("cgroupControllers") : std::nullopt;
  if (!controllers || !controllers->is(text::Kind::array)) return false;
  for (const text::Value name : controllers->elements()) {
    if (name.text() == limit) return true;
  }
  return false;
}

// docker's `info` succeeds without a daemon, and says so inside.
std::string server_error(const text::Value& info) {
  const auto errors = info.find("ServerErrors");
  if (!errors || !errors->is(text::Kind::array)) return {};
  for (const text::Value error : errors->elements()) return std::string(error.text());
  return {};
}

std::string mechanism_of(std::string_view limit, std::string_view engine) {
  if (limit == "files") return format("{}: rlimit", engine);
  if (limit == "disk") return "size of the private /tmp";
  return format("{}: cgroup", engine);
}

std::expected<std::vector<sandbox::HeldLimit>, Refusal> held_limits(
    const EngineRun& run, const std::vector<std::string>& environment) {
  const Kind kind = run.setting.kind;
  const std::string_view engine = name_of(kind);
  const Finished told = TRY(
      ask(run, environment, {"info", "--format", kind == Kind::docker ? "{{json .}}" : "json"}));
  const auto info = text::parse_json(told.output);
  if (told.status != 0 || !info || !info->root().is(text::Kind::object)) {
    return refuse(format("{} does not answer: {}", engine, last_line(told.output)),
                  format("try: {} info", engine));
  }
  if (const std::string error = server_error(info->root()); !error.empty()) {
    return refuse(format("{} does not answer: {}", engine, last_line(error)),
                  format("start it, and see that you may use it: {} info", engine));
  }
  std::vector<sandbox::HeldLimit> out;
  for (const lower::PlanLimit& limit : run.session.artifact.plan->limits) {
    if (limit.name == "time") continue;  // capgate's
    const std::string text =
        format("limit:{}:{}", limit.name, sandbox::limit_text(limit.name, limit.value));
    const bool is_held = holds(info->root(), kind, limit.name);
    if (!is_held && !limit.is_default && !contains(run.session.accepted_limits, text)) {
      return refuse(format("{} cannot be held: {} has no such cgroup here", text, engine),
                    "cgroups v2 that are delegated to its user, an engine of root, or remove it");
    }
    out.push_back({.name = limit.name,
                   .value = limit.value,
                   .mechanism = is_held ? mechanism_of(limit.name, engine) : std::string()});
  }
  return out;
}

// ---- the container ------------------------------------------------------------------------------

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? std::to_string(signal) : name;
}

class ContainerServer : public Server {
 public:
  explicit ContainerServer(const Parts& parts) : parts_(parts) {}
  ContainerServer(const ContainerServer&) = delete;
  ContainerServer& operator=(const ContainerServer&) = delete;
  ContainerServer(ContainerServer&&) = delete;
  ContainerServer& operator=(ContainerServer&&) = delete;
  ~ContainerServer() override {
    // Whoever it was for has ended.
    for (const Process& helper : helpers_) {
      ::syscall(SYS_pidfd_send_signal, helper.pidfd.get(), SIGKILL, nullptr, 0);
      (void)reap(helper);
    }
    if (may_be_left_) remove();
  }

  std::expected<void, Refusal> start() {
    name_ = format("capgate-{}", TRY(sandbox::random_run_name()));
    Pipe errors = TRY(make_pipe());
    std::vector<sys::Fd> files;
    Start start{.program = parts_.run.setting.program,
                .arguments = words(),
                .environment = parts_.container.environment,
                .descriptors = {{errors.write.get(), STDERR_FILENO}}};
    for (const lower::Descriptor& entry : parts_.run.artifact.fds) {
      const auto contents = decode_base64(entry.base64);
      if (!contents) return refuse("a descriptor of the artifact is not base64", "report this");
      files.push_back(TRY(artifact_file(*contents)));
      start.descriptors.push_back({files.back().get(), static_cast<int>(entry.fd)});
    }
    for (const std::string& name : parts_.run.artifact.env_injections) {
      start.environment.push_back(TRY(declared_variable(name, parts_.prepared)));
    }
    may_be_left_ = true;
    auto started = start_process(start);
    for (std::string& variable : start.environment) secrets::wipe(variable);
    if (!started) return std::unexpected(std::move(started).error());
    process_ = *std::move(started);
    errors_ = std::move(errors.read);
    return {};
  }

  // A command that carries a signal.
  [[nodiscard]] int fd() const override {
    return helpers_.empty() ? -1 : helpers_.front().pidfd.get();
  }

  void step() override {
    while (!helpers_.empty()) {
      pollfd ended{helpers_.front().pidfd.get(), POLLIN, 0};
      if (::poll(&ended, 1, 0) != 1) return;
      const int status = reap(helpers_.front());
      helpers_.pop_front();
      // No container has that name yet, or it does not run yet. It will not.
      if (status != 0) end_client();
    }
  }

  void pass(int signal) override {
    last_signal_ = signal;
    send({"kill", "--signal", signal_name(signal), name_});
  }

  void kill() override {
    last_signal_ = SIGKILL;
    send({"kill", "--signal", "KILL", name_});
  }

  [[nodiscard]] std::expected<int, Refusal> result(int status) override {
    if (was_ended_) return 128 + last_signal_;
    constexpr int engine_failed = 125;
    if (status == engine_failed) {
      return refuse(format("{} did not start the server", name_of(parts_.run.setting.kind)),
                    "see what it wrote to stderr");
    }
    // Its command waits until the container is removed.
    may_be_left_ = last_signal_ != 0;
    return status;
  }

 private:
  [[nodiscard]] std::vector<std::string> words() const {
    const lower::Artifact& artifact = parts_.run.artifact;
    const Setting& setting = parts_.run.setting;
    std::vector<std::string> out{
        std::string(name_of(setting.kind)), "run", "--name", name_, "--pull", "never"};
    out.insert(out.end(), artifact.argv.begin(), artifact.argv.end());
    out.push_back(parts_.container.image_id);
    out.insert(out.end(), artifact.command_prefix.begin(), artifact.command_prefix.end());
    out.insert(out.end(), setting.command.begin(), setting.command.end());
    return out;
  }

  void send(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(name_of(parts_.run.setting.kind)));
    const sys::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    auto helper = start_process({.program = parts_.run.setting.program,
                                 .arguments = std::move(words),
                                 .environment = parts_.container.environment,
                                 .descriptors = {{null.get(), STDIN_FILENO},
                                                 {null.get(), STDOUT_FILENO},
                                                 {null.get(), STDERR_FILENO}}});
    if (!helper) return end_client();
    helpers_.push_back(*std::move(helper));
  }

  void end_client() {
    was_ended_ = true;
    ::syscall(SYS_pidfd_send_signal, process_.pidfd.get(), SIGKILL, nullptr, 0);
  }

  // Twice where there was none: what the command asked for last may only now be done.
  void remove() {
    const auto& environment = parts_.container.environment;
    for (int attempt = 0; attempt < 2; ++attempt) {
      (void)ask(parts_.run, environment, {"kill", name_}).has_value();
      const auto removed = ask(parts_.run, environment, {"rm", "--force", name_});
      const bool was_there = removed && removed->status == 0 && trim(removed->output) == name_;
      if (was_there || !was_ended_) return;
      if (attempt == 0) (void)::poll(nullptr, 0, before_last_look.count());
    }
  }

  const Parts& parts_;
  std::string name_;
  std::deque<Process> helpers_;
  int last_signal_ = 0;
  bool was_ended_ = false;
  bool may_be_left_ = false;
};

}  // namespace

std::expected<Container, Refusal> look_at_engine(const EngineRun& run,
                                                 const sandbox::Prepared& prepared) {
  Container out{.environment = TRY(client_environment(run, prepared))};
  out.limits = TRY(held_limits(run, out.environment));
  out.image_id = TRY(find_image(run, out.environment));
  return out;
}

std::expected<std::unique_ptr<Server>, Refusal> start_container(const Parts& parts) {
  auto server = std::make_unique<ContainerServer>(parts);
  if (auto started = server->start(); !started) return std::unexpected(std::move(started).error());
  return server;
}

}  // namespace capgate::engines
