#include "lower/choices.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"

namespace capgate::lower {
namespace {

using Mistake = std::optional<OptionMistake>;

Mistake cannot_be(std::string_view option, std::string_view value, std::string help) {
  return OptionMistake{.message = format("{} cannot be {}", option, quoted(value)),
                       .help = std::move(help)};
}

bool is_user(std::string_view text) {
  const auto parts = split(text, ':');
  return parts.size() == 2 && std::ranges::all_of(parts, [](std::string_view part) {
           return parse_decimal(part).has_value();
         });
}

// What registries and engines accept, and nothing that could be an option or a second word.
bool is_image(std::string_view text) {
  return !text.empty() && is_alnum(text.front()) && text.size() <= 512 &&
         std::ranges::all_of(
             text, [](char c) { return is_alnum(c) || std::string_view("._-/:@+").contains(c); });
}

// The canonical form of an absolute path that is not "/".
bool settle_path(std::string& path) {
  auto canonical = core::parse_plain_path(path);
  if (!canonical || *canonical == "/") return false;
  path = *std::move(canonical);
  return true;
}

Mistake settle_paths(Options& options, std::string_view dashes) {
  for (std::string& program : options.programs) {
    if (settle_path(program)) continue;
    return cannot_be(format("{}program", dashes), program,
                     format("write an absolute path: {}program /usr/bin/node", dashes));
  }
  if (settle_path(options.egress_dir)) return std::nullopt;
  return cannot_be(format("{}egress-dir", dashes), options.egress_dir,
                   format("write an absolute path: {}egress-dir /run/capgate", dashes));
}

std::string reference_help(std::string_view dashes, std::string_view name) {
  return format("write a reference: {}{} ghcr.io/me/server:1.2", dashes, name);
}

Mistake check_image(std::string_view image, std::string_view dashes, std::string_view name) {
  if (image.empty() || is_image(image)) return std::nullopt;
  return cannot_be(format("{}{}", dashes, name), image, reference_help(dashes, name));
}

Mistake check_container(const Target& target, const Options& options, std::string_view dashes) {
  if (!is_user(options.user)) {
    return cannot_be(format("{}user", dashes), options.user,
                     format("write two numbers: {}user 1000:1000", dashes));
  }
  if (options.image.empty() && target.holds == Target::Holds::image) {
    return OptionMistake{.message = format("target {} needs {}image", target.name, dashes),
                         .help = reference_help(dashes, "image")};
  }
  if (auto mistake = check_image(options.image, dashes, "image")) return mistake;
  return check_image(options.broker_image, dashes, "broker-image");
}

// A command that the artifact does not hold would be dropped without a word; one that it holds and
// that is not said would start nothing.
Mistake check_command(const Target& target, const Options& options) {
  using Holds = Target::Holds;
  if (target.holds == Holds::command && options.command.empty()) {
    return OptionMistake{
        .message = format("target {} needs the server's command", target.name),
        .help = format("write it last: capgate compile FILE --target {} -- /usr/bin/node server.js",
                       target.name)};
  }
  if (target.holds == Holds::nothing && !options.command.empty()) {
    return OptionMistake{.message = format("target {} takes no command: {} follows the manifest",
                                           target.name, quoted(options.command.front())),
                         .help = "the command is added where the artifact is used"};
  }
  const bool odd = std::ranges::any_of(options.command, [](const std::string& word) {
    return std::ranges::any_of(word, is_control);
  });
  const bool nameless = !options.command.empty() && options.command.front().empty();
  if (!odd && !nameless) return std::nullopt;
  return OptionMistake{.message = odd ? "a word of the command holds control characters"
                                      : "the command's program has no name",
                       .help = "write the command as a program and its arguments"};
}

// An option that the target knows nothing of would be dropped without a word.
Mistake check_belonging(const Target& target, const Options& options, std::string_view dashes) {
  const Options defaults;
  const struct {
    bool is_given;
    std::string_view option;
    std::string_view targets;  // in words
  } all[] = {
      {options.script, "script", "seatbelt"},
      {options.egress_port != defaults.egress_port, "egress-port", "seatbelt"},
      {options.egress_target != defaults.egress_target, "egress-target", "egress"},
      {options.rootful, "rootful", "podman"},
      {options.cilium, "network-policy", "kubernetes"},
      {!options.broker_image.empty(), "broker-image", "compose kubernetes"},
  };
  for (const auto& each : all) {
    if (!each.is_given || contains(split(each.targets, ' '), target.name)) continue;
    return OptionMistake{
        .message = format("{}{} means nothing to target {}", dashes, each.option, target.name),
        .help = format("it is for {}: leave it out", each.targets)};
  }
  return std::nullopt;
}

Mistake check_egress_target(std::string_view name, std::string_view dashes) {
  if (std::ranges::find(egress_targets, name) != std::end(egress_targets)) return std::nullopt;
  return cannot_be(format("{}egress-target", dashes), name,
                   "write spec, squid, nftables, envoy or mitmproxy");
}

}  // namespace

std::optional<OptionMistake> settle_options(const Target& target, Options& options,
                                            std::string_view dashes) {
  if (auto mistake = settle_paths(options, dashes)) return mistake;
  if (auto mistake = check_egress_target(options.egress_target, dashes)) return mistake;
  if (auto mistake = check_belonging(target, options, dashes)) return mistake;
  if (auto mistake = check_container(target, options, dashes)) return mistake;
  return check_command(target, options);
}

}  // namespace capgate::lower
