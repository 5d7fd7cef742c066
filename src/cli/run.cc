// capgate run: a server in its sandbox.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/kept.h"
#include "base/text.h"
#include "cli/accepted.h"
#include "cli/approved.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/entry.h"
#include "cli/load.h"
#include "cli/net_options.h"
#include "cli/package_command.h"
#include "cli/pins.h"
#include "cli/policy_places.h"
#include "cli/profile.h"
#include "cli/program_places.h"
#include "cli/run_engine.h"
#include "cli/secret_options.h"
#include "cli/secret_places.h"
#include "clients/lacking.h"
#include "lower/common.h"
#include "lower/to_plan.h"
#include "sandbox/session.h"
#include "sandbox/stdio.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

// Every failure of capgate itself, whatever its kind: the server's own codes pass through.
constexpr int refused = 125;

constexpr Option options[] = {
    {.name = "--manifest",
     .value = "FILE",
     .help = "what the server may do; without it nothing but --allow",
     .alias = "-m"},
    {.name = "--allow", .value = "CAP", .help = "one more capability", .repeatable = true},
    secret_option,
    set_option,
    tool_option,
    seal_option,
    {.name = "--profile",
     .value = "NAME",
     .help = "the entry of capgate.yaml: policy, variables, secrets; and HOME is kept"},
    config_option,
    require_approval_option,
    locked_option,
    {.name = "--grace",
     .value = "SECONDS",
     .help = "after the end of input: wait, TERM, wait, KILL (without it the server decides)"},
    {.name = "--report", .value = "FILE", .help = "write which guarantee held by which mechanism"},
    {.name = "--trace",
     .value = "FILE|-",
     .help = "write what is refused, with the capability that would allow it"},
    audit_option,
    proxy_env_option,
    net_limit_option,
    engine_option,
    image_option,
    {.name = "--dry-run", .help = "print the bound plan, or the engine's artifact; start nothing"},
    {.name = "--accept-unenforced",
     .value = "CAP",
     .help = "run although this capability cannot be enforced",
     .repeatable = true},
};

// Says what is in `output` at once, and then also to a client that waits for an answer.
int refuse(Output& output) {
  const std::string words = std::exchange(output.err, {});
  if (!sys::write_all(STDERR_FILENO, words)) return refused;
  sandbox::answer_requests(
      {.message = std::string(trim(words)), .help = "see what capgate wrote to stderr"});
  return refused;
}

std::vector<std::string> environment() {
  char** end = ::environ;
  while (*end != nullptr) ++end;
  // Exactly one copy of each: a short text that is moved leaves its bytes behind.
  return {::environ, end};
}

std::expected<std::optional<int>, int> read_grace(const Arguments& arguments, Output& output) {
  const auto text = arguments.value("--grace");
  if (!text) return std::nullopt;
  const auto seconds = parse_decimal(*text);
  if (!seconds || *seconds > 86400) {
    return std::unexpected(usage_error(format("--grace cannot be {}", quoted(*text)),
                                       "write seconds: --grace 5", output));
  }
  return static_cast<int>(*seconds);
}

// $XDG_STATE_HOME/capgate/NAME/home, made for the user alone. Empty without --profile, whose name
// was checked.
std::expected<std::string, int> state_directory(const Arguments& arguments, Output& output) {
  const auto name = arguments.value("--profile");
  if (!name) return "";
  const std::string path = format("{}/{}/home", state_base(), *name);
  if (arguments.has("--dry-run")) return ::access(path.c_str(), F_OK) == 0 ? path : "";
  auto made = sys::make_directories(path);
  if (!made) {
    return std::unexpected(
        usage_error(format("cannot make {}: {}", escape_for_terminal(made.error().subject),
                           sys::reason(made.error())),
                    "set XDG_STATE_HOME to a directory of yours", output));
  }
  return *made;
}

// Whether a limit can be held is known only when it is set up, so these are not the compiler's.
std::vector<std::string> take_limits(std::vector<std::string>& accepted) {
  const auto limits = std::ranges::partition(
      accepted, [](const std::string& text) { return !text.starts_with("limit:"); });
  std::vector<std::string> out(limits.begin(), limits.end());
  accepted.erase(limits.begin(), limits.end());
  return out;
}

// A server that can write nothing of the host costs no look at any place. HOME of --profile can be
// written.
std::vector<sandbox::PolicyPlace> places_to_keep(ChosenPolicy& chosen, const lower::Plan& plan,
                                                 const std::vector<secrets::Binding>& bindings,
                                                 const std::vector<std::string>& command,
                                                 const Arguments& arguments) {
  std::vector<sandbox::PolicyPlace> out = std::move(chosen.places);
  if (!sandbox::grants_writing(plan) && !arguments.has("--profile")) return out;
  std::ranges::move(policy_places(arguments), std::back_inserter(out));
  const sandbox::Caller caller{.path = variable("PATH"),
                               .directory = config_places(arguments).directory,
                               .home = chosen.loaded.options.home};
  std::ranges::move(secret_places(bindings, caller), std::back_inserter(out));
  // What it wrote there would be started the next time.
  std::ranges::move(program_places(command, caller, "is what is started"), std::back_inserter(out));
  return out;
}

// With --tool the policy is a part on purpose.
sandbox::Lacking find_lacking(const Arguments& arguments, const ChosenPolicy& chosen) {
  if (arguments.has("--tool")) return {};
  clients::Start start{.command = chosen.command,
                       .home = chosen.loaded.options.home,
                       .directory = config_places(arguments).directory};
  for (char** each = ::environ; *each != nullptr; ++each) start.environment.emplace_back(*each);
  return clients::find_lacking(chosen.loaded.manifest, start);
}

// The Plan says which secrets, limits and network there are, whichever engine carries them out.
// Another engine may leave unenforced what the native one keeps: such a name is accepted for that
// one, and in vain here.
Checked<lower::Artifact> plan_of(const lower::Input& input, bool is_native) {
  if (is_native) return lower::lower_to_plan(input);
  auto& native = kept(lower::Options(input.options));
  native.accepted.clear();
  auto plan = lower::lower_to_plan({input.manifest, input.policy, native, input.source});
  return plan ? std::move(plan) : lower::lower_to_plan(input);
}

int run(const Arguments& arguments, Output& output) {
  const auto engine = read_engine(arguments, output);
  if (!engine) return refuse(output);
  auto& chosen = kept(choose_policy(arguments, output));
  if (!chosen) return refuse(output);
  if (auto checked = check_approved(arguments, *chosen, output); !checked) return refuse(output);
  Loaded* const loaded = &chosen->loaded;
  if (auto read = read_accepted(arguments, loaded->options, output); !read) return refuse(output);
  const auto grace = read_grace(arguments, output);
  if (!grace) return refuse(output);
  const auto state = state_directory(arguments, output);
  if (!state) return refuse(output);
  // What is started: the words that were given, or the entry's; a package's from the store.
  auto started = installed_command(chosen->command, chosen->package, output);
  if (!started) return refuse(output);
  const auto net = read_net_options(arguments, loaded->policy, output);
  if (!net) return refuse(output);
  std::vector<std::string> accepted_limits = take_limits(loaded->options.accepted);
#if defined(__aarch64__)
  loaded->options.arch = lower::Arch::aarch64;
#endif
  const Source source = loaded->source();
  const lower::Input input{loaded->manifest, loaded->policy, loaded->options, &source};
  auto& artifact = kept(plan_of(input, !engine->has_value()));
  if (!artifact) {
    report(artifact.error(), source, arguments, output);
    return refuse(output);
  }
  if (!chosen->server.empty()) artifact->plan->server = chosen->server;
  auto bindings = read_secret_options(arguments, chosen->secrets, *artifact->plan, output);
  if (!bindings) return refuse(output);
  const std::string path = variable("PATH");
  sandbox::Session session{.artifact = *artifact,
                           .input = input,
                           .policy_places = places_to_keep(*chosen, *artifact->plan, *bindings,
                                                           started->words, arguments),
                           .sealed_files = sealed_files(*bindings, *artifact->plan),
                           .command = std::move(started->words),
                           .environment = environment(),
                           .secrets = *std::move(bindings),
                           .home = loaded->options.home,
                           .path = path.empty() ? std::string(lower::sandbox_path) : path,
                           .accepted_limits = std::move(accepted_limits),
                           .state = *state,
                           .package = std::move(started->package),
                           .grace = *grace,
                           .report = std::string(arguments.value("--report").value_or("")),
                           .trace = std::string(arguments.value("--trace").value_or("")),
                           .dry_run = arguments.has("--dry-run"),
                           .audit = std::string(arguments.value("--audit").value_or("")),
                           .audit_directory = audit_directory(),
                           .proxy_env = net->proxy_env,
                           .net_limits = net->limits,
                           .lacking = find_lacking(arguments, *chosen)};
  if (!*engine) return sandbox::run(std::move(session));
  const auto status =
      run_by_engine({.kind = **engine, .arguments = arguments, .loaded = *loaded, .source = source},
                    std::move(session), output);
  return status ? *status : refuse(output);
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .operands = "[-- COMMAND ARGS...]",
      .summary = "Run a server so that it can do what its manifest declares and nothing else.",
      .least_operands = 0,
      .most_operands = SIZE_MAX,
      .options = options,
      .details =
          "stdin and stdout are the server's own; its exit status is passed on. 125: capgate\n"
          "refused, 126: the command cannot be run, 127: it was not found. Without a manifest\n"
          "and --allow the server sees /usr, a private HOME and /tmp, and no network.\n"
          "\n"
          "--profile NAME is an entry of capgate.yaml (docs/config.md), if one has it: --config,\n"
          "then ./capgate.yaml, which only narrows, then ~/.config/capgate, then /etc/capgate.\n"
          "Options win: -m and --allow replace its policy, --set and --secret single names.\n"
          "What was approved (capgate approve, docs/lock.md) must be what runs.\n"
          "\n"
          "A secret is env:inject:NAME; with ?to=HOST:PORT it is sealed: the server gets a\n"
          "placeholder, and the value goes into requests to that endpoint alone, outside.\n"
          "Providers of --secret: env:NAME, file:PATH, cmd:PROGRAM ARGUMENTS (no shell; for\n"
          "tokens that expire cmd?ttl=SECONDS: or cmd?json:), systemd-credential:NAME,\n"
          "keyring:NAME, store:NAME (capgate secret).\n"
          "\n"
          "--engine bwrap, docker or podman carries out what `compile` prints for that target,\n"
          "where it can keep the policy; what it cannot is refused (docs/run.md).",
      .examples =
          "  capgate run -m github.json -- node server.js\n"
          "  capgate run --profile github              an entry of capgate.yaml, all of it\n"
          "  capgate run --allow 'fs:write:/srv/notes/**' -- npx-server /srv/notes\n"
          "  capgate run -m github.json --seal --secret GITHUB_TOKEN='cmd:pass show github' \\\n"
          "              -- node server.js\n"
          "  capgate run --allow net:connect:api.github.com:443 \\\n"
          "              --allow 'env:inject:GITHUB_TOKEN?to=api.github.com:443' \\\n"
          "              --secret GITHUB_TOKEN=file:$HOME/.github-token -- node server.js\n"
          "  capgate run -m git.json --set REPO=/srv/repo --report report.json -- git-mcp-server\n"
          "  capgate run -m m.json --trace - -- node server.js    what is missing, line by line\n"
          "  capgate run -m m.json --engine podman --image localhost/server:1 -- node server.js",
      .run = run,
      .operands_end_options = true,
      .on_usage_error = refuse};
}

}  // namespace capgate::cli
