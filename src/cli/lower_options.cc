#include "cli/lower_options.h"

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/accepted.h"
#include "cli/load.h"
#include "lower/choices.h"

namespace capgate::cli {

std::expected<void, int> read_lower_options(const Arguments& arguments, const lower::Target& target,
                                            lower::Options& out, Output& output) {
  if (arguments.value("--arch") == "aarch64") out.arch = lower::Arch::aarch64;
  out.writable_root = arguments.has("--writable-root");
  out.rootful = arguments.has("--rootful");
  out.cilium = arguments.value("--network-policy") == "cilium";
  out.script = arguments.has("--script");
  out.programs = arguments.values("--program");
  out.command.assign(arguments.operands.begin() + 1, arguments.operands.end());
  const auto take = [&](std::string_view name, std::string& field) {
    if (const auto value = arguments.value(name)) field = *value;
  };
  take("--user", out.user);
  take("--image", out.image);
  take("--broker-image", out.broker_image);
  take("--egress-dir", out.egress_dir);
  take("--egress-target", out.egress_target);
  if (const auto text = arguments.value("--egress-port")) {
    const auto port = parse_decimal(*text);
    if (!port || *port == 0 || *port > UINT16_MAX) {
      return std::unexpected(usage_error(format("--egress-port cannot be {}", quoted(*text)),
                                         "write a port: --egress-port 3128", output));
    }
    out.egress_port = static_cast<std::uint16_t>(*port);
  }
  if (const auto mistake = lower::settle_options(target, out, "--")) {
    return std::unexpected(usage_error(mistake->message, mistake->help, output));
  }
  return read_accepted(arguments, out, output);
}

}  // namespace capgate::cli
