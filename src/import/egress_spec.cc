#include "import/egress_spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/built_in.h"
#include "core/grammar.h"
#include "core/host.h"

namespace capgate::imports {
namespace {

using core::NetConnect;
using core::NetRefinements;
using text::Kind;
using text::Value;

constexpr std::string_view version_key = "capgateEgress";
constexpr std::array<std::string_view, 6> top_keys = {version_key, "server", "policyHash",
                                                      "rules",     "listen", "publicOnly"};
constexpr std::array<std::string_view, 7> rule_keys = {"connect", "blockPrivate", "sni",    "proto",
                                                       "methods", "paths",        "private"};
constexpr std::string_view rule_example = "write - connect: api.example.com:443";

bool is_hash(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  return text.starts_with(prefix) && text.size() == prefix.size() + 64 &&
         std::ranges::all_of(text.substr(prefix.size()),
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_plain_text(Value value) {
  return value.is(Kind::string) && !value.text().empty() &&
         std::ranges::none_of(value.text(), is_control);
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

class Reader {
 public:
  explicit Reader(const text::Document& document) : root_(document.root()) {}

  Checked<EgressSpec> read() {
    if (check_keys(root_, top_keys, "a spec of egress")) {
      read_version();
      read_server();
      read_hash();
      read_rules();
      read_listen();
      read_public_only();
    }
    if (mistakes_.empty()) return std::move(out_);
    sort_diagnostics(mistakes_);
    if (mistakes_.size() > text::most_mistakes) mistakes_.resize(text::most_mistakes);
    return std::unexpected(std::move(mistakes_));
  }

 private:
  void complain(Span where, std::string message, std::string help) {
    mistakes_.push_back({.code = Code::manifest_shape,
                         .where = where,
                         .message = std::move(message),
                         .help = std::move(help)});
  }

  void declare(core::Capability capability, Span where) {
    out_.declared.push_back({.capability = std::move(capability), .where = where});
  }

  bool check_keys(Value object, std::span<const std::string_view> known, std::string_view what) {
    if (!object.is(Kind::object)) {
      complain(object.span(), format("{} is a mapping", what),
               format("its keys are: {}", join_names(known)));
      return false;
    }
    for (const text::Member member : object.members()) {
      const std::string_view key = member.key.text();
      if (contains(known, key)) continue;
      const auto meant = closest(key, known);
      mistakes_.push_back({.code = Code::manifest_unknown_key,
                           .where = member.key.span(),
                           .message = format("{} has no {}", what, quoted(key)),
                           .help = meant ? format("did you mean {}?", *meant)
                                         : format("its keys are: {}", join_names(known))});
    }
    return true;
  }

  static std::string join_names(std::span<const std::string_view> names) {
    std::string out;
    for (const std::string_view name : names) out += format("{}{}", out.empty() ? "" : ", ", name);
    return out;
  }

  std::optional<Value> required(Value object, std::string_view key, std::string_view help) {
    auto value = object.find(key);
    if (!value) complain(object.span(), format("{} is missing", key), std::string(help));
    return value;
  }

  void read_version() {
    const auto version = root_.find(version_key);
    if (version && version->is(Kind::number) && version->text() == "1") return;
    complain(version ? version->span() : root_.span(), "this form of egress specs is not known",
             "write capgateEgress: 1");
  }

  void read_server() {
    const auto server = required(root_, "server", "write server: NAME");
    if (!server) return;
    if (!is_plain_text(*server)) {
      return complain(server->span(), "server is a name", "write server: NAME");
    }
    out_.server = server->text();
  }

  void read_hash() {
    constexpr std::string_view help = "take it from what capgate compile printed: sha256:...";
    const auto hash = required(root_, "policyHash", help);
    if (!hash) return;
    if (!hash->is(Kind::string) || !is_hash(hash->text())) {
      return complain(hash->span(), "policyHash is sha256: and 64 hexadecimal digits",
                      std::string(help));
    }
    out_.policy_hash = hash->text();
  }

  void read_listen() {
    const auto ports = root_.find("listen");
    if (!ports) return;
    if (!ports->is(Kind::array)) {
      return complain(ports->span(), "listen is a list of ports", "write listen: [8080]");
    }
    for (const Value port : ports->elements()) {
      const auto number = port.is(Kind::number) ? core::parse_port(port.text())
                                                : Result<std::uint16_t>(std::unexpect);
      if (number) {
        declare(core::NetListen{.port = *number}, port.span());
      } else {
        complain(port.span(), "a port is a number from 1 to 65535", "write listen: [8080]");
      }
    }
  }

  std::optional<bool> read_flag(Value object, std::string_view key) {
    const auto flag = object.find(key);
    if (!flag) return std::nullopt;
    if (flag->is(Kind::boolean)) return flag->text() == "true";
    complain(flag->span(), format("{} is true or false", key), format("write {}: true", key));
    return std::nullopt;
  }

  void read_public_only() {
    if (!read_flag(root_, "publicOnly").value_or(false)) return;
    const std::string id(core::block_private_id);
    declare(core::AssertCapability{.id = id, .text = id}, root_.find("publicOnly")->span());
  }

  // ---- rules ----------------------------------------------------------------------------------

  void read_rules() {
    const auto rules = required(root_, "rules", "list what may be reached, or write rules: []");
    if (!rules) return;
    if (!rules->is(Kind::array)) {
      return complain(rules->span(), "rules is a list", std::string(rule_example));
    }
    for (const Value rule : rules->elements()) read_rule(rule);
  }

  void read_rule(Value rule) {
    if (!check_keys(rule, rule_keys, "a rule")) return;
    const auto place = required(rule, "connect", rule_example);
    if (!place) return;
    auto connect = read_endpoint(*place);
    if (!connect) return;
    const std::string base = print(core::Capability(*connect));
    NetRefinements& refine = connect->refinements;
    if (const auto read = read_word(rule, "sni", base)) refine.sni = read->sni;
    if (const auto read = read_word(rule, "proto", base)) refine.proto = read->proto;
    refine.methods = read_list(rule, "methods", base, &NetRefinements::methods);
    refine.paths = read_list(rule, "paths", base, &NetRefinements::paths);
    if (read_flag(rule, "private").value_or(false)) {
      const auto read = refined(*rule.find("private"), base, "private=true");
      refine.private_network = read && read->private_network;
    }
    check_block_private(rule, *connect);
    declare(*std::move(connect), place->span());
  }

  // HOST[:PORT] and nothing more: a refinement has a key of its own, for everyone to see.
  std::optional<NetConnect> read_endpoint(Value place) {
    const auto refuse = [&] {
      complain(place.span(), "connect is HOST or HOST:PORT", std::string(rule_example));
      return std::nullopt;
    };
    if (!is_plain_text(place)) return refuse();
    constexpr std::string_view prefix = "net:connect:";
    auto parsed = core::parse_capability(format("{}{}", prefix, place.text()), {});
    if (!parsed) {
      const auto inside = [&](std::size_t at) {
        return std::min(at < prefix.size() ? 0 : at - prefix.size(), place.text().size());
      };
      Diagnostic mistake = std::move(parsed).error();
      mistake.where = place.locate(inside(mistake.where.begin), inside(mistake.where.end));
      mistakes_.push_back(std::move(mistake));
      return std::nullopt;
    }
    const auto* connect = parsed->size() == 1 ? std::get_if<NetConnect>(&parsed->front()) : nullptr;
    if (connect == nullptr || place.text().contains('?')) return refuse();
    return *connect;
  }

  // What the grammar makes of one refinement of this endpoint; its mistakes stand at `where`.
  std::optional<NetRefinements> refined(Value where, std::string_view base,
                                        const std::string& refinement) {
    auto parsed = core::parse_capability(format("{}?{}", base, refinement), {});
    if (parsed && parsed->size() == 1) {
      if (auto* connect = std::get_if<NetConnect>(&parsed->front())) return connect->refinements;
    }
    if (parsed) {
      complain(where.span(), "this refinement cannot be read", "remove it");
    } else {
      parsed.error().where = where.span();
      mistakes_.push_back(std::move(parsed).error());
    }
    return std::nullopt;
  }

  std::optional<NetRefinements> read_word(Value rule, std::string_view key, std::string_view base) {
    const auto word = rule.find(key);
    if (!word) return std::nullopt;
    if (is_plain_text(*word))
      return refined(*word, base, format("{}={}", key, in_quotes(word->text())));
    complain(word->span(), format("{} is a word", key), format("remove {}, or name one", key));
    return std::nullopt;
  }

  std::vector<std::string> read_list(Value rule, std::string_view key, std::string_view base,
                                     std::vector<std::string> NetRefinements::* member) {
    const auto list = rule.find(key);
    if (!list) return {};
    std::vector<std::string> words;
    if (list->is(Kind::array)) {
      for (const Value item : list->elements()) {
        // A comma would make two of one.
        if (!is_plain_text(item) || item.text().contains(',')) return complain_list(item, key);
        words.emplace_back(item.text());
      }
    }
    if (words.empty()) return complain_list(*list, key);
    auto read = refined(*list, base, format("{}={}", key, in_quotes(join(words, ","))));
    return read ? std::move((*read).*member) : std::vector<std::string>();
  }

  std::vector<std::string> complain_list(Value where, std::string_view key) {
    complain(where.span(), format("{} is a list of texts", key),
             key == "methods" ? "write methods: [GET, POST]" : "write paths: [/repos/**, /user]");
    return {};
  }

  // It decides nothing, so it must not say something else than what is held.
  void check_block_private(Value rule, const NetConnect& connect) {
    const auto said = read_flag(rule, "blockPrivate");
    if (!said || connect.refinements.private_network) return;
    const bool holds = !core::names_private_endpoint(connect.endpoint.host);
    if (*said == holds) return;
    complain(rule.find("blockPrivate")->span(),
             holds ? "a name does not lead to private addresses unless its rule says private: true"
                   : "this rule names a private address, so it is reached",
             format("write blockPrivate: {}, or leave it out", holds));
  }

  Value root_;
  EgressSpec out_;
  Diagnostics mistakes_;
};

}  // namespace

core::Manifest EgressSpec::manifest() const {
  core::Manifest out;
  out.name = server;
  out.version = "0";
  out.hash = policy_hash;
  out.declared = declared;
  return out;
}

bool is_egress_spec(const text::Document& document) {
  return document.root().is(Kind::object) && document.root().find(version_key).has_value();
}

Checked<EgressSpec> read_egress_spec(const text::Document& document) {
  return Reader(document).read();
}

}  // namespace capgate::imports
