#include "egress/http.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/text.h"
#include "egress/http_target.h"
#include "egress/http_text.h"
#include "egress/overrides.h"

namespace capgate::egress {
namespace {

constexpr std::size_t longest_method = 32;
constexpr std::size_t most_fields = 200;
// A reader with signed numbers must come to the same length.
constexpr auto longest_body = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

// ---- The first line -----------------------------------------------------------------------------

// Whatever some server takes for the space between the words of a request line. Only one space is
// valid; the others tell HTTP, badly spoken, from other protocols.
bool is_gap(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (is_space(c) && c != '\n') || (byte >= 0x1c && byte <= 0x1f) || byte == 0x85 ||
         byte == 0xa0;
}

bool is_known_method(std::string_view method) {
  constexpr std::array<std::string_view, 9> known = {
      "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"};
  return std::ranges::find(known, method) != known.end();
}

// True if the last word of the line is a version of HTTP.
bool ends_in_http(std::string_view line) {
  while (!line.empty() && is_gap(line.back())) line.remove_suffix(1);
  std::size_t begin = line.size();
  while (begin > 0 && !is_gap(line[begin - 1])) --begin;
  const std::string_view word = line.substr(begin);
  constexpr std::string_view name = "http/";
  return equal_in_any_case(word.substr(0, name.size()), name) && word.size() > name.size() &&
         is_digit(word[name.size()]);
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  Target parts;
};

// `line` is without its LF.
std::optional<RequestLine> parse_request_line(std::string_view line) {
  constexpr std::string_view version = " HTTP/1.1\r";
  if (!line.ends_with(version)) return std::nullopt;
  line.remove_suffix(version.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  RequestLine request{.method = line.substr(0, space), .target = line.substr(space + 1)};
  if (!is_token(request.method)) return std::nullopt;
  const auto parts = parse_target(request.method, request.target);
  if (!parts) return std::nullopt;
  request.parts = *parts;
  return request;
}

struct FirstLine {
  Progress progress = Progress::more;
  RequestLine request;
  std::size_t size = 0;
};

FirstLine read_first_line(std::string_view bytes) {
  const auto is_before = [](char c) { return is_gap(c) || c == '\n'; };
  const auto method_begin = std::ranges::find_if_not(bytes, is_before);
  const auto method_end = std::find_if_not(method_begin, bytes.end(), is_token_character);
  const std::string_view method(method_begin, method_end);
  if (method.size() > longest_method) return {.progress = Progress::other};
  if (method_end == bytes.end()) return {};
  if (method.empty() || !is_gap(*method_end)) return {.progress = Progress::other};

  const auto line_end = std::find(method_end, bytes.end(), '\n');
  const std::string_view rest(method_end, line_end);
  // Binary protocols are told here, without waiting for a line end that may never come.
  if (std::ranges::any_of(rest, [](char c) { return is_control(c) && !is_gap(c); })) {
    return {.progress = is_known_method(method) ? Progress::malformed : Progress::other};
  }
  if (line_end == bytes.end()) return {};

  const std::string_view line(bytes.begin(), line_end);
  if (const auto request = parse_request_line(line)) {
    return {.progress = Progress::done, .request = *request, .size = line.size() + 1};
  }
  const bool is_http1 = ends_in_http(rest) && line != "PRI * HTTP/2.0\r";
  return {.progress = is_http1 ? Progress::malformed : Progress::other};
}

// ---- The fields ---------------------------------------------------------------------------------

struct Fields {
  std::size_t count = 0;
  std::optional<std::string_view> host;
  std::optional<std::string_view> proxy_authorization;
  std::string_view override_field;
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool upgrade = false;
  bool websocket = false;
};

bool is_value_character(char c) { return !is_control(c) || c == '\t'; }

std::string_view trim_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool take_length(Fields& fields, std::string_view value) {
  const auto length = parse_decimal(value);
  if (fields.length || fields.chunked || !length || *length > longest_body) return false;
  fields.length = length;
  return true;
}

bool take_coding(Fields& fields, std::string_view value) {
  if (fields.length || fields.chunked || !equal_in_any_case(value, "chunked")) return false;
  fields.chunked = true;
  return true;
}

bool is_protocol(std::string_view text) {
  const std::size_t slash = text.find('/');
  return is_token(text.substr(0, slash)) &&
         (slash == std::string_view::npos || is_token(text.substr(slash + 1)));
}

bool take_upgrade(Fields& fields, std::string_view value) {
  fields.websocket = !fields.upgrade && equal_in_any_case(value, "websocket");
  fields.upgrade = true;
  for (const std::string_view protocol : EachPart(value, ',')) {
    if (!is_protocol(trim_blanks(protocol))) return false;
  }
  return true;
}

bool take_host(Fields& fields, std::string_view value) {
  if (fields.host) return false;
  fields.host = value;
  return true;
}

// `line` is without its LF. False if it is malformed.
bool take_field(Fields& fields, std::string_view line) {
  if (!line.ends_with('\r') || ++fields.count > most_fields) return false;
  line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trim_blanks(line.substr(colon + 1));
  if (!is_token(name) || !std::ranges::all_of(value, is_value_character)) return false;
  if (equal_in_any_case(name, "host")) return take_host(fields, value);
  if (equal_in_any_case(name, "content-length")) return take_length(fields, value);
  if (equal_in_any_case(name, "transfer-encoding")) return take_coding(fields, value);
  if (equal_in_any_case(name, "upgrade")) return take_upgrade(fields, value);
  if (equal_in_any_case(name, "proxy-authorization")) {
    fields.proxy_authorization = fields.proxy_authorization ? "" : value;
  }
  if (is_override_field(name)) fields.override_field = name;
  return true;
}

struct FieldsReading {
  Progress progress = Progress::more;
  Fields fields;
  std::size_t size = 0;  // with the empty line
};

FieldsReading read_fields(std::string_view bytes) {
  FieldsReading reading;
  while (true) {
    const std::size_t end = bytes.find('\n', reading.size);
    if (end == std::string_view::npos) return reading;
    const std::string_view line = bytes.substr(reading.size, end - reading.size);
    reading.size = end + 1;
    if (line == "\r") break;
    if (!take_field(reading.fields, line)) {
      reading.progress = Progress::malformed;
      return reading;
    }
  }
  reading.progress = Progress::done;
  return reading;
}

// ---- The head -----------------------------------------------------------------------------------

HttpHead make_head(const RequestLine& request, const Fields& fields) {
  HttpHead head;
  head.method = request.method;
  head.target = request.target;
  head.path = request.parts.path;
  head.authority = request.parts.authority;
  head.has_host = fields.host.has_value();
  head.host = fields.host.value_or("");
  head.proxy_authorization = fields.proxy_authorization.value_or("");
  if (fields.chunked) head.body = HttpHead::Body::chunked;
  if (fields.length) head.body = HttpHead::Body::length;
  head.length = fields.length.value_or(0);
  head.override_field = fields.override_field;
  head.wants_upgrade = fields.upgrade;
  head.wants_websocket = fields.websocket;
  return head;
}

// What follows the head of a CONNECT is the tunnel: a body would be read as both.
bool has_body_in_tunnel(const RequestLine& request, const Fields& fields) {
  return request.method == "CONNECT" && (fields.chunked || fields.length.value_or(0) > 0);
}

HeadReading read_whole_head(std::string_view bytes) {
  const FirstLine first = read_first_line(bytes);
  if (first.progress != Progress::done) return {.progress = first.progress};
  const FieldsReading rest = read_fields(bytes.substr(first.size));
  if (rest.progress != Progress::done) return {.progress = rest.progress};
  if (has_body_in_tunnel(first.request, rest.fields)) return {.progress = Progress::malformed};
  HeadReading reading{.progress = Progress::done, .head = make_head(first.request, rest.fields)};
  reading.head.size = first.size + rest.size;
  return reading;
}

}  // namespace

HeadReading read_http_head(std::string_view bytes, std::size_t most) {
  HeadReading reading = read_whole_head(bytes.substr(0, most));
  if (reading.progress == Progress::more && bytes.size() >= most) {
    reading.progress = Progress::malformed;
  }
  return reading;
}

}  // namespace capgate::egress
