#include "cli/lower_options.h"

#include <algorithm>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/accepted.h"
#include "cli/load.h"
#include "core/path.h"

namespace capgate::cli {
namespace {

using Holds = lower::Target::Holds;
using Read = std::expected<void, int>;

bool is_user(std::string_view text) {
  const auto parts = split(text, ':');
  return parts.size() == 2 && std::ranges::all_of(parts, [](std::string_view part) {
           return parse_decimal(part).has_value();
         });
}

// A reference to an image: what registries and engines accept, and nothing that could be an option
// or a second word.
bool is_image(std::string_view text) {
  return !text.empty() && is_alnum(text.front()) && text.size() <= 512 &&
         std::ranges::all_of(
             text, [](char c) { return is_alnum(c) || std::string_view("._-/:@+").contains(c); });
}

Read read_programs(const Arguments& arguments, lower::Options& out, Output& output) {
  for (const std::string& program : arguments.values("--program")) {
    auto path = core::parse_plain_path(program);
    if (!path || *path == "/") {
      return std::unexpected(usage_error(format("--program cannot be {}", quoted(program)),
                                         "write an absolute path: --program /usr/bin/node",
                                         output));
    }
    out.programs.push_back(*std::move(path));
  }
  return {};
}

Read read_container(const Arguments& arguments, lower::Options& out, Output& output) {
  if (const auto user = arguments.value("--user")) {
    if (!is_user(*user)) {
      return std::unexpected(usage_error(format("--user cannot be {}", quoted(*user)),
                                         "write two numbers: --user 1000:1000", output));
    }
    out.user = *user;
  }
  if (const auto image = arguments.value("--image")) {
    if (!is_image(*image)) {
      return std::unexpected(usage_error(format("--image cannot be {}", quoted(*image)),
                                         "write a reference: --image ghcr.io/me/server:1.2",
                                         output));
    }
    out.image = *image;
  }
  if (const auto image = arguments.value("--broker-image")) {
    if (!is_image(*image)) {
      return std::unexpected(usage_error(format("--broker-image cannot be {}", quoted(*image)),
                                         "write a reference: --broker-image ghcr.io/me/capgate:1.0",
                                         output));
    }
    out.broker_image = *image;
  }
  if (const auto directory = arguments.value("--egress-dir")) {
    auto path = core::parse_plain_path(*directory);
    if (!path || *path == "/") {
      return std::unexpected(usage_error(format("--egress-dir cannot be {}", quoted(*directory)),
                                         "write an absolute path: --egress-dir /run/capgate",
                                         output));
    }
    out.egress_dir = *std::move(path);
  }
  return {};
}

// A command that the artifact does not hold would be dropped without a word; one that it holds and
// that is not said would start nothing.
Read read_command(const Arguments& arguments, const lower::Target& target, lower::Options& out,
                  Output& output) {
  out.command.assign(arguments.operands.begin() + 1, arguments.operands.end());
  if (target.holds == Holds::command && out.command.empty()) {
    return std::unexpected(usage_error(
        format("--target {} needs the server's command", target.name),
        format("write it last: capgate compile FILE --target {} -- /usr/bin/node server.js",
               target.name),
        output));
  }
  if (target.holds == Holds::nothing && !out.command.empty()) {
    return std::unexpected(
        usage_error(format("--target {} takes no command: {} follows the manifest", target.name,
                           quoted(out.command.front())),
                    "the command is added where the artifact is used", output));
  }
  const bool odd = std::ranges::any_of(out.command, [](const std::string& word) {
    return word.empty() || std::ranges::any_of(word, is_control);
  });
  if (odd) {
    return std::unexpected(usage_error("a word of the command is empty or holds control characters",
                                       "write the command as a program and its arguments", output));
  }
  if (target.holds == Holds::image && out.image.empty()) {
    return std::unexpected(usage_error(format("--target {} needs --image", target.name),
                                       "write a reference: --image ghcr.io/me/server:1.2", output));
  }
  return {};
}

}  // namespace

Read read_lower_options(const Arguments& arguments, const lower::Target& target,
                        lower::Options& out, Output& output) {
  if (arguments.value("--arch") == "aarch64") out.arch = lower::Arch::aarch64;
  out.writable_root = arguments.has("--writable-root");
  out.script = arguments.has("--script");
  out.cilium = arguments.value("--network-policy") == "cilium";
  if (const auto name = arguments.value("--egress-target")) out.egress_target = *name;
  TRY(read_programs(arguments, out, output));
  TRY(read_container(arguments, out, output));
  TRY(read_command(arguments, target, out, output));
  return read_accepted(arguments, out, output);
}

}  // namespace capgate::cli
