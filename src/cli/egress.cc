// capgate egress: the broker alone, for sandboxes that other engines make.
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/render.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/net_options.h"
#include "core/merge.h"
#include "import/egress_spec.h"
#include "lower/common.h"
#include "lower/plan_network.h"
#include "sandbox/egress_policy.h"
#include "sandbox/egress_service.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

using sandbox::Where;

constexpr Option options[] = {
    {.name = "--policy",
     .value = "FILE",
     .help = "a manifest, or what `compile --target egress` printed; - is standard input"},
    {.name = "--listen",
     .value = "WHERE",
     .help = "unix:DIRECTORY/egress.sock, or tcp:127.0.0.1:PORT with --token-file"},
    {.name = "--token-file",
     .value = "FILE",
     .help = "what clients of a port must show; made, for you alone, if it is not there"},
    {.name = "--expose",
     .help = "listen at an address beyond the loopback: whoever reaches it sees the token pass"},
    {.name = "--socket-mode",
     .value = "MODE",
     .help = "of the socket: 0600, or 0660 or 0666 for containers with another user"},
    {.name = "--no-forwarder", .help = "do not put capgate-init beside the socket"},
    audit_option,
    set_option,
    tool_option,
    validators_option,
    net_limit_option,
    json_option,
};

// Where the rules come from: both kinds of file become the same.
std::expected<Loaded, int> load_spec(std::shared_ptr<const text::Document> document,
                                     const std::string& name, const Arguments& arguments,
                                     Output& output) {
  for (const std::string_view option : {"--set", "--tool", "--validators"}) {
    if (arguments.values(option).empty()) continue;
    return std::unexpected(usage_error(format("{} is for manifests, and {} is none", option, name),
                                       format("leave {} out", option), output));
  }
  Loaded loaded{.name = name, .document = std::move(document)};
  const auto spec = imports::read_egress_spec(*loaded.document);
  if (!spec) return std::unexpected(report(spec.error(), loaded.source(), arguments, output));
  loaded.manifest = spec->manifest();
  auto policy = core::merge(loaded.manifest);
  if (!policy) return std::unexpected(report(policy.error(), loaded.source(), arguments, output));
  loaded.policy = *std::move(policy);
  // The one that was reviewed: this spec is a part of it.
  loaded.policy.hash = spec->policy_hash;
  return loaded;
}

std::expected<Loaded, int> load_policy(const std::string& path, const Arguments& arguments,
                                       Output& output) {
  auto read = sys::read_file(path, text::largest_document);
  if (!read) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(read.error().subject),
                         sys::reason(read.error()));
    return std::unexpected(Exit::unreadable);
  }
  const std::string name = path == "-" ? "<stdin>" : path;
  auto parsed = parse_document(name, text::share(*std::move(read)), arguments, output);
  if (!parsed) return std::unexpected(parsed.error());
  std::shared_ptr<const text::Document> document = *std::move(parsed);
  if (imports::is_egress_spec(*document)) {
    return load_spec(std::move(document), name, arguments, output);
  }
  return load(arguments,
              {.manifest = {},
               .home = home_directory(),
               .document = std::move(document),
               .document_name = name},
              output);
}

// TLS to such an endpoint would be terminated, and the authority for that must be known inside.
void refuse_seals(const lower::Input& input, lower::Support& support) {
  for (const auto& grant : input.policy.variables) {
    if (grant.capability.to.empty()) continue;
    support.impossible(grant.capability, grant.origins, "capgate egress holds no secrets",
                       "use capgate run, which puts sealed values into requests");
  }
}

std::expected<egress::Policy, int> egress_rules(const Loaded& loaded, const Arguments& arguments,
                                                Output& output) {
  if (loaded.policy.connect.empty()) {
    return std::unexpected(usage_error(format("{} declares no net:connect", loaded.name),
                                       "without it nothing is reached, and nothing is to be served",
                                       output));
  }
  const Source source = loaded.source();
  const lower::Input input{loaded.manifest, loaded.policy, loaded.options, &source};
  lower::Support support("egress", input);
  lower::Plan plan;
  plan.server = loaded.manifest.name;
  plan.network = lower::plan_network(input, support);
  refuse_seals(input, support);
  if (const auto done = std::move(support).finish(); !done) {
    return std::unexpected(report(done.error(), source, arguments, output));
  }
  return sandbox::egress_policy(plan, {.sandbox = {}, .policy_hash = loaded.policy.hash});
}

// Of a file mode: for its owner, and for others only what clients need.
std::optional<mode_t> parse_mode(std::string_view text) {
  for (const mode_t mode : {0600U, 0660U, 0666U}) {
    const std::string digits = format("{:o}", mode);
    if (text == digits || text == "0" + digits) return mode;
  }
  return std::nullopt;
}

std::expected<Where, int> read_where(const Arguments& arguments, Output& output) {
  using sandbox::Reach;
  const Reach reach = arguments.has("--expose") ? Reach::network : Reach::loopback;
  auto where = sandbox::parse_where(*arguments.value("--listen"), reach);
  if (!where) {
    return std::unexpected(usage_error(where.error().message, where.error().help, output));
  }
  const bool is_tcp = where->kind == Where::Kind::tcp;
  if (is_tcp != arguments.value("--token-file").has_value()) {
    return std::unexpected(usage_error(
        is_tcp ? "every program of this host can reach a port, so its clients need a token"
               : "--token-file is for tcp:; who may use a socket is said by its mode",
        is_tcp ? "name a file that holds it or shall hold it: --token-file FILE"
               : "leave it out, or see --socket-mode",
        output));
  }
  const auto mode = arguments.value("--socket-mode");
  if (is_tcp && (mode || arguments.has("--no-forwarder"))) {
    return std::unexpected(
        usage_error("--socket-mode and --no-forwarder are for unix:", "leave them out", output));
  }
  where->with_forwarder = !arguments.has("--no-forwarder");
  if (!mode) return *where;
  const auto parsed = parse_mode(*mode);
  if (!parsed) {
    return std::unexpected(usage_error(format("--socket-mode cannot be {}", quoted(*mode)),
                                       "write 0600, 0660 or 0666", output));
  }
  where->mode = *parsed;
  return *where;
}

int run(const Arguments& arguments, Output& output) {
  for (const std::string_view option : {"--policy", "--listen"}) {
    if (arguments.value(option)) continue;
    return usage_error(format("capgate egress needs {}", option),
                       "capgate egress --policy m.json --listen unix:DIRECTORY/egress.sock",
                       output);
  }
  auto where = read_where(arguments, output);
  if (!where) return where.error();
  const auto limits = read_net_limits(arguments, output);
  if (!limits) return limits.error();
  const auto loaded = load_policy(std::string(*arguments.value("--policy")), arguments, output);
  if (!loaded) return loaded.error();
  auto policy = egress_rules(*loaded, arguments, output);
  if (!policy) return policy.error();
  policy->limits = *limits;
  const auto served = sandbox::serve_egress(
      {.policy = *std::move(policy),
       .where = *std::move(where),
       .token_file = std::string(arguments.value("--token-file").value_or("")),
       .audit = std::string(arguments.value("--audit").value_or("")),
       .audit_directory = audit_directory(),
       .json = arguments.has("--json")});
  if (served) return Exit::ok;
  output.err += format("capgate: {}\nhelp: {}\n", served.error().message, served.error().help);
  return Exit::unenforceable;
}

}  // namespace

Command egress_command() {
  return {
      .name = "egress",
      .operands = "",
      .summary = "Serve the declared network to a sandbox of docker, podman, bwrap or another.",
      .options = options,
      .details =
          "Answers HTTP CONNECT, absolute-form HTTP and SOCKS5, and lets through what the policy\n"
          "declares; every decision is in the audit log. Runs until SIGTERM or SIGINT. Says\n"
          "\"listening on ...\" when it is ready, and tells systemd (Type=notify).\n"
          "\n"
          "unix: the directory is made, or must be one that nobody else can write. It is all\n"
          "that a sandbox needs: mounted as /run/capgate it holds the socket and the forwarder\n"
          "/run/capgate/capgate-init forward -- COMMAND, which runs COMMAND with the variables\n"
          "of a proxy at 127.0.0.1:3128 inside (docs/egress.md). The sandbox itself has no\n"
          "other network.\n"
          "\n"
          "tcp: clients show user capgate and the token: http://capgate:TOKEN@127.0.0.1:PORT",
      .examples =
          "  capgate egress --policy m.json --listen unix:/srv/github/egress.sock\n"
          "  docker run --network none -v /srv/github:/run/capgate:ro IMAGE \\\n"
          "         /run/capgate/capgate-init forward -- node server.js\n"
          "  bwrap --unshare-all --ro-bind /usr /usr --symlink usr/lib64 /lib64 \\\n"
          "        --ro-bind /srv/github /run/capgate \\\n"
          "        /run/capgate/capgate-init forward -- /usr/bin/node server.js\n"
          "  capgate egress --policy m.json --listen tcp:127.0.0.1:3128 --token-file token\n"
          "  capgate egress --policy egress.yaml --listen unix:run/egress.sock --json",
      .run = run};
}

}  // namespace capgate::cli
