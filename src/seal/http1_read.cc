#include "seal/http1_read.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "egress/http_target.h"
#include "egress/http_text.h"

namespace capgate::seal {
namespace {

using egress::equal_in_any_case;
using egress::is_token;

constexpr std::size_t most_fields = 400;
// A reader with signed numbers must come to the same length.
constexpr auto longest_body = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

bool is_value_character(char c) { return !is_control(c) || c == '\t'; }
bool is_value(std::string_view text) { return std::ranges::all_of(text, is_value_character); }

// ---- The fields ---------------------------------------------------------------------------------

// `line` is without its LF.
std::expected<void, Flaw> take_field(FieldBlock& block, std::string_view line) {
  if (!line.ends_with('\r')) return std::unexpected("has a bare LF");
  line.remove_suffix(1);
  if (line.starts_with(' ') || line.starts_with('\t')) {
    return std::unexpected("has a folded line");
  }
  if (block.fields.size() == most_fields) return std::unexpected("has too many fields");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::unexpected("has a line without a colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return std::unexpected("has a field whose name is no token");
  const std::string_view rest = line.substr(colon + 1);
  if (!is_value(rest)) return std::unexpected("has a control character");
  const std::size_t begin = std::min(rest.find_first_not_of(" \t"), rest.size());
  const std::size_t end = begin == rest.size() ? begin : rest.find_last_not_of(" \t") + 1;
  const std::string_view before = rest.substr(0, begin);
  const std::string_view after = rest.substr(end);
  if (before != " " || !after.empty()) {
    block.spacing.push_back({block.fields.size(), std::string(before), std::string(after)});
  }
  block.fields.push_back(
      {.name = std::string(name), .value = std::string(rest.substr(begin, end - begin))});
  return {};
}

std::expected<FieldBlock, Flaw> read_fields(std::string_view bytes) {
  FieldBlock block;
  block.fields.reserve(16);
  for (;;) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return std::unexpected("is not whole");
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (line == "\r") break;
    if (const auto taken = take_field(block, line); !taken) return std::unexpected(taken.error());
  }
  if (!bytes.empty()) return std::unexpected("has an empty line inside");
  return block;
}

// ---- What the fields say of the connection ------------------------------------------------------

struct Meaning {
  const std::string* host = nullptr;
  std::optional<std::uint64_t> length;
  bool is_chunked = false;
  bool is_last = false;
  bool expects_continue = false;
  RequestHead::Upgrade upgrade = RequestHead::Upgrade::none;
};

bool has_token(std::string_view list, std::string_view lower) {
  for (const std::string_view part : EachPart(list, ',')) {
    if (equal_in_any_case(trim(part), lower)) return true;
  }
  return false;
}

std::expected<void, Flaw> take_meaning(Meaning& meaning, const Field& field) {
  if (is_field(field, "host")) {
    if (meaning.host != nullptr) return std::unexpected("has more than one Host");
    meaning.host = &field.value;
  } else if (is_field(field, "content-length")) {
    if (meaning.length) return std::unexpected("has more than one Content-Length");
    meaning.length = parse_decimal(field.value);
    if (!meaning.length || *meaning.length > longest_body) {
      return std::unexpected("has a Content-Length that is no number");
    }
  } else if (is_field(field, "transfer-encoding")) {
    if (meaning.is_chunked) return std::unexpected("has more than one Transfer-Encoding");
    if (!equal_in_any_case(field.value, "chunked")) {
      return std::unexpected("has a Transfer-Encoding other than chunked");
    }
    meaning.is_chunked = true;
  } else if (is_field(field, "connection")) {
    meaning.is_last |= has_token(field.value, "close");
  } else if (is_field(field, "expect")) {
    meaning.expects_continue |= equal_in_any_case(field.value, "100-continue");
  } else if (is_field(field, "upgrade")) {
    using enum RequestHead::Upgrade;
    const bool is_websocket =
        meaning.upgrade == none && equal_in_any_case(field.value, "websocket");
    meaning.upgrade = is_websocket ? websocket : other;
  }
  return {};
}

std::expected<Meaning, Flaw> find_meaning(const std::vector<Field>& fields) {
  Meaning meaning;
  for (const Field& field : fields) {
    if (const auto taken = take_meaning(meaning, field); !taken) {
      return std::unexpected(taken.error());
    }
  }
  if (meaning.length && meaning.is_chunked) {
    return std::unexpected("has a Content-Length and a Transfer-Encoding");
  }
  return meaning;
}

Framing framing_of(const Meaning& meaning, Framing::Kind otherwise) {
  if (meaning.is_chunked) return {.kind = Framing::Kind::chunked};
  if (!meaning.length) return {.kind = otherwise};
  if (*meaning.length == 0) return {};
  return {.kind = Framing::Kind::length, .length = *meaning.length};
}

// ---- The first lines ----------------------------------------------------------------------------

// The first line without its CR and LF; `bytes` hold the rest then.
std::expected<std::string_view, Flaw> take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return std::unexpected("is not whole");
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  if (!line.ends_with('\r')) return std::unexpected("has a bare LF");
  line.remove_suffix(1);
  return line;
}

struct RequestLine {
  std::string_view method;
  std::string authority;  // of an absolute target
  std::string target;     // in origin-form
};

std::optional<RequestLine> read_absolute(RequestLine line, std::string_view target) {
  constexpr std::string_view scheme = "https://";
  if (!equal_in_any_case(target.substr(0, scheme.size()), scheme)) return std::nullopt;
  target.remove_prefix(scheme.size());
  const std::size_t end = std::min(find_any(target, "/?"), target.size());
  line.authority = target.substr(0, end);
  if (!target.substr(end).starts_with('/')) line.target = "/";
  line.target += target.substr(end);
  const bool is_target = egress::parse_target(line.method, line.target).has_value();
  return is_target && !line.authority.empty() ? std::optional(line) : std::nullopt;
}

std::expected<RequestLine, Flaw> read_request_line(std::string_view text) {
  constexpr std::string_view version = " HTTP/1.1";
  if (!text.ends_with(version)) return std::unexpected("is not one of HTTP/1.1");
  text.remove_suffix(version.size());
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::unexpected("has no target");
  RequestLine line{.method = text.substr(0, space), .authority = {}, .target = {}};
  const std::string_view target = text.substr(space + 1);
  if (!is_token(line.method)) return std::unexpected("has a method that is no token");
  if (line.method == "CONNECT") return std::unexpected("is a CONNECT");
  if (target.starts_with('/') || target == "*") {
    if (!egress::parse_target(line.method, target)) {
      return std::unexpected("has a target that is none");
    }
    line.target = target;
    return line;
  }
  auto absolute = read_absolute(std::move(line), target);
  if (!absolute) return std::unexpected("has a target that is none");
  return *std::move(absolute);
}

// "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 200".
std::expected<void, Flaw> read_status_line(ResponseHead& head, std::string_view text) {
  constexpr std::size_t shortest = std::string_view("HTTP/1.1 200").size();
  const std::string_view digits =
      text.substr(0, shortest).substr(std::min(text.size(), shortest - 3));
  const bool is_http = text.starts_with("HTTP/1.1 ") || text.starts_with("HTTP/1.0 ");
  if (!is_http || digits.size() != 3 || !std::ranges::all_of(digits, is_digit)) {
    return std::unexpected("has a first line that is none of HTTP/1.1");
  }
  head.response.status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  const std::string_view rest = text.substr(shortest);
  if (head.response.status < 100 || (!rest.empty() && !rest.starts_with(' ')) || !is_value(rest)) {
    return std::unexpected("has a first line that is none of HTTP/1.1");
  }
  head.line_begin = text.substr(0, shortest + (rest.empty() ? 0 : 1));
  if (!rest.empty()) head.response.reason = rest.substr(1);
  return {};
}

// ---- Writing ------------------------------------------------------------------------------------

// Finds the spacing of fields in the order in which they were read.
class Spacings {
 public:
  Spacings(const std::vector<Field>& as_read, const std::vector<OddSpacing>& odd)
      : as_read_(as_read), odd_(odd) {}

  // Null: one space before, nothing after.
  const OddSpacing* next(const Field& field) {
    if (odd_.empty()) return nullptr;
    const auto same = [&](const Field& read) { return read.name == field.name; };
    const auto found = std::find_if(as_read_.begin() + at_, as_read_.end(), same);
    if (found == as_read_.end()) return nullptr;
    const auto index = found - as_read_.begin();
    at_ = index + 1;
    const auto odd = std::ranges::find(odd_, static_cast<std::size_t>(index), &OddSpacing::index);
    return odd == odd_.end() ? nullptr : &*odd;
  }

 private:
  const std::vector<Field>& as_read_;
  const std::vector<OddSpacing>& odd_;
  std::ptrdiff_t at_ = 0;
};

std::size_t room_for(const std::vector<Field>& fields, const std::vector<OddSpacing>& spacing) {
  std::size_t size = 2;
  for (const Field& field : fields) size += field.name.size() + field.value.size() + 4;
  for (const OddSpacing& odd : spacing) size += odd.before.size() + odd.after.size();
  return size;
}

void write_fields(std::string& out, const std::vector<Field>& fields, Spacings spacings) {
  for (const Field& field : fields) {
    const OddSpacing* odd = spacings.next(field);
    out.append(field.name).append(":");
    out.append(odd != nullptr ? std::string_view(odd->before) : " ").append(field.value);
    if (odd != nullptr) out.append(odd->after);
    out.append("\r\n");
  }
  out.append("\r\n");
}

}  // namespace

std::size_t find_head_end(std::string_view bytes, std::size_t searched) {
  for (std::size_t at = bytes.find('\n', searched); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    std::string_view line = bytes.substr(0, at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.ends_with('\n')) return at + 1;
  }
  return 0;
}

std::expected<RequestHead, Flaw> read_request_head(std::string_view bytes) {
  const auto text = take_line(bytes);
  if (!text) return std::unexpected(text.error());
  auto line = read_request_line(*text);
  if (!line) return std::unexpected(line.error());
  auto block = read_fields(bytes);
  if (!block) return std::unexpected(block.error());
  const auto meaning = find_meaning(block->fields);
  if (!meaning) return std::unexpected(meaning.error());
  if (meaning->host == nullptr) return std::unexpected("has no Host");
  if (!line->authority.empty() &&
      !equal_in_any_case(line->authority, to_lower(std::string_view(*meaning->host)))) {
    return std::unexpected("has a target with another authority than its Host");
  }
  RequestHead head;
  head.request.method = line->method;
  head.request.target = std::move(line->target);
  head.request.authority = *meaning->host;
  head.request.fields = std::move(block->fields);
  head.spacing = std::move(block->spacing);
  head.body = framing_of(*meaning, Framing::Kind::none);
  head.upgrade = meaning->upgrade;
  head.expects_continue = meaning->expects_continue;
  head.is_last = meaning->is_last;
  return head;
}

std::expected<ResponseHead, Flaw> read_response_head(std::string_view bytes) {
  ResponseHead head;
  const auto text = take_line(bytes);
  if (!text) return std::unexpected(text.error());
  if (const auto read = read_status_line(head, *text); !read) return std::unexpected(read.error());
  auto block = read_fields(bytes);
  if (!block) return std::unexpected(block.error());
  const auto meaning = find_meaning(block->fields);
  if (!meaning) return std::unexpected(meaning.error());
  const bool is_http10 = head.line_begin.starts_with("HTTP/1.0");
  if (is_http10 && meaning->is_chunked) return std::unexpected("is chunked in HTTP/1.0");
  head.response.fields = std::move(block->fields);
  head.spacing = std::move(block->spacing);
  head.body = framing_of(*meaning, Framing::Kind::until_close);
  head.is_last = is_http10 || meaning->is_last;
  return head;
}

std::expected<FieldBlock, Flaw> read_trailers(std::string_view bytes) {
  auto block = read_fields(bytes);
  if (!block) return block;
  for (const Field& field : block->fields) {
    // A lenient reader would take them for fields of the head.
    if (is_field(field, "content-length") || is_field(field, "transfer-encoding") ||
        is_field(field, "host")) {
      return std::unexpected("has a trailer that belongs into the head");
    }
  }
  return block;
}

bool is_sendable(const Request& request) {
  const auto is_framing = [](const Field& field) {
    return is_field(field, "host") || is_field(field, "content-length") ||
           is_field(field, "transfer-encoding") || is_field(field, "connection") ||
           is_field(field, "upgrade");
  };
  if (request.target_is_secret && !egress::parse_target(request.method, request.target)) {
    return false;
  }
  return std::ranges::none_of(request.fields, [&](const Field& field) {
    return field.is_secret && (is_framing(field) || !is_value(field.value));
  });
}

std::string write_request_head(const Request& request, const std::vector<Field>& as_read,
                               const std::vector<OddSpacing>& spacing) {
  constexpr std::string_view version = " HTTP/1.1\r\n";
  std::string out;
  out.reserve(request.method.size() + 1 + request.target.size() + version.size() +
              room_for(request.fields, spacing));
  out.append(request.method).append(" ").append(request.target).append(version);
  write_fields(out, request.fields, Spacings(as_read, spacing));
  return out;
}

std::string write_response_head(const ResponseHead& head) {
  const Response& response = head.response;
  std::string out;
  out.reserve(head.line_begin.size() + response.reason.size() + 2 +
              room_for(response.fields, head.spacing));
  out.append(head.line_begin).append(response.reason).append("\r\n");
  write_fields(out, response.fields, Spacings(response.fields, head.spacing));
  return out;
}

std::string write_trailers(const FieldBlock& block) {
  std::string out;
  out.reserve(room_for(block.fields, block.spacing));
  write_fields(out, block.fields, Spacings(block.fields, block.spacing));
  return out;
}

}  // namespace capgate::seal
