#include "lower/artifact.h"

#include <algorithm>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "core/version.h"

namespace capgate::lower {
namespace {

using text::JsonWriter;

template <typename Items>
void write_strings(JsonWriter& json, std::string_view key, const Items& items) {
  json.key(key).begin_array();
  for (const std::string_view item : items) json.string(item);
  json.end_array();
}

void write_fds(JsonWriter& json, const Artifact& artifact) {
  json.key("fds").begin_array();
  for (const Descriptor& fd : artifact.fds) {
    json.begin_object().key("fd").number(fd.fd).key("purpose").string(fd.purpose);
    if (fd.base64.empty()) {
      write_strings(json, "names", fd.names);
    } else {
      json.key("base64").plain_string(fd.base64);
    }
    json.end_object();
  }
  json.end_array();
}

void write_files(JsonWriter& json, const Artifact& artifact, FilesAs as) {
  json.key("files").begin_array();
  for (const File& file : artifact.files) {
    json.begin_object().key("name").string(file.name);
    if (file.executable) json.key("executable").boolean(true);
    if (as == FilesAs::hashes) {
      json.key("sha256").plain_string(sha256_hex(file.contents));
    } else if (file.binary) {
      json.key("base64").plain_string(base64(file.contents));
    } else {
      json.key("contents").string(file.contents);
    }
    json.end_object();
  }
  json.end_array();
}

void write_refinements(JsonWriter& json, const core::NetRefinements& refine) {
  using core::NetRefinements;
  if (refine.sni != NetRefinements::Sni::match) {
    json.key("sni").string(refine.sni == NetRefinements::Sni::any ? "any" : "strict");
  }
  if (refine.proto != NetRefinements::Proto::detect) {
    constexpr std::string_view names[] = {"detect", "tcp", "tls", "http"};
    json.key("proto").string(names[static_cast<std::size_t>(refine.proto)]);
  }
  if (!refine.methods.empty()) write_strings(json, "methods", refine.methods);
  if (!refine.paths.empty()) write_strings(json, "paths", refine.paths);
  // Beside a blockPrivate that stays true: who does not know this key blocks all of them.
  if (refine.private_network) json.key("private").boolean(true);
}

void write_egress(JsonWriter& json, const core::Policy& policy) {
  json.key("egress").begin_array();
  for (const auto& grant : policy.connect) {
    const core::Endpoint& endpoint = grant.capability.endpoint;
    json.begin_object().key("host").string(print(endpoint.host)).key("port");
    if (endpoint.port) {
      json.number(*endpoint.port);
    } else {
      json.null();
    }
    json.key("blockPrivate").boolean(!core::names_private_endpoint(endpoint.host));
    write_refinements(json, grant.capability.refinements);
    json.end_object();
  }
  json.end_array();
}

void write_assertions(JsonWriter& json, const Input& input) {
  json.key("assertions").begin_array();
  for (const auto& grant : input.policy.assertions) {
    const core::AssertCapability& assertion = grant.capability;
    json.begin_object().key("id").string(assertion.id).key("description").string(assertion.text);
    const std::string_view validator = core::validator_of(assertion, input.options.validators);
    if (!validator.empty()) json.key("validator").string(validator);
    json.end_object();
  }
  json.end_array();
}

// Only what differs from the defaults: an artifact without options says so with an empty object.
void write_options(JsonWriter& json, const Options& options) {
  const Options defaults;
  json.key("options").begin_object();
  json.key("arch").string(arch_name(options.arch));
  if (!options.broker_image.empty()) json.key("brokerImage").string(options.broker_image);
  if (options.cilium) json.key("networkPolicy").string("cilium");
  if (!options.command.empty()) write_strings(json, "command", options.command);
  if (options.egress_dir != defaults.egress_dir) json.key("egressDir").string(options.egress_dir);
  if (options.egress_port != defaults.egress_port) {
    json.key("egressPort").number(options.egress_port);
  }
  if (options.egress_target != defaults.egress_target) {
    json.key("egressTarget").string(options.egress_target);
  }
  if (!options.home.empty()) json.key("home").string(options.home);
  if (!options.image.empty()) json.key("image").string(options.image);
  if (!options.runtime_dir.empty()) json.key("runtimeDir").string(options.runtime_dir);
  if (!options.programs.empty()) write_strings(json, "programs", options.programs);
  if (options.rootful) json.key("rootful").boolean(true);
  if (options.script) json.key("script").boolean(true);
  if (options.seal) json.key("seal").boolean(true);
  if (!options.tool.empty()) json.key("tool").string(options.tool);
  if (options.user != defaults.user) json.key("user").string(options.user);
  if (options.writable_root) json.key("writableRoot").boolean(true);
  json.end_object();
}

void write_provenance(JsonWriter& json, const Artifact& artifact, const Input& input) {
  json.key("provenance").begin_object();
  json.key("manifestHash").string(input.manifest.hash);
  json.key("policyHash").string(input.policy.hash);
  json.key("grammarVersion").string(input.manifest.grammar);
  json.key("canonicalization").string("RFC8785");
  json.key("target").string(artifact.target);
  write_options(json, input.options);
  json.key("compiler").string(core::compiler_id);
  json.end_object();
}

void write_cause(std::string& out, const Cause& cause, const Input& input, const Source& source) {
  if (cause.origins == nullptr) {
    out += format("    # {}\n", cause.reason);
    return;
  }
  for (const std::uint32_t index : *cause.origins) {
    const core::Declared& declared = input.manifest.declared[index];
    const auto [number, column] = source.position(declared.where.begin);
    out += format("    # {}  {}:{}:{}  {}\n", escape_for_terminal(print(declared.capability)),
                  escape_for_terminal(source.name()), number, column,
                  escape_for_terminal(input.manifest.owner(declared)));
  }
}

bool same_cause(const Cause& a, const Cause& b) {
  return a.origins == b.origins && a.reason == b.reason;
}

std::string explain_argv(const Artifact& artifact, const Input& input, const Source& source) {
  std::string out;
  for (std::size_t i = 0; i < artifact.lines.size(); ++i) {
    const Line& line = artifact.lines[i];
    if (i == 0 || !same_cause(line.cause, artifact.lines[i - 1].cause)) {
      write_cause(out, line.cause, input, source);
    }
    const std::size_t end =
        i + 1 < artifact.lines.size() ? artifact.lines[i + 1].first : artifact.argv.size();
    for (std::size_t word = line.first; word < end; ++word) {
      out += word == line.first ? "" : " ";
      out += escape_for_terminal(artifact.argv[word]);
    }
    out += '\n';
  }
  return out;
}

std::string explain_file(const File& file, const Input& input, const Source& source) {
  std::string out = format("    # file {}\n", file.name);
  if (file.lines.empty()) return out + file.contents;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const Line& line = file.lines[i];
    if (i == 0 || !same_cause(line.cause, file.lines[i - 1].cause)) {
      write_cause(out, line.cause, input, source);
    }
    const std::size_t end =
        i + 1 < file.lines.size() ? file.lines[i + 1].first : file.contents.size();
    out += file.contents.substr(line.first, end - line.first);
  }
  return out;
}

// Which capability stands where, for formats whose lines do not say it.
std::string explain_grants(const Input& input, const Source& source) {
  std::string out;
  core::for_each_grant(input.policy, [&](const core::Capability& capability, const auto& origins) {
    write_cause(out, {.reason = {}, .origins = &origins}, input, source);
    out += format("{}\n", escape_for_terminal(print(capability)));
  });
  return out;
}

std::string explain_files(const Artifact& artifact, const Input& input, const Source& source) {
  std::string out;
  for (const File& file : artifact.files) {
    if (!file.binary) out += explain_file(file, input, source);
  }
  const bool explained =
      std::ranges::any_of(artifact.files, [](const File& file) { return !file.lines.empty(); });
  return explained ? out : out + explain_grants(input, source);
}

std::string explain_plan(const Plan& plan, const Input& input, const Source& source) {
  std::string out;
  const core::Origins* last = nullptr;
  for (std::size_t i = 0; i < plan.mounts.size(); ++i) {
    const PlanMount& mount = plan.mounts[i];
    if (i == 0 || mount.origins != last) {
      write_cause(out, {.reason = "base of every sandbox", .origins = mount.origins}, input,
                  source);
    }
    last = mount.origins;
    out += format("{} {}{}{}\n", kind_name(mount.kind), escape_for_terminal(mount.target),
                  mount.kind == PlanMount::Kind::file || mount.detail.empty() ? "" : " ",
                  mount.kind == PlanMount::Kind::file ? "" : escape_for_terminal(mount.detail));
  }
  core::for_each_grant(input.policy, [&](const core::Capability& capability, const auto& origins) {
    if (std::holds_alternative<core::FsCapability>(capability)) return;
    write_cause(out, {.reason = {}, .origins = &origins}, input, source);
    out += format("{}\n", escape_for_terminal(print(capability)));
  });
  return out;
}

}  // namespace

std::string_view TextStore::keep(std::string_view text) {
  constexpr std::size_t least = 2048;
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < text.size()) {
    blocks_.emplace_back().reserve(std::max(least, text.size()));
  }
  std::string& block = blocks_.back();
  const std::size_t begin = block.size();
  block += text;
  return std::string_view(block).substr(begin);
}

std::string print_json(const Artifact& artifact, const Input& input, JsonWriter::Style style,
                       FilesAs files) {
  JsonWriter json(style);
  json.reserve(16384);
  json.begin_object();
  if (artifact.plan) write_plan(json.key("plan"), *artifact.plan);
  if (!artifact.argv.empty()) write_strings(json, "argv", artifact.argv);
  if (!artifact.command_prefix.empty()) {
    write_strings(json, "commandPrefix", artifact.command_prefix);
  }
  if (!artifact.files.empty()) write_files(json, artifact, files);
  write_fds(json, artifact);
  write_egress(json, input.policy);
  write_strings(json, "envInjections", artifact.env_injections);
  write_assertions(json, input);
  write_strings(json, "notes", artifact.notes);
  write_strings(json, "unenforced", artifact.unenforced);
  write_strings(json, "notCovered", artifact.not_covered);
  write_provenance(json, artifact, input);
  json.end_object();
  return std::move(json).take();
}

std::string print_explanation(const Artifact& artifact, const Input& input, const Source& source) {
  if (artifact.plan) return explain_plan(*artifact.plan, input, source);
  std::string out = explain_argv(artifact, input, source);
  if (!artifact.files.empty()) out += explain_files(artifact, input, source);
  return out;
}

std::string_view arch_name(Arch arch) { return arch == Arch::x86_64 ? "x86_64" : "aarch64"; }

}  // namespace capgate::lower
