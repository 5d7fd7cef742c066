// Kinds that name endpoints: net, and env, whose sealed values go to endpoints.
#include "core/grammar_detail.h"

namespace capgate::core::grammar {
namespace {

bool is_method_character(char c) { return is_upper(c) || c == '-'; }

bool is_url_path(std::string_view path) {
  return path.starts_with('/') && std::ranges::all_of(path, [](char c) {
           return c > ' ' && c < 0x7f && !std::string_view("\"\\?&#%<>^`{|}").contains(c);
         });
}

template <typename Valid>
Result<std::vector<std::string>> parse_list(const RefinementReader& reader, std::string_view key,
                                            std::string_view help, Valid valid) {
  std::vector<std::string> out;
  const Refinement* refinement = reader.find(key);
  if (refinement == nullptr) return out;
  for (const std::string_view item : EachPart(refinement->value.text, ',')) {
    if (item.empty() || !valid(item)) {
      return fail(Code::cap_refinement, refinement->value.where,
                  format("{} cannot hold {}", key, quoted(item)), std::string(help));
    }
    out.emplace_back(item);
  }
  sort_and_deduplicate(out);
  return out;
}

// Only a name can lead somewhere that it does not say: others are told what to write instead.
Result<bool> parse_private(const RefinementReader& reader, const HostPattern& host) {
  if (!TRY(reader.flag("private"))) return false;
  const auto refuse = [&](std::string_view message, std::string_view help) {
    return fail(Code::cap_refinement, reader.find("private")->key.where, std::string(message),
                std::string(help));
  };
  switch (host.kind) {
    case HostPattern::Kind::any:
      return refuse("private=true needs a name, and * is every name",
                    "name the hosts of your network, for example "
                    "net:connect:*.corp.example.com:443?private=true");
    case HostPattern::Kind::ipv4:
    case HostPattern::Kind::ipv6:
      return refuse("private=true is for names: a rule for an address reaches it, private or not",
                    "remove private=true");
    case HostPattern::Kind::subdomains:
    case HostPattern::Kind::name: break;
  }
  if (host.text == "localhost" || host.text.ends_with(".localhost")) {
    return refuse("localhost is this machine's loopback and leads nowhere else",
                  "remove private=true");
  }
  return true;
}

Result<Capability> parse_connect(const Fields& fields) {
  TRY(check_shape(fields, 2, 3, Code::cap_net_shape, "net:connect:HOST[:PORT]"));
  NetConnect out;  // NOLINT(misc-const-correctness): TRY hides the assignments below from the check
  out.endpoint.host = TRY(in_field(fields.items[1], parse_host));
  if (fields.count == 3 && fields.items[2].text.starts_with("//")) {
    return fail(Code::cap_net_port, fields.items[2].where, "this is a URL, not a host and a port",
                "write the host and the port alone, for example net:connect:api.example.com:443");
  }
  if (fields.count == 3) out.endpoint.port = TRY(in_field(fields.items[2], parse_port));

  constexpr std::string_view refinements[] = {"sni", "proto", "methods", "paths", "private"};
  const RefinementReader reader(fields, refinements);
  TRY(reader.check());
  constexpr std::string_view sni[] = {"match", "any", "strict"};
  constexpr std::string_view proto[] = {"detect", "tcp", "tls", "http"};
  NetRefinements& refine = out.refinements;  // NOLINT(misc-const-correctness): as above
  refine.sni = static_cast<NetRefinements::Sni>(TRY(reader.choice("sni", sni)).value_or(0));
  refine.proto = static_cast<NetRefinements::Proto>(TRY(reader.choice("proto", proto)).value_or(0));
  refine.methods = TRY(parse_list(reader, "methods", "write methods=GET,POST", [](auto item) {
    return std::ranges::all_of(item, is_method_character);
  }));
  refine.paths = TRY(parse_list(reader, "paths", "write paths=/repos/**,/user", is_url_path));
  refine.private_network = TRY(parse_private(reader, out.endpoint.host));
  return out;
}

Result<std::string> parse_variable_name(std::string_view name) {
  const auto is_name_character = [](char c) { return is_upper(c) || is_digit(c) || c == '_'; };
  if (name.empty() || is_digit(name.front()) || !std::ranges::all_of(name, is_name_character)) {
    return fail(Code::cap_env_name, Span::at(0, name.size()),
                format("{} is not a variable name", quoted(name)),
                "use upper-case letters, digits and underscores, for example GITHUB_TOKEN");
  }
  return std::string(name);
}

// Headers of one connection, of a message's framing, and those that the broker itself rewrites on
// sealed endpoints: a value there would be dropped, sent elsewhere or break the message apart.
bool is_unusable_header(std::string_view header) {
  constexpr std::string_view names[] = {
      "accept-encoding", "connection",          "content-length",   "expect", "host",
      "keep-alive",      "proxy-authorization", "proxy-connection", "range",  "te",
      "trailer",         "transfer-encoding",   "upgrade"};
  return std::ranges::find(names, header) != std::end(names);
}

Result<SecretPlace> parse_place(const RefinementReader& reader) {
  const Refinement* as = reader.find("as");
  if (as == nullptr) return SecretPlace{};
  constexpr std::string_view places[] = {"header:NAME", "basic", "query", "path", "body"};
  const std::string_view text = as->value.text;
  if (text.starts_with("header:")) {
    const std::string header = to_lower(text.substr(7));
    const bool valid = !header.empty() && std::ranges::all_of(header, [](char c) {
      return is_alnum(c) || c == '-' || c == '_';
    });
    if (valid && is_unusable_header(header)) {
      return fail(Code::cap_refinement, as->value.where,
                  format("the header {} is part of how a message travels", header),
                  "name the header in which the service expects the secret: as=header:X-Api-Key");
    }
    if (valid) return SecretPlace{.kind = SecretPlace::Kind::header, .header = header};
  }
  for (std::size_t i = 1; i < std::size(places); ++i) {
    if (text == places[i])
      return SecretPlace{.kind = static_cast<SecretPlace::Kind>(i), .header = {}};
  }
  return fail(Code::cap_refinement, as->value.where, format("as cannot be {}", quoted(text)),
              did_you_mean(text, places));
}

// A secret belongs to one service. Below a wildcard anybody may have a name (of a multi-tenant
// service, say), and the authority that terminates TLS is made for names alone.
Result<Endpoint> parse_receiver(const Refinement& refinement) {
  const Span where = refinement.value.where;
  if (refinement.value.text.contains("://")) {
    return fail(Code::cap_refinement, where, "this is a URL, not a host and a port",
                "write the host and the port alone: to=api.example.com:443");
  }
  Endpoint to = TRY(in_field(refinement.value, parse_endpoint));
  switch (to.host.kind) {
    case HostPattern::Kind::name:
      if (to.port) return to;
      [[fallthrough]];
    case HostPattern::Kind::any:
      return fail(Code::cap_refinement, where, "a secret goes to one HOST:PORT",
                  "write to=api.example.com:443; repeat to= for several");
    case HostPattern::Kind::subdomains:
      return fail(
          Code::cap_refinement, where,
          format("a secret goes to one host, and {} is any below {}", print(to.host), to.host.text),
          format("name the host: to=api.{}:{}; repeat to= for several", to.host.text,
                 to.port.value_or(443)));
    case HostPattern::Kind::ipv4:
    case HostPattern::Kind::ipv6: break;
  }
  return fail(Code::cap_refinement, where,
              "a secret goes to a host by name: TLS to an address cannot be terminated",
              "write the name that the server's certificate has: to=api.example.com:443");
}

Result<void> read_seal(const RefinementReader& reader, EnvCapability& out) {
  for (const Refinement& refinement : reader.all()) {
    if (refinement.key.text != "to") continue;
    out.to.push_back(TRY(parse_receiver(refinement)));
  }
  sort_and_deduplicate(out.to);
  out.as = TRY(parse_place(reader));
  const Refinement* as = reader.find("as");
  if (as != nullptr && out.to.empty()) {
    return fail(Code::cap_refinement, as->key.where,
                "as= needs to=", "name the endpoint that receives the value: to=HOST:PORT");
  }
  if (!out.to.empty() && out.action != EnvCapability::Action::inject) {
    return fail(Code::cap_refinement, reader.find("to")->key.where,
                "only env:inject has to=", "write env:inject:NAME?to=HOST:PORT");
  }
  return {};
}

}  // namespace

Result<Capability> parse_net(const Fields& fields) {
  constexpr std::string_view known[] = {"connect", "listen"};
  TRY(check_shape(fields, 2, Fields::most, Code::cap_net_shape, "net:connect:HOST[:PORT]"));
  const auto actions = TRY(parse_actions(fields.items[0], "net", known));
  if (actions.count() > 1) {
    return fail(Code::cap_net_shape, fields.items[0].where,
                "connect and listen have different scopes",
                "write net:connect:HOST:PORT and net:listen:PORT");
  }
  if (actions.test(0)) return parse_connect(fields);
  TRY(check_shape(fields, 2, 2, Code::cap_net_shape, "net:listen:PORT"));
  const RefinementReader reader(fields, {});
  TRY(reader.check());
  return NetListen{.port = TRY(in_field(fields.items[1], parse_port))};
}

Result<Capability> parse_env(const Fields& fields) {
  constexpr std::string_view known[] = {"read", "inject"};
  TRY(check_shape(fields, 2, 2, Code::cap_env_shape, "env:inject:NAME or env:read:NAME"));
  EnvCapability out;
  const auto actions = TRY(parse_actions(fields.items[0], "env", known));
  if (actions.test(1)) out.action = EnvCapability::Action::inject;
  out.name = TRY(in_field(fields.items[1], parse_variable_name));
  constexpr std::string_view refinements[] = {"to", "as", "unsafe"};
  const RefinementReader reader(fields, refinements);
  TRY(reader.check("to"));
  out.unsafe = TRY(reader.flag("unsafe"));
  TRY(read_seal(reader, out));
  return out;
}

}  // namespace capgate::core::grammar
