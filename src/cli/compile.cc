// capgate compile: a manifest becomes an artifact.
#include "base/format.h"
#include "base/text.h"
#include "cli/artifact_files.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/lower_options.h"
#include "lower/choices.h"
#include "lower/targets.h"

namespace capgate::cli {
namespace {

constexpr std::string_view archs[] = {"x86_64", "aarch64"};

constexpr std::string_view network_policies[] = {"kubernetes", "cilium"};

constexpr Option options[] = {
    {.name = "--target",
     .value = "NAME",
     .help = "what to compile for (bwrap); capgate targets lists them",
     .choices = lower::target_names},
    tool_option,
    set_option,
    seal_option,
    {.name = "--program",
     .value = "PATH",
     .help = "bwrap, seatbelt: the server's own program; no other may start",
     .repeatable = true},
    {.name = "--accept-unenforced",
     .value = "CAP",
     .help = "lower although the target cannot enforce this capability",
     .repeatable = true},
    validators_option,
    {.name = "--arch",
     .value = "NAME",
     .help = "x86_64 (default) or aarch64: for the system call filter",
     .choices = archs},
    {.name = "--user", .value = "UID:GID", .help = "containers: the user inside (1000:1000)"},
    {.name = "--writable-root", .help = "containers: leave the image's root writable"},
    {.name = "--rootful", .help = "podman: for root's podman, not a user's own"},
    {.name = "--broker-image",
     .value = "REF",
     .help = "compose, kubernetes: an image that holds capgate, for net:connect"},
    {.name = "--network-policy",
     .value = "KIND",
     .help = "kubernetes: kubernetes (default) or cilium, which also holds the broker to names",
     .choices = network_policies},
    {.name = "--image", .value = "REF", .help = "the server's image, where the artifact names it"},
    {.name = "--egress-dir",
     .value = "DIR",
     .help = "where `capgate egress` listens on the host (/run/capgate)"},
    {.name = "--egress-target",
     .value = "NAME",
     .help = "egress: spec (default), squid, nftables, envoy or mitmproxy",
     .choices = lower::egress_targets},
    {.name = "--egress-port",
     .value = "PORT",
     .help = "seatbelt: where `capgate egress` listens on 127.0.0.1 (3128)"},
    {.name = "--script", .help = "seatbelt: a launcher to run instead of the profile alone"},
    {.name = "--output",
     .value = "DIR",
     .help = "write the artifact's files there; stdout then names them with their hashes",
     .alias = "-o"},
    {.name = "--pretty", .help = "indent the JSON"},
    {.name = "--explain", .help = "print each line with the capability that caused it"},
    json_option,
};

using Style = text::JsonWriter::Style;

int print(const lower::Artifact& artifact, const lower::Input& input, const Arguments& arguments,
          Output& output) {
  lower::FilesAs files = lower::FilesAs::contents;
  if (const auto directory = arguments.value("--output")) {
    if (artifact.files.empty()) {
      return usage_error(format("--target {} has no files", artifact.target),
                         "leave --output out: the artifact is printed", output);
    }
    if (const auto written = write_files(artifact, std::string(*directory)); !written) {
      const sys::SysError& error = written.error();
      output.err += format("capgate: cannot write {}: {}\n", quoted(error.subject), reason(error));
      return Exit::internal;
    }
    files = lower::FilesAs::hashes;
  }
  const Style style = arguments.has("--pretty") ? Style::pretty : Style::compact;
  output.out += print_json(artifact, input, style, files);
  output.out += '\n';
  return Exit::ok;
}

int run(const Arguments& arguments, Output& output) {
  auto loaded = load(arguments, output);
  if (!loaded) return loaded.error();
  const lower::Target* target =
      lower::find_target(arguments.value("--target").value_or(lower::default_target));
  if (auto read = read_lower_options(arguments, *target, loaded->options, output); !read) {
    return read.error();
  }
  const Source source = loaded->source();
  const lower::Input input{loaded->manifest, loaded->policy, loaded->options, &source};
  const auto artifact = lower_to(*target, input);
  if (!artifact) return report(artifact.error(), source, arguments, output);
  if (!arguments.has("--explain")) return print(*artifact, input, arguments, output);
  output.out += print_explanation(*artifact, input, source);
  return Exit::ok;
}

}  // namespace

Command compile_command() {
  return {.name = "compile",
          .operands = "FILE|- [-- COMMAND...]",
          .summary = "Compile a manifest (JSON or YAML) into the policy of a sandbox.",
          .least_operands = 1,
          .most_operands = SIZE_MAX,
          .options = options,
          .details =
              "The artifact is one JSON document on stdout. Used exactly as printed it is closed;\n"
              "what the target cannot enforce is an error. Exit: 0 ok, 2 usage, 3 unreadable,\n"
              "4 compile error.",
          .examples =
              "  capgate compile github.json --pretty\n"
              "  capgate compile github.json --target docker --user 1000:1000\n"
              "  capgate compile github.json --target systemd -o units -- /usr/bin/node server.js\n"
              "  capgate compile github.json --target compose -o app --image ghcr.io/me/server:1\n"
              "  capgate compile github.json --target egress --egress-target squid -o proxy\n"
              "  capgate compile git.json --program /usr/bin/node --set REPO=/srv/repo\n"
              "  capgate compile github.json --explain\n"
              "  cat github.yaml | capgate compile - --tool search_code",
          .run = run,
          .most_before_dashes = 1};
}

}  // namespace capgate::cli
