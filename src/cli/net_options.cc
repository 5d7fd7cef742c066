#include "cli/net_options.h"

#include <array>
#include <limits>
#include <optional>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

constexpr std::array<std::string_view, 7> limit_names = {
    "connections", "rate", "requests", "bytes", "idle", "hello", "dial"};

// A count, with K, M or G for powers of 1024.
std::optional<std::uint64_t> parse_count(std::string_view text) {
  unsigned shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  const auto number = parse_decimal(text);
  if (!number || *number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return std::nullopt;
  }
  return *number << shift;
}

// The member of that name; null for bytes, which is wider.
std::uint32_t* member(egress::EgressLimits& limits, std::string_view name) {
  if (name == "connections") return &limits.connections;
  if (name == "rate") return &limits.per_second;
  if (name == "requests") return &limits.requests_per_second;
  if (name == "idle") return &limits.idle_seconds;
  if (name == "hello") return &limits.hello_seconds;
  if (name == "dial") return &limits.dial_seconds;
  return nullptr;
}

int unknown_limit(std::string_view name, Output& output) {
  const auto best = closest(name, limit_names);
  return usage_error(
      format("--net-limit knows no {}", quoted(name)),
      best ? format("did you mean {}?", *best)
           : std::string("known are: connections, rate, requests, bytes, idle, hello, dial"),
      output);
}

std::expected<void, int> read_limit(std::string_view text, egress::EgressLimits& limits,
                                    Output& output) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::uint32_t* const value = member(limits, name);
  if (value == nullptr && name != "bytes") return std::unexpected(unknown_limit(name, output));
  const auto count =
      equals == std::string_view::npos ? std::nullopt : parse_count(text.substr(equals + 1));
  // Of bytes, 0 means any number; nothing works with 0 of the others.
  const bool is_valid =
      count &&
      (value == nullptr || (*count > 0 && *count <= std::numeric_limits<std::uint32_t>::max()));
  if (!is_valid) {
    return std::unexpected(
        usage_error(format("--net-limit cannot be {}", quoted(text)),
                    format("write a number: --net-limit {}={}", name,
                           value == nullptr ? std::string("100M") : std::to_string(*value)),
                    output));
  }
  if (value == nullptr) {
    limits.bytes = *count;
  } else {
    *value = static_cast<std::uint32_t>(*count);
  }
  return {};
}

}  // namespace

std::expected<egress::EgressLimits, int> read_net_limits(const Arguments& arguments,
                                                         Output& output) {
  egress::EgressLimits limits;
  for (const std::string& text : arguments.values("--net-limit")) {
    if (auto read = read_limit(text, limits, output); !read) return std::unexpected(read.error());
  }
  return limits;
}

std::expected<NetOptions, int> read_net_options(const Arguments& arguments,
                                                const core::Policy& policy, Output& output) {
  NetOptions out{.proxy_env = arguments.has("--proxy-env")};
  if (out.proxy_env && policy.connect.empty()) {
    return std::unexpected(usage_error("--proxy-env without net:connect leads nowhere",
                                       "declare what may be reached, or leave --proxy-env out",
                                       output));
  }
  const bool has_net = !policy.connect.empty() || !policy.listen.empty();
  for (const std::string_view option : {"--audit", "--net-limit"}) {
    if (has_net || arguments.values(option).empty()) continue;
    return std::unexpected(
        usage_error(format("{} without net capabilities is about nothing", option),
                    format("declare net:connect or net:listen, or leave {} out", option), output));
  }
  out.limits = TRY(read_net_limits(arguments, output));
  return out;
}

}  // namespace capgate::cli
