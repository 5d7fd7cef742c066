#include "clients/catalog.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/catalog_rules.h"
#include "text/json.h"

// From catalog_image.S.
extern "C" {
extern const char capgate_catalog_image[];
extern const char capgate_catalog_image_end[];
}

namespace capgate::clients {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::string_view entry_keys[] = {"name",     "packages", "arguments", "environment",
                                           "defaults", "optional", "notes",     "manifest"};

bool is_entry_name(std::string_view name) {
  return !name.empty() && is_lower(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

bool is_place(std::string_view word) { return word == "rest" || parse_decimal(word).has_value(); }

bool is_option(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') && word != "--" && !word.contains('=');
}

class Reader {
 public:
  explicit Reader(Value root) : root_(root) {}

  Checked<CatalogEntry> read() {
    if (!root_.is(Kind::object)) {
      complain(root_, "an entry of the catalog is an object");
      return std::unexpected(std::move(mistakes_));
    }
    for (const Member member : root_.members()) {
      if (!contains(entry_keys, member.key.text())) complain(member.key, "unknown key");
    }
    read_name();
    read_packages();
    read_rules("arguments", entry_.arguments);
    read_rules("environment", entry_.environment);
    read_defaults();
    read_texts("optional", entry_.optional);
    read_texts("notes", entry_.notes);
    read_manifest();
    if (mistakes_.empty()) check_variables();
    if (!mistakes_.empty()) return std::unexpected(std::move(mistakes_));
    return std::move(entry_);
  }

 private:
  void complain(Value where, std::string message) {
    mistakes_.push_back({.code = Code::manifest_shape,
                         .where = where.span(),
                         .message = std::move(message),
                         .help = "see docs/catalog.md"});
  }

  void read_name() {
    const auto name = root_.find("name");
    if (!name || !name->is(Kind::string) || !is_entry_name(name->text())) {
      complain(name.value_or(root_), "name is a word of lower-case letters, digits and dashes");
      return;
    }
    entry_.name = name->text();
  }

  void read_packages() {
    const auto list = root_.find("packages");
    if (!list || !list->is(Kind::array) || list->count() == 0) {
      complain(list.value_or(root_), "packages is a list with at least one package");
      return;
    }
    for (const Value item : list->elements()) {
      const auto package = parse_package(item.is(Kind::string) ? item.text() : "");
      if (!package) {
        complain(item, package.error().message);
      } else if (std::ranges::any_of(entry_.packages, [&](const Package& other) {
                   return other.registry == package->registry && other.name == package->name;
                 })) {
        complain(item, "this package is already there: write one range");
      } else {
        entry_.packages.push_back(*package);
      }
    }
  }

  void read_rules(std::string_view key, std::vector<BindingRule>& rules) {
    const auto object = root_.find(key);
    if (!object) return;
    if (!object->is(Kind::object)) return complain(*object, format("{} is an object", key));
    for (const Member member : object->members()) {
      BindingRule rule{.source = std::string(member.key.text())};
      const bool is_argument = key == "arguments";
      if (is_argument ? !is_place(rule.source) && !is_option(rule.source)
                      : !is_variable_name(rule.source)) {
        complain(member.key, is_argument ? "this is \"rest\", a place or an option"
                                         : "this is not the name of a variable");
      }
      if (read_rule(member.value, rule)) {
        const bool nothing = rule.variable.empty();
        if (nothing && (!is_argument || !is_option(rule.source))) {
          complain(member.value, "only an option may bind nothing");
        }
        rules.push_back(std::move(rule));
      } else {
        complain(member.value,
                 "write \"NAME\", {\"directory\": \"NAME\"}, {\"url\": \"NAME\"}, {\"text\": "
                 "\"NAME\"}, null or true");
      }
    }
  }

  static bool read_rule(Value value, BindingRule& rule) {
    if (value.is(Kind::null)) {
      rule.kind = BindingRule::Kind::ignored;
      return true;
    }
    if (value.is(Kind::boolean)) {
      rule.kind = BindingRule::Kind::flag;
      return value.text() == "true";
    }
    if (value.is(Kind::object) && value.count() == 1) {
      const Member member = *value.members().begin();
      const std::string_view kind = member.key.text();
      if (kind == "directory") rule.kind = BindingRule::Kind::directory;
      if (kind == "url") rule.kind = BindingRule::Kind::url;
      if (kind == "text") rule.kind = BindingRule::Kind::text;
      if (rule.kind == BindingRule::Kind::path) return false;
      value = member.value;
    }
    if (!value.is(Kind::string) || !is_variable_name(value.text())) return false;
    rule.variable = value.text();
    return true;
  }

  void read_defaults() {
    const auto object = root_.find("defaults");
    if (!object) return;
    if (!object->is(Kind::object)) return complain(*object, "defaults is an object");
    for (const Member member : object->members()) {
      if (!member.value.is(Kind::string) || member.value.text().empty()) {
        complain(member.value, "a default is a text");
        continue;
      }
      entry_.defaults.emplace_back(member.key.text(), member.value.text());
    }
  }

  void read_texts(std::string_view key, std::vector<std::string>& texts) {
    const auto list = root_.find(key);
    if (!list) return;
    if (!list->is(Kind::array)) return complain(*list, format("{} is a list of texts", key));
    for (const Value item : list->elements()) {
      if (!item.is(Kind::string) || item.text().empty()) {
        complain(item, format("{} is a list of texts", key));
      } else {
        texts.emplace_back(item.text());
      }
    }
  }

  void read_manifest() {
    const auto manifest = root_.find("manifest");
    if (!manifest || !manifest->is(Kind::object)) {
      complain(manifest.value_or(root_), "manifest is an ordinary manifest, an object");
      return;
    }
    const Span span = manifest->span();
    entry_.manifest = root_.document().source().substr(span.begin, span.end - span.begin);
    for_each_capability(*manifest, [&](Value capability) {
      for (const std::string_view name : core::variables_in(capability.text())) {
        if (!is_host_variable(name)) entry_.variables.emplace_back(name);
      }
    });
    sort_and_deduplicate(entry_.variables);
  }

  // Every variable can be bound, and every rule binds one that is used.
  void check_variables() {
    for (const std::string& variable : entry_.variables) {
      const bool has_default = std::ranges::any_of(
          entry_.defaults, [&](const auto& item) { return item.first == variable; });
      if (!has_default && where_bound(entry_, variable).empty()) {
        complain(*root_.find("manifest"), format("nothing binds ${{{}}}", variable));
      }
    }
    for (const auto* rules : {&entry_.arguments, &entry_.environment}) {
      for (const BindingRule& rule : *rules) {
        if (!rule.variable.empty() && std::ranges::none_of(entry_.variables, [&](const auto& name) {
              return binds(rule, name);
            })) {
          complain(root_, format("the manifest does not use ${{{}}}", rule.variable));
        }
      }
    }
    for (const auto& [name, value] : entry_.defaults) {
      if (!contains(entry_.variables, name)) {
        complain(*root_.find("defaults"), format("the manifest does not use ${{{}}}", name));
      }
    }
  }

  Value root_;
  CatalogEntry entry_;
  Diagnostics mistakes_;
};

std::vector<CatalogEntry> parse_all() {
  std::vector<CatalogEntry> entries;
  for (const std::string_view text : catalog_texts()) {
    auto entry = parse_entry(std::string(text));
    CAPGATE_ASSERT(entry.has_value());  // `capgate catalog test` says which, and why
    entries.push_back(*std::move(entry));
  }
  std::ranges::sort(entries, {}, &CatalogEntry::name);
  return entries;
}

}  // namespace

Checked<CatalogEntry> parse_entry(std::string text) {
  const auto document = text::parse_json(std::move(text));
  if (!document) return std::unexpected(document.error());
  return Reader(document->root()).read();
}

std::vector<std::string_view> catalog_texts() {
  std::string_view rest(capgate_catalog_image, static_cast<std::size_t>(capgate_catalog_image_end -
                                                                        capgate_catalog_image));
  std::vector<std::string_view> texts;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    texts.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return texts;
}

std::span<const CatalogEntry> catalog() {
  static const std::vector<CatalogEntry> entries = parse_all();
  return entries;
}

const CatalogEntry* find_entry(std::string_view name) {
  const auto all = catalog();
  const auto entry = std::ranges::find(all, name, &CatalogEntry::name);
  return entry == all.end() ? nullptr : &*entry;
}

const CatalogEntry* find_entry(const Package& package, std::string_view version) {
  for (const CatalogEntry& entry : catalog()) {
    for (const Package& known : entry.packages) {
      if (known.registry != package.registry || known.name != package.name) continue;
      if (version.empty() || in_range(known.registry, known.range, version)) return &entry;
    }
  }
  return nullptr;
}

}  // namespace capgate::clients
