#include "cli/diff_shape.h"

#include <algorithm>
#include <array>

#include "review/artifact_diff.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::cli {
namespace {

using text::Kind;
using text::Value;

// As the hooks and the clients look for them.
bool is_policy_name(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  if (name == "capgate.lock") return true;
  return std::ranges::any_of(
      std::to_array<std::string_view>({"capgate.json", "capgate.yaml", "capgate.yml"}),
      [&](std::string_view known) {
        return name == known ||
               (name.ends_with(known) && name.substr(0, name.size() - known.size()).ends_with('.'));
      });
}

bool has_any(Value object, std::initializer_list<std::string_view> keys) {
  return object.is(Kind::object) &&
         std::ranges::any_of(keys, [&](auto key) { return object.find(key).has_value(); });
}

bool is_manifest(Value root) {
  if (root.find("serverCapabilities")) return true;
  const auto tools = root.find("tools");
  if (!tools || !tools->is(Kind::array)) return false;
  for (const Value tool : tools->elements()) {
    if (has_any(tool, {"capabilities"})) return true;
  }
  return false;
}

bool is_lock(Value servers) {
  if (!servers.is(Kind::array)) return false;
  for (const Value entry : servers.elements()) {
    if (has_any(entry, {"policy", "grants"})) return true;
  }
  return false;
}

// Other programs have `servers` too, with keys of their own and a command that is one text.
bool is_entries(Value servers) {
  if (!servers.is(Kind::object)) return false;
  for (const text::Member member : servers.members()) {
    const Value entry = member.value;
    if (has_any(entry, {"manifest", "capabilities", "sandbox", "variables", "secrets", "seal"})) {
      return true;
    }
    const auto command = entry.is(Kind::object) ? entry.find("command") : std::nullopt;
    if (command && command->is(Kind::array)) return true;
  }
  return false;
}

// Others speak of provenance too.
bool is_compiled(const text::Document& document) {
  return review::is_artifact(document) &&
         has_any(*document.root().find("provenance"),
                 {"target", "manifestHash", "policyHash", "compiler"});
}

bool has_shape(const Checked<text::Document>& document) {
  if (!document || !document->root().is(Kind::object)) return false;
  const Value root = document->root();
  const auto servers = root.find("servers");
  return is_compiled(*document) || is_manifest(root) ||
         (servers && (is_lock(*servers) || is_entries(*servers)));
}

}  // namespace

bool is_policy(const ReadSource& source) {
  if (source.is_nothing) return false;
  // In both syntaxes, whatever its name says: names change, and standard input has none.
  return is_policy_name(source.file) || has_shape(text::parse_json(source.text)) ||
         has_shape(text::parse_yaml(source.text));
}

}  // namespace capgate::cli
