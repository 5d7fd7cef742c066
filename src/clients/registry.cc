#include "clients/registry.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace capgate::clients {
namespace {

std::unexpected<StoreProblem> bad(std::string_view url, std::string_view why) {
  // What stands before an @ may be a password.
  const std::string shown = url.contains('@') ? std::string("its address") : quoted(url);
  return refuse(format("the registry cannot be {}: {}", shown, why),
                "write https://HOST/PATH: npm config set registry, pip config set "
                "global.index-url, or --registry");
}

bool is_url_character(char c) { return is_alnum(c) || std::string_view("-._~:/%+[]").contains(c); }

bool is_number(std::string_view host) {
  return host.starts_with('[') ||
         std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
}

}  // namespace

Stored<RegistryAddress> parse_registry(std::string_view url) {
  RegistryAddress out{.url = std::string(url)};
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    out.encrypted = false;
  } else {
    return bad(url, "it does not start with https:// or http://");
  }
  if (url.contains('@')) return bad(url, "no user and no password is given to an installer");
  if (url.size() > 2048 || !std::ranges::all_of(url, is_url_character)) {
    return bad(url, "it has characters that an address does not have");
  }
  std::string_view authority = rest.substr(0, rest.find('/'));
  const std::size_t colon =
      authority.ends_with(']') ? std::string_view::npos : authority.rfind(':');
  out.port = out.encrypted ? 443 : 80;
  if (colon != std::string_view::npos) {
    const auto port = parse_decimal(authority.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return bad(url, "its port is no port");
    out.port = static_cast<unsigned>(*port);
    authority = authority.substr(0, colon);
  }
  out.host = to_lower(authority);
  if (out.host.empty() || out.host.contains('*')) return bad(url, "it names no host");
  return out;
}

std::string capability_for(const RegistryAddress& registry) {
  const bool exact = is_number(registry.host) || registry.host == "localhost" ||
                     registry.host.ends_with(".localhost");
  return format("net:connect:{}:{}{}", registry.host, registry.port, exact ? "" : "?private=true");
}

}  // namespace capgate::clients
