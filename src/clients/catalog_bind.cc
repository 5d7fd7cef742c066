// How the words and variables that a server is started with bind the variables of its manifest.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/catalog.h"
#include "clients/catalog_rules.h"
#include "core/host.h"

namespace capgate::clients {
namespace {

using RuleKind = BindingRule::Kind;

Diagnostic mistake(std::string message, std::string help) {
  return {.code = Code::cap_variable,
          .where = Span::nowhere(),
          .message = std::move(message),
          .help = std::move(help)};
}

std::string absolute(std::string_view path, const CommandContext& context) {
  if (path == "~") return context.home;
  std::filesystem::path whole;
  if (path.starts_with("~/")) {
    whole = std::filesystem::path(context.home) / path.substr(2);
  } else {
    whole = std::filesystem::path(context.directory) / path;
  }
  std::string normal = whole.lexically_normal();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

struct Address {
  std::vector<std::string> hosts;
  std::string port;
};

std::string_view usual_port(std::string_view scheme) {
  constexpr std::pair<std::string_view, std::string_view> ports[] = {
      {"https", "443"},  {"http", "80"},    {"postgresql", "5432"}, {"postgres", "5432"},
      {"mysql", "3306"}, {"redis", "6379"}, {"rediss", "6379"},     {"mongodb", "27017"},
  };
  for (const auto& [name, port] : ports) {
    if (name == scheme) return port;
  }
  return {};
}

// One of the hosts of an address, which may have several with commas between: HOST[:PORT].
bool add_host(std::string_view text, std::string_view usual, Address& address) {
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && !text.substr(colon).contains(']');
  const std::string_view port = has_port ? text.substr(colon + 1) : usual;
  const auto host = core::parse_host(text.substr(0, has_port ? colon : text.size()));
  if (!host || host->kind == core::HostPattern::Kind::any ||
      host->kind == core::HostPattern::Kind::subdomains || !core::parse_port(port)) {
    return false;
  }
  // Two ports would be taken for every pair of host and port.
  if (!address.port.empty() && address.port != port) return false;
  address.port = port;
  // The machine's own loopback has one name in the language, whichever way it is written.
  const bool is_loopback = host->text == "127.0.0.1" || host->text == "::1";
  address.hosts.push_back(is_loopback ? "localhost" : print(*host));
  return true;
}

std::optional<Address> parse_address(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view usual = usual_port(to_lower(url.substr(0, colon)));
  if (usual.empty()) return std::nullopt;
  std::string_view authority = url.substr(colon + 3);
  authority = authority.substr(0, find_any(authority, "/?#\\"));
  authority = authority.substr(authority.rfind('@') + 1);
  Address address;
  for (const std::string_view host : EachPart(authority, ',')) {
    if (!add_host(host, usual, address)) return std::nullopt;
  }
  return address;
}

class Binder {
 public:
  Binder(const CatalogEntry& entry, const CommandContext& context)
      : entry_(entry), context_(context) {}

  Checked<core::Bindings> bind() {
    // A word of the command line says more than a variable, as it does for most servers.
    bind_arguments();
    for (const BindingRule& rule : entry_.environment) {
      const auto value = variable(rule.source);
      if (value && !is_bound_by(rule)) apply(rule, *value, rule.source);
    }
    for (const auto& [name, value] : entry_.defaults) {
      if (!is_bound(name)) add(name, with_home(value));
    }
    for (const std::string& name : entry_.variables) {
      if (is_bound(name) || contains(entry_.optional, name)) continue;
      mistakes_.push_back(mistake(format("{} of {} is not known", name, entry_.name),
                                  format("it comes from {}", where_bound(entry_, name))));
    }
    if (!mistakes_.empty()) return std::unexpected(std::move(mistakes_));
    std::erase_if(bindings_, [&](const core::Binding& binding) {
      return !contains(entry_.variables, binding.name);
    });
    return std::move(bindings_);
  }

 private:
  [[nodiscard]] const BindingRule* argument_rule(std::string_view source) const {
    const auto rule = std::ranges::find(entry_.arguments, source, &BindingRule::source);
    return rule == entry_.arguments.end() ? nullptr : &*rule;
  }

  [[nodiscard]] bool counts_places() const {
    return std::ranges::any_of(
        entry_.arguments, [](const BindingRule& rule) { return !rule.source.starts_with('-'); });
  }

  void bind_arguments() {
    std::size_t place = 0;
    bool options = true;
    for (std::size_t i = 0; i < context_.arguments.size(); ++i) {
      const std::string& word = context_.arguments[i];
      if (options && word == "--") {
        options = false;
      } else if (options && word.size() > 1 && word.starts_with('-')) {
        bind_option(word, i);
      } else {
        bind_place(place++, word);
      }
    }
  }

  void bind_place(std::size_t place, const std::string& word) {
    const BindingRule* rule = argument_rule(std::to_string(place));
    if (rule == nullptr) rule = argument_rule("rest");
    if (rule != nullptr) apply(*rule, word, format("argument {}", place + 1));
  }

  // `at` is the option's place; moves on where the option has its value in the next word.
  void bind_option(const std::string& word, std::size_t& at) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const BindingRule* rule = argument_rule(name);
    if (rule == nullptr) {
      if (!counts_places()) return;
      mistakes_.push_back(mistake(format("the catalog does not know the option {} of {}",
                                         capgate::quoted(name), entry_.name),
                                  "bind the variables of this server by hand"));
      return;
    }
    if (rule->kind == RuleKind::flag) return;
    if (equals != std::string::npos) return apply(*rule, word.substr(equals + 1), name);
    if (at + 1 == context_.arguments.size()) return;  // the server's to complain about
    apply(*rule, context_.arguments[++at], name);
  }

  // No value is repeated in a message: the address of a database holds a password.
  void apply(const BindingRule& rule, std::string_view value, std::string_view where) {
    if (rule.variable.empty() || value.empty()) return;
    if (value.contains("${")) {  // ${workspaceFolder}: filled in when the client starts the server
      mistakes_.push_back(mistake(
          format("{} is a variable of the client, whose value is not known here", quoted(value)),
          "write the path or the address itself"));
      return;
    }
    if (rule.kind == RuleKind::url) {
      const auto address = parse_address(value);
      if (!address) {
        mistakes_.push_back(mistake(format("{} of {} is not an address", where, entry_.name),
                                    "write SCHEME://HOST:PORT/..."));
        return;
      }
      for (const std::string& host : address->hosts) add(format("{}_HOST", rule.variable), host);
      add(format("{}_PORT", rule.variable), address->port);
      return;
    }
    if (rule.kind == RuleKind::text) return add(rule.variable, std::string(value));
    const std::string path = absolute(value, context_);
    add(rule.variable, rule.kind == RuleKind::directory
                           ? std::filesystem::path(path).parent_path().string()
                           : path);
  }

  [[nodiscard]] bool is_bound_by(const BindingRule& rule) const {
    return std::ranges::any_of(
        bindings_, [&](const core::Binding& binding) { return binds(rule, binding.name); });
  }

  [[nodiscard]] bool is_bound(std::string_view name) const {
    return std::ranges::any_of(bindings_,
                               [&](const core::Binding& binding) { return binding.name == name; });
  }

  void add(std::string name, std::string value) {
    auto binding = std::ranges::find(bindings_, name, &core::Binding::name);
    if (binding == bindings_.end()) {
      binding = bindings_.insert(bindings_.end(), {.name = std::move(name)});
    }
    if (!contains(binding->values, value)) binding->values.push_back(std::move(value));
  }

  [[nodiscard]] std::optional<std::string_view> variable(std::string_view name) const {
    for (const std::string& assignment : context_.environment) {
      const std::string_view text = assignment;
      if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
        return text.substr(name.size() + 1);
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string with_home(std::string_view value) const {
    constexpr std::string_view home = "${HOME}";
    if (!value.starts_with(home)) return std::string(value);
    return context_.home + std::string(value.substr(home.size()));
  }

  const CatalogEntry& entry_;
  const CommandContext& context_;
  core::Bindings bindings_;
  Diagnostics mistakes_;
};

std::string in_words(const BindingRule& rule) {
  if (rule.source == "rest") return "the arguments";
  if (rule.source.starts_with('-')) return format("the option {}", rule.source);
  return format("argument {}", *parse_decimal(rule.source) + 1);
}

}  // namespace

Checked<core::Bindings> bind_command(const CatalogEntry& entry, const CommandContext& context) {
  return Binder(entry, context).bind();
}

std::string where_bound(const CatalogEntry& entry, std::string_view variable) {
  std::vector<std::string> places;
  for (const BindingRule& rule : entry.arguments) {
    if (binds(rule, variable)) places.push_back(in_words(rule));
  }
  for (const BindingRule& rule : entry.environment) {
    if (binds(rule, variable)) places.push_back(format("the variable {}", rule.source));
  }
  return join(places, " or ");
}

}  // namespace capgate::clients
