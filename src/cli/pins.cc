#include "cli/pins.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "cli/package_command.h"
#include "clients/narrow.h"
#include "clients/store.h"
#include "core/merge.h"
#include "sandbox/program.h"
#include "text/json.h"

namespace capgate::cli {
namespace {

using clients::Pin;

// Whoever starts it says what it is.
bool is_open(const Pin& pin) { return pin.command.empty() && !pin.package; }

std::vector<std::string> lines_of(const core::Policy& policy, std::string_view home) {
  std::vector<std::string> out;
  for (const std::string& line : core::policy_lines(policy)) {
    out.push_back(clients::without_home(line, home));
  }
  return out;
}

// What one tool declares, or serverCapabilities; merged: another order or spelling is no change.
std::vector<std::string> lines_of_tool(const core::Manifest& manifest, std::uint32_t tool,
                                       std::string_view home) {
  core::Manifest one;
  one.home = manifest.home;
  for (const core::Declared& declared : manifest.declared) {
    if (declared.tool != tool) continue;
    one.declared.push_back({.capability = declared.capability, .where = Span::nowhere()});
  }
  const auto policy = core::merge(one);
  if (!policy) return {};  // the whole was merged, so this cannot be
  return lines_of(*policy, home);
}

std::vector<clients::PinnedGrants> grants_of(const core::Manifest& manifest,
                                             std::string_view home) {
  std::vector<clients::PinnedGrants> out;
  for (std::uint32_t i = 0; i < manifest.tools.size(); ++i) {
    std::vector<std::string> lines = lines_of_tool(manifest, i, home);
    if (lines.empty()) continue;
    out.push_back({.tool = manifest.tools[i].name, .capabilities = std::move(lines)});
  }
  std::ranges::sort(out, {}, &clients::PinnedGrants::tool);
  return out;
}

std::expected<std::optional<clients::PinnedPackage>, int> package_of(const Subject& subject,
                                                                     Output& output) {
  std::optional<clients::LockedPackage> found = subject.package;
  if (!found) {
    auto read = locked_package(subject.command, output);
    if (!read) return std::unexpected(read.error());
    found = *std::move(read);
  }
  if (!found) return std::nullopt;
  const bool is_npm = found->package.registry == clients::Package::Registry::npm;
  return clients::PinnedPackage{.registry = is_npm ? "npm" : "pypi",
                                .name = found->package.name,
                                .version = found->version,
                                .integrity = found->integrity,
                                .tree = found->tree,
                                .runtime = found->runtime};
}

// What a script says of its interpreter it may say otherwise tomorrow.
std::string interpreter_of(const Subject& subject) {
  if (subject.command.empty()) return "";
  const sandbox::Caller caller{.path = variable("PATH"),
                               .directory = current_directory(),
                               .home = subject.loaded.options.home};
  const auto program = sandbox::find_program(subject.command, caller);
  if (!program || program->readable.empty() || program->executables.empty()) return "";
  const std::string& file = program->executables.front();
  return find_invalid_utf8(file) ? "" : file;
}

// As it is named if it is not there.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> found(::realpath(path.c_str(), nullptr), std::free);
  return found ? found.get() : path;
}

std::string canonical(const std::string& json) {
  return json.empty() ? "" : clients::canonical_json(json).value_or("");
}

// The policy that was approved, as something that can be merged with another one.
std::optional<core::Manifest> approved_manifest(const Pin& pin, const std::string& home) {
  const auto document = text::parse_json(clients::manifest_of(pin));
  if (!document) return {};
  auto manifest = core::parse_manifest(*document, {{.name = "HOME", .values = {home}}});
  if (!manifest) return {};
  return *std::move(manifest);
}

}  // namespace

std::string approval_scope(const clients::FoundServer& entry) {
  switch (entry.layer) {
    case clients::Layer::flag: return real_path(entry.file);
    case clients::Layer::project: return entry.file.substr(0, entry.file.rfind('/'));
    case clients::Layer::user:
    case clients::Layer::system: break;
  }
  return "";
}

std::expected<Pin, int> pin_of(const Subject& subject, Output& output) {
  const Loaded& loaded = subject.loaded;
  const std::string& home = loaded.options.home;
  // --tool makes the policy a part of what was approved, never more.
  const auto whole = loaded.options.tool.empty() ? Checked<core::Policy>(loaded.policy)
                                                 : core::merge(loaded.manifest);
  if (!whole) {
    return std::unexpected(
        usage_error("the whole policy cannot be merged", "see capgate check", output));
  }
  // What a file cannot hold as it is would be compared with something else.
  if (std::ranges::any_of(subject.command,
                          [](const auto& word) { return find_invalid_utf8(word).has_value(); })) {
    return std::unexpected(usage_error(
        "the command has bytes that are no UTF-8: what was approved of it cannot be kept",
        "rename its files", output));
  }
  auto package = package_of(subject, output);
  if (!package) return std::unexpected(package.error());
  std::string interpreter = *package ? "" : interpreter_of(subject);
  return Pin{.server = subject.server,
             .manifest_hash = subject.catalog_text.empty()
                                  ? loaded.manifest.hash
                                  : "sha256:" + sha256_hex(subject.catalog_text),
             .policy = lines_of(*whole, home),
             .shared = lines_of_tool(loaded.manifest, core::Declared::whole_server, home),
             .grants = grants_of(loaded.manifest, home),
             .command = subject.command,
             .package = *std::move(package),
             .interpreter = std::move(interpreter),
             .protocol = "",
             .tools = {}};
}

std::vector<clients::PinnedTool> pinned_tools(const std::vector<mcp::ToolInfo>& tools) {
  std::vector<clients::PinnedTool> out;
  out.reserve(tools.size());
  for (const mcp::ToolInfo& tool : tools) {
    out.push_back({.name = tool.name,
                   .title = tool.title,
                   .description = tool.description,
                   .input_schema = canonical(tool.input_schema),
                   .output_schema = canonical(tool.output_schema),
                   .annotations = canonical(tool.annotations),
                   .other = canonical(tool.other)});
  }
  std::ranges::sort(out, {}, &clients::PinnedTool::name);
  return out;
}

clients::PinDiff difference(const Pin& approved, const Pin& now, const Subject& subject) {
  Pin known = now;
  if (!approved.tools || !now.tools) {
    known.tools = approved.tools;
    known.protocol = approved.protocol;
    known.instructions = approved.instructions;
    known.declares = approved.declares;
  }
  if (approved.command.empty() || now.command.empty()) {
    known.command = approved.command;
    known.interpreter = approved.interpreter;
  }
  if (is_open(approved) || is_open(now)) known.package = approved.package;
  clients::PinDiff out = diff(approved, known);
  if (subject.catalog_text.empty() || approved.manifest_hash != now.manifest_hash) return out;
  const auto base = approved_manifest(approved, subject.loaded.options.home);
  if (base && clients::grants_beyond(*base, subject.loaded.manifest).empty()) {
    out.policy = {};
    out.grants.clear();
  }
  return out;
}

std::expected<std::optional<Pin>, int> find_locked_pin(const std::string& file,
                                                       std::string_view server, LockFile lock,
                                                       Output& output) {
  auto text = clients::read_regular_file(file, clients::Links::are_refused);
  if (!text && (text.error() == ENOENT || text.error() == ENOTDIR)) {
    if (lock == LockFile::may_lack) return std::nullopt;
    (void)usage_error(format("there is no lock {}", quoted(file)),
                      "capgate approve NAME --lock FILE makes it", output);
    return std::unexpected(Exit::unreadable);
  }
  if (!text) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(file),
                         std::strerror(text.error()));
    return std::unexpected(Exit::unreadable);
  }
  const auto pins = clients::parse_pins(*std::move(text));
  if (!pins) {
    output.err += format("capgate: {} cannot be read: {}\nhelp: {}\n", escape_for_terminal(file),
                         escape_for_terminal(pins.error()),
                         "move it away and make it again: capgate approve NAME --lock");
    return std::unexpected(Exit::unreadable);
  }
  const Pin* found = clients::find_pin(*pins, server);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::string lock_beside(const std::string& config_file) {
  return config_file.substr(0, config_file.rfind('/') + 1) + "capgate.lock";
}

}  // namespace capgate::cli
