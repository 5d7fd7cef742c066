#include "core/host.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "core/ipv6.h"

namespace capgate::core {
namespace {

constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;

std::unexpected<Diagnostic> fail(std::size_t begin, std::size_t end, std::string message,
                                 std::string help) {
  return capgate::fail(Code::cap_net_host, Span::at(begin, end), std::move(message),
                       std::move(help));
}

std::optional<std::array<std::uint8_t, 4>> parse_ipv4(std::string_view text) {
  std::array<std::uint8_t, 4> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (i == out.size() - 1)) return {};
    const auto value = parse_decimal(text.substr(0, dot));
    if (!value || *value > 255) return {};
    out[i] = static_cast<std::uint8_t>(*value);
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  }
  return out;
}

// A last label that some resolver would read as part of an IPv4 address: 1, 0177, 0x7f.
bool ends_in_number(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (std::ranges::all_of(last, is_digit)) return true;
  return last.starts_with("0x") && std::ranges::all_of(last.substr(2), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f');
         });
}

Result<void> check_label(std::string_view label, std::size_t offset) {
  const std::size_t end = offset + label.size();
  if (label.empty()) {
    return fail(offset, end, "empty label in a host name", "remove the extra dot");
  }
  if (label.size() > longest_label) {
    return fail(offset, end, format("a label longer than {} characters", longest_label),
                "no DNS name can have it");
  }
  if (label.front() == '-' || label.back() == '-') {
    return fail(offset, end, "a label may not start or end with '-'", "check the host name");
  }
  return {};
}

Result<void> check_name_characters(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_alnum(c) || c == '-' || c == '_' || c == '.') continue;
    if (static_cast<unsigned char>(c) >= 0x80) {
      return fail(0, text.size(), "a host name is written in its ASCII form",
                  "write an internationalised name as xn--...");
    }
    if (c == '*') {
      return fail(i, i + 1, "'*' may only stand alone or as the whole first label",
                  "write * or *.example.com");
    }
    return fail(i, i + 1, format("{} cannot stand in a host name", quoted(text.substr(i, 1))),
                "write a plain host such as api.example.com: no scheme, path, user or space");
  }
  return {};
}

Result<std::string> parse_name(std::string_view text) {
  TRY(check_name_characters(text));
  std::string name = to_lower(text);
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  if (name.size() > longest_name) {
    return fail(0, text.size(), format("a host name longer than {} characters", longest_name),
                "no DNS name can be that long");
  }
  std::size_t offset = 0;
  for (const std::string_view label : EachPart(name, '.')) {
    TRY(check_label(label, offset));
    offset += label.size() + 1;
  }
  if (ends_in_number(name)) {
    return fail(0, text.size(), "ambiguous numeric host",
                "write an IPv4 address as four decimal numbers, for example 127.0.0.1");
  }
  return name;
}

Result<HostPattern> parse_ipv6_host(std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  const std::string_view inner = bracketed ? text.substr(1, text.size() - 2) : text;
  const auto address = parse_ipv6(inner);
  if (parse_ipv4(inner.substr(inner.rfind(':') + 1)) || (address && is_ipv4_mapped(*address))) {
    return fail(0, text.size(), "an IPv4 address in IPv6 form", "write the IPv4 address itself");
  }
  if (!address) {
    return fail(
        0, text.size(), "malformed IPv6 address",
        "write a host name, or an address in brackets such as [2001:db8::1], without a zone");
  }
  return HostPattern{
      .kind = HostPattern::Kind::ipv6, .text = print_ipv6(*address), .address = *address};
}

}  // namespace

Result<HostPattern> parse_host(std::string_view text) {
  using Kind = HostPattern::Kind;
  if (text.empty()) {
    return fail(0, 0, "the host is empty", "name a host, or write * for every public host");
  }
  if (text == "*") return HostPattern{.kind = Kind::any, .text = "*"};
  if (text.contains(':') || text.starts_with('[')) return parse_ipv6_host(text);
  if (const auto ipv4 = parse_ipv4(text)) {
    HostPattern host{.kind = Kind::ipv4, .text = std::string(text)};
    std::ranges::copy(*ipv4, host.address.begin());
    return host;
  }
  if (text.starts_with("*.")) {
    auto name = parse_name(text.substr(2));
    if (!name) {
      name.error().where.begin += 2;
      name.error().where.end += 2;
      return std::unexpected(std::move(name).error());
    }
    return HostPattern{.kind = Kind::subdomains, .text = *std::move(name)};
  }
  return HostPattern{.kind = Kind::name, .text = TRY(parse_name(text))};
}

Result<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_decimal(text);
  if (port && *port >= 1 && *port <= 65535) return static_cast<std::uint16_t>(*port);
  return std::unexpected(Diagnostic{.code = Code::cap_net_port,
                                    .where = Span::at(0, text.size()),
                                    .message = format("{} is not a port", quoted(text)),
                                    .help = "write one number from 1 to 65535, digits only"});
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  Endpoint endpoint{.host = TRY(parse_host(text.substr(0, colon)))};
  if (colon == std::string_view::npos) return endpoint;
  auto port = parse_port(text.substr(colon + 1));
  if (!port) {
    port.error().where.begin += static_cast<std::uint32_t>(colon + 1);
    port.error().where.end += static_cast<std::uint32_t>(colon + 1);
    return std::unexpected(std::move(port).error());
  }
  endpoint.port = *port;
  return endpoint;
}

std::string print(const HostPattern& host) {
  switch (host.kind) {
    case HostPattern::Kind::any: return "*";
    case HostPattern::Kind::subdomains: return "*." + host.text;
    case HostPattern::Kind::ipv6: return "[" + host.text + "]";
    case HostPattern::Kind::name:
    case HostPattern::Kind::ipv4: return host.text;
  }
  return {};
}

std::string print(const Endpoint& endpoint) {
  std::string out = print(endpoint.host);
  if (endpoint.port) {
    out += ':';
    out += std::to_string(*endpoint.port);
  }
  return out;
}

bool matches(const HostPattern& rule, const HostPattern& host) {
  if (rule == host) return true;
  if (names_private_endpoint(host)) return false;
  using Kind = HostPattern::Kind;
  if (rule.kind == Kind::any) return true;
  if (rule.kind != Kind::subdomains) return false;
  if (host.kind != Kind::name && host.kind != Kind::subdomains) return false;
  return host.text.size() > rule.text.size() && host.text.ends_with(rule.text) &&
         host.text[host.text.size() - rule.text.size() - 1] == '.';
}

bool matches(const Endpoint& rule, const Endpoint& destination) {
  return (!rule.port || rule.port == destination.port) && matches(rule.host, destination.host);
}

bool is_localhost_address(const HostPattern& address) {
  using Kind = HostPattern::Kind;
  return (address.kind == Kind::ipv4 && address.text == "127.0.0.1") ||
         (address.kind == Kind::ipv6 && address.text == "::1");
}

bool names_private_endpoint(const HostPattern& host) {
  if (host.kind == HostPattern::Kind::name) {
    return host.text == "localhost" || host.text.ends_with(".localhost");
  }
  return is_private_address(host);
}

}  // namespace capgate::core
