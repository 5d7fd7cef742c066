#include "egress/policy.h"

#include <algorithm>
#include <limits>

#include "base/format.h"
#include "base/text.h"
#include "core/grammar.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::egress {
namespace {

using text::Kind;
using text::Value;

std::unexpected<Diagnostic> fail(Span where, std::string message) {
  return capgate::fail(Code::manifest_shape, where, std::move(message),
                       "the broker takes what capgate itself has written");
}

// An object with exactly these keys, each of which must be there: a missing one must not be read
// as its default, which may be the wider one.
Result<void> check_keys(Value object, std::span<const std::string_view> keys) {
  if (!object.is(Kind::object)) return fail(object.span(), "this must be an object");
  for (const text::Member member : object.members()) {
    if (std::ranges::find(keys, member.key.text()) != keys.end()) continue;
    return fail(member.key.span(), format("the key {} is not known", quoted(member.key.text())));
  }
  for (const std::string_view key : keys) {
    if (!object.find(key)) return fail(object.span(), format("{} is missing", key));
  }
  return {};
}

// Past check_keys.
Result<Value> member(Value object, std::string_view key, Kind kind) {
  const Value value = *object.find(key);
  if (!value.is(kind)) return fail(value.span(), format("{} has the wrong type", key));
  return value;
}

Result<std::string> read_text(Value object, std::string_view key) {
  return std::string(TRY(member(object, key, Kind::string)).text());
}

Result<std::uint64_t> read_number(Value object, std::string_view key, std::uint64_t least,
                                  std::uint64_t most) {
  const Value value = TRY(member(object, key, Kind::number));
  const auto number = parse_decimal(value.text());
  if (!number || *number < least || *number > most) {
    return fail(value.span(), format("{} is not a whole number from {} to {}", key, least, most));
  }
  return *number;
}

Result<core::Capability> parse_one(Value capability) {
  if (!capability.is(Kind::string)) return fail(capability.span(), "a capability is a string");
  auto parsed = core::parse_capability(capability.text(), {});
  if (!parsed) {
    parsed.error().where = capability.span();
    return std::unexpected(std::move(parsed).error());
  }
  if (parsed->size() != 1) return fail(capability.span(), "one capability is needed");
  return std::move(parsed->front());
}

Result<core::Capability> read_capability(Value object) {
  return parse_one(TRY(member(object, "capability", Kind::string)));
}

Result<Rule> read_rule(Value value) {
  constexpr std::string_view keys[] = {"capability", "at"};
  TRY(check_keys(value, keys));
  const core::Capability capability = TRY(read_capability(value));
  const auto* connect = std::get_if<core::NetConnect>(&capability);
  if (connect == nullptr) return fail(value.span(), "a rule is one net:connect");
  return Rule{
      .connect = *connect, .text = print(capability), .position = TRY(read_text(value, "at"))};
}

Result<core::NetConnect> read_lacking(Value value) {
  const core::Capability capability = TRY(parse_one(value));
  const auto* connect = std::get_if<core::NetConnect>(&capability);
  if (connect == nullptr) return fail(value.span(), "what is lacking is one net:connect");
  return *connect;
}

Result<Seal> read_seal(Value value) {
  constexpr std::string_view keys[] = {"capability", "placeholder", "at"};
  TRY(check_keys(value, keys));
  const core::Capability capability = TRY(read_capability(value));
  const auto* env = std::get_if<core::EnvCapability>(&capability);
  if (env == nullptr || env->to.empty()) {
    return fail(value.span(), "a seal is one env:inject with to=");
  }
  Seal out{.env = *env,
           .placeholder = TRY(read_text(value, "placeholder")),
           .position = TRY(read_text(value, "at"))};
  if (out.placeholder.empty()) return fail(value.span(), "a seal needs a placeholder");
  return out;
}

struct LimitField {
  std::string_view key;
  std::uint32_t EgressLimits::* member;
};
constexpr LimitField limit_fields[] = {{"connections", &EgressLimits::connections},
                                       {"perSecond", &EgressLimits::per_second},
                                       {"requestsPerSecond", &EgressLimits::requests_per_second},
                                       {"idleSeconds", &EgressLimits::idle_seconds},
                                       {"headBytes", &EgressLimits::head_bytes},
                                       {"helloSeconds", &EgressLimits::hello_seconds},
                                       {"dialSeconds", &EgressLimits::dial_seconds}};

Result<EgressLimits> read_limits(Value value) {
  std::vector<std::string_view> keys{"bytes"};
  for (const LimitField& field : limit_fields) keys.push_back(field.key);
  TRY(check_keys(value, keys));
  EgressLimits out;  // NOLINT(misc-const-correctness): TRY hides the assignments below
  out.bytes = TRY(read_number(value, "bytes", 0, std::numeric_limits<std::uint64_t>::max()));
  for (const LimitField& field : limit_fields) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    out.*field.member = static_cast<std::uint32_t>(TRY(read_number(value, field.key, 1, most)));
  }
  return out;
}

}  // namespace

bool is_sealed(const Policy& policy, const core::HostPattern& host, std::uint16_t port) {
  return std::ranges::any_of(policy.seals, [&](const Seal& seal) {
    return std::ranges::any_of(seal.env.to, [&](const core::Endpoint& endpoint) {
      return core::matches(endpoint, {.host = host, .port = port});
    });
  });
}

Result<Policy> read_policy(std::string_view json) {
  auto document = text::parse_json(std::string(json));
  if (!document) return std::unexpected(document.error().front());
  const Value root = document->root();
  constexpr std::string_view keys[] = {"server",     "sandbox",        "policyHash", "rules",
                                       "publicOnly", "limits",         "seals",      "roots",
                                       "lacking",    "proxyCredential"};
  TRY(check_keys(root, keys));
  Policy out;  // NOLINT(misc-const-correctness): TRY hides the assignments below
  out.server = TRY(read_text(root, "server"));
  out.sandbox = TRY(read_text(root, "sandbox"));
  out.hash = TRY(read_text(root, "policyHash"));
  for (const Value rule : TRY(member(root, "rules", Kind::array)).elements()) {
    out.rules.push_back(TRY(read_rule(rule)));
  }
  for (const Value seal : TRY(member(root, "seals", Kind::array)).elements()) {
    out.seals.push_back(TRY(read_seal(seal)));
  }
  const Value roots = TRY(member(root, "roots", Kind::object));
  constexpr std::string_view root_keys[] = {"file", "directory"};
  TRY(check_keys(roots, root_keys));
  out.roots_file = TRY(read_text(roots, "file"));
  out.roots_directory = TRY(read_text(roots, "directory"));
  out.public_only = TRY(member(root, "publicOnly", Kind::boolean)).text() == "true";
  for (const Value connect : TRY(member(root, "lacking", Kind::array)).elements()) {
    out.lacking.push_back(TRY(read_lacking(connect)));
  }
  out.proxy_credential = TRY(read_text(root, "proxyCredential"));
  out.limits = TRY(read_limits(*root.find("limits")));
  return out;
}

std::string print_policy(const Policy& policy) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("server").string(policy.server).key("sandbox").string(policy.sandbox);
  json.key("policyHash").string(policy.hash).key("rules").begin_array();
  for (const Rule& rule : policy.rules) {
    json.begin_object().key("capability").string(rule.text);
    json.key("at").string(rule.position).end_object();
  }
  json.end_array().key("seals").begin_array();
  for (const Seal& seal : policy.seals) {
    json.begin_object().key("capability").string(print(core::Capability(seal.env)));
    json.key("placeholder").string(seal.placeholder).key("at").string(seal.position).end_object();
  }
  json.end_array().key("roots").begin_object().key("file").string(policy.roots_file);
  json.key("directory").string(policy.roots_directory).end_object();
  json.key("publicOnly").boolean(policy.public_only).key("lacking").begin_array();
  for (const core::NetConnect& connect : policy.lacking) {
    json.string(print(core::Capability(connect)));
  }
  json.end_array();
  json.key("proxyCredential").string(policy.proxy_credential).key("limits").begin_object();
  for (const LimitField& field : limit_fields) {
    json.key(field.key).number(policy.limits.*field.member);
  }
  json.key("bytes").number(policy.limits.bytes).end_object().end_object();
  return std::move(json).take();
}

}  // namespace capgate::egress
