#include "egress/http_target.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/text.h"
#include "egress/http.h"
#include "egress/http_text.h"

namespace capgate::egress {
namespace {

// Clients send more than RFC 3986 allows ("|", "{"), and servers agree on what that is; on "#" and
// on bytes outside ASCII they do not.
bool is_target_character(char c) { return c > ' ' && c <= '~' && c != '#'; }

// No userinfo, no escapes, no wildcards: what is left is for core::parse_endpoint to judge.
bool is_authority(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_alnum(c) || std::string_view("-._:[]").contains(c);
  });
}

// RFC 9110, section 9.3.6: there is no default port.
std::optional<Target> parse_authority_form(std::string_view target) {
  const std::size_t colon = target.rfind(':');
  if (!is_authority(target) || colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view port = target.substr(colon + 1);
  if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, is_digit)) return std::nullopt;
  return Target{.authority = target};
}

Target parse_origin_form(std::string_view target) {
  return {.path = target.substr(0, target.find('?')), .path_query = target};
}

std::optional<Target> parse_absolute_form(std::string_view target) {
  constexpr std::string_view scheme = "http://";
  if (!equal_in_any_case(target.substr(0, scheme.size()), scheme)) return std::nullopt;
  const std::string_view rest = target.substr(scheme.size());
  const std::size_t end = std::min(find_any(rest, "/?"), rest.size());
  Target parsed = parse_origin_form(rest.substr(end));
  parsed.authority = rest.substr(0, end);
  if (parsed.path.empty()) parsed.path = "/";
  return is_authority(parsed.authority) ? std::optional(parsed) : std::nullopt;
}

bool is_plain_character(char c) { return !is_control(c) && c != '\\'; }

// Two digits after a "%" that stand for something no server treats in a way of its own.
bool is_plain_escape(std::string_view digits) {
  if (digits.size() < 2) return false;
  const auto high = hex_digit(digits[0]);
  const auto low = hex_digit(digits[1]);
  if (!high || !low) return false;
  const char c = static_cast<char>(*high << 4U | *low);
  return is_plain_character(c) && !std::string_view("./%").contains(c);
}

bool is_plain_segment(std::string_view segment) {
  // Some servers drop parameters before they look for dots: "..;a" climbs.
  const std::string_view name = segment.substr(0, segment.find(';'));
  if (name == "." || name == "..") return false;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    if (!is_plain_character(segment[at])) return false;
    if (segment[at] == '%' && !is_plain_escape(segment.substr(at + 1))) return false;
  }
  return true;
}

bool is_for_the_proxy(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  return equal_in_any_case(name, "proxy-authorization") ||
         equal_in_any_case(name, "proxy-connection");
}

}  // namespace

std::optional<Target> parse_target(std::string_view method, std::string_view target) {
  if (target.empty() || !std::ranges::all_of(target, is_target_character)) return std::nullopt;
  if (method == "CONNECT") return parse_authority_form(target);
  if (target.starts_with('/')) return parse_origin_form(target);
  if (target == "*" && method == "OPTIONS") return parse_origin_form(target);
  return parse_absolute_form(target);
}

bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.contains("//")) return false;
  for (const std::string_view segment : EachPart(path, '/')) {
    if (!is_plain_segment(segment)) return false;
  }
  return true;
}

std::string to_origin_form(std::string_view bytes, const HttpHead& head) {
  const std::string_view whole = bytes.substr(0, head.size);
  const std::string_view path_query =
      parse_target(head.method, head.target).value_or(Target{}).path_query;
  std::string origin;
  origin.reserve(whole.size());
  origin.append(head.method).append(" ");
  if (!path_query.starts_with('/') && path_query != "*") origin.append("/");
  origin.append(path_query).append(" HTTP/1.1\r\n");
  std::size_t at = whole.find('\n') + 1;
  while (at < whole.size()) {
    const std::size_t end = whole.find('\n', at) + 1;
    const std::string_view line = whole.substr(at, end - at);
    if (!is_for_the_proxy(line)) origin.append(line);
    at = end;
  }
  return origin;
}

}  // namespace capgate::egress
