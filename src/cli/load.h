// From a file name and options to a policy: what compile, check and explain have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/render.h"
#include "cli/options.h"
#include "core/manifest.h"
#include "core/policy.h"
#include "lower/artifact.h"
#include "text/document.h"

namespace capgate::cli {

// Options that say how to read a manifest, for the tables of the commands.
inline constexpr Option set_option{.name = "--set",
                                   .value = "NAME=VALUE",
                                   .help = "bind ${NAME} in scopes; HOME is the home directory",
                                   .repeatable = true};
inline constexpr Option tool_option{
    .name = "--tool", .value = "NAME", .help = "only serverCapabilities and this tool"};
inline constexpr Option validators_option{
    .name = "--validators",
    .value = "FILE",
    .help = "assertions that the host verifies; others are errors"};
inline constexpr Option seal_option{
    .name = "--seal",
    .help = "seal every env:inject: the value goes to its service, never to the server"};
inline constexpr Option json_option{.name = "--json", .help = "for programs: JSON on stdout"};

// A text with its name, parsed; diagnostics are shown against it.
struct Loaded {
  std::string name;
  std::shared_ptr<const text::Document> document;
  core::Manifest manifest;
  core::Policy policy;
  lower::Options options;

  [[nodiscard]] Source source() const { return {name, document->source()}; }
};

// Where the capabilities come from.
struct Wanted {
  std::string manifest;                 // a file, "-", or empty: none
  std::vector<std::string> allow = {};  // further capabilities, as words
  std::string home = {};                // the caller's, unless --set HOME says another
  // An entry of capgate.yaml: a manifest that was read already, instead of `manifest`; its
  // variables, of which --set replaces single ones.
  std::shared_ptr<const text::Document> document = {};
  std::string document_name = {};
  core::Bindings variables = {};
  bool seal = false;
  // What an artifact's provenance says, where the command line says nothing.
  std::string tool = {};
  std::string runtime_dir = {};
};

// On failure everything is said in `output`, and the exit code is the error.
[[nodiscard]] std::expected<Loaded, int> load(const Arguments& arguments, const Wanted& wanted,
                                              Output& output);
// The manifest is the first operand.
[[nodiscard]] std::expected<Loaded, int> load(const Arguments& arguments, Output& output);

// JSON or YAML, by its name or its first character.
[[nodiscard]] std::expected<std::unique_ptr<text::Document>, int> parse_document(
    const std::string& name, const text::SharedText& text, const Arguments& arguments,
    Output& output);

// Shows diagnostics as the options ask: for people on stderr, or as JSON on stdout. Returns the
// exit code.
int report(const Diagnostics& diagnostics, const Source& source, const Arguments& arguments,
           Output& output);

// As NO_COLOR, TERM and standard error itself ask for.
[[nodiscard]] Colour stderr_colour();

// A mistake in the words of the command line itself.
int usage_error(std::string_view message, std::string_view help, Output& output);

}  // namespace capgate::cli
