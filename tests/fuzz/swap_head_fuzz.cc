// Any bytes as a head, a line each: method, target, authority, then fields "name:value". What the
// origin receives equals what the client sent except for the placeholder, which stands in the one
// place that is allowed; or the request is refused.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/digest.h"
#include "base/text.h"
#include "fuzz/seal_oracle.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace {

using namespace capgate;
using namespace capgate::seal;
using Kind = core::SecretPlace::Kind;

constexpr fuzz::Shorthand token{.placeholder = "ghp_AbCdEfGhIjKlMnOpQrStUvWx",
                                .value = "real/\"+ value"};

// '\5' begins and '\6' ends what is written in base64, as in credentials.
std::string with_base64(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find('\5');
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin + 1);
    const std::size_t end = std::min(text.find('\6'), text.size());
    out += base64(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Request read_request(std::string_view bytes) {
  const std::string text = with_base64(fuzz::spelled_out(bytes, token));
  const std::vector<std::string_view> lines = split(text, '\n');
  Request request;
  if (!lines.empty()) request.method = lines[0];
  if (lines.size() > 1) request.target = lines[1];
  if (lines.size() > 2) request.authority = lines[2];
  for (std::size_t i = 3; i < lines.size(); ++i) {
    const std::size_t colon = std::min(lines[i].find(':'), lines[i].size());
    request.fields.push_back(
        {.name = std::string(lines[i].substr(0, colon)),
         .value = std::string(lines[i].substr(std::min(colon + 1, lines[i].size())))});
  }
  return request;
}

bool is_dropped(const Field& field) {
  return is_field(field, "range") || is_field(field, "if-range") ||
         is_field(field, "request-range") || is_field(field, "sec-websocket-extensions") ||
         is_field(field, "accept-encoding");
}

std::vector<Field> kept(const std::vector<Field>& fields) {
  std::vector<Field> out;
  for (const Field& field : fields) {
    if (!is_dropped(field)) out.push_back(field);
  }
  return out;
}

std::string decoded_credentials(const Field& field) {
  const std::string_view value = field.value;
  if (!is_field(field, "authorization") || to_lower(value.substr(0, 6)) != "basic ") return {};
  return base64_decoded(trim(value.substr(6))).value_or("");
}

// As it would have to arrive if `kind` is where the placeholder may stand.
Request expected(Request request, Kind kind) {
  const std::string in_target = percent_encoded(token.value);
  const std::size_t query = std::min(request.target.find('?'), request.target.size());
  const std::string path = request.target.substr(0, query);
  const std::string rest = request.target.substr(query);
  if (kind == Kind::path)
    request.target = fuzz::replaced(path, token.placeholder, in_target) + rest;
  if (kind == Kind::query)
    request.target = path + fuzz::replaced(rest, token.placeholder, in_target);
  for (Field& field : request.fields) {
    if (!is_field(field, "authorization")) continue;
    if (kind == Kind::header)
      field.value = fuzz::replaced(field.value, token.placeholder, token.value);
    const std::string credentials = decoded_credentials(field);
    if (kind != Kind::basic || !credentials.contains(token.placeholder)) continue;
    field.value =
        fuzz::replaced(field.value, base64(credentials),
                       base64(fuzz::replaced(credentials, token.placeholder, token.value)));
  }
  return request;
}

bool holds_placeholder(const Request& request) {
  const auto holds = [](std::string_view text) { return text.contains(token.placeholder); };
  bool found = holds(request.method) || holds(request.target) || holds(request.authority);
  for (const Field& field : kept(request.fields)) {
    found = found || holds(field.name) || holds(field.value) || holds(decoded_credentials(field));
  }
  return found;
}

Keyring keys_as(Kind kind) {
  static const auto value = secrets::Secret::make(token.value);
  return Keyring({{.name = "TOKEN",
                   .placeholder = std::string(token.placeholder),
                   .as = {.kind = kind},
                   .is_bound_here = true,
                   .value = &*value}});
}

void check(const Request& sent, Kind kind, const Keyring& keys) {
  Request received = sent;
  const auto swapped = keys.swap(received);
  if (!swapped) {
    CAPGATE_ASSERT(swapped.error().name == "TOKEN");
    CAPGATE_ASSERT(!swapped.error().text.contains(token.value));
    return;
  }
  CAPGATE_ASSERT(!holds_placeholder(received));
  CAPGATE_ASSERT(!swapped->empty() || !holds_placeholder(sent));
  const Request right = expected(sent, kind);
  CAPGATE_ASSERT(received.method == right.method && received.authority == right.authority);
  CAPGATE_ASSERT(received.target == right.target);
  CAPGATE_ASSERT(received.target_is_secret == (received.target != sent.target));
  const std::vector<Field> fields = kept(received.fields);
  const std::vector<Field> right_fields = kept(right.fields);
  CAPGATE_ASSERT(fields.size() == right_fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    CAPGATE_ASSERT(fields[i].name == right_fields[i].name);
    CAPGATE_ASSERT(fields[i].value == right_fields[i].value);
    CAPGATE_ASSERT(fields[i].is_secret == (fields[i].value != kept(sent.fields)[i].value));
  }
  const Field* coding = find_field(received.fields, "accept-encoding");
  CAPGATE_ASSERT(coding != nullptr && coding->value == "identity");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr Kind kinds[] = {Kind::header, Kind::basic, Kind::query, Kind::path, Kind::body};
  static const std::vector<Keyring> keys({keys_as(kinds[0]), keys_as(kinds[1]), keys_as(kinds[2]),
                                          keys_as(kinds[3]), keys_as(kinds[4])});
  const Request sent = read_request({reinterpret_cast<const char*>(data), size});
  for (std::size_t i = 0; i < keys.size(); ++i) check(sent, kinds[i], keys[i]);
  return 0;
}
