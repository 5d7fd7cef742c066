// What tools say of themselves, against what they declare.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "core/rights.h"
#include "core/scope.h"
#include "review/lint_detail.h"

namespace capgate::review::detail {
namespace {

using text::Kind;
using text::Value;

struct Hints {
  std::optional<bool> read_only;
  std::optional<bool> destructive;
  std::optional<bool> open_world;
};

std::optional<bool> read_hint(Value annotations, std::string_view key) {
  const auto value = annotations.find(key);
  if (!value || !value->is(Kind::boolean)) return std::nullopt;
  return to_lower(value->text()) == "true";
}

// One for each tool of the manifest, in its order.
std::vector<Hints> read_hints(const text::Document& document) {
  std::vector<Hints> out;
  const auto tools = document.root().find("tools");
  if (!tools || !tools->is(Kind::array)) return out;
  for (const Value tool : tools->elements()) {
    out.emplace_back();
    const auto annotations = tool.is(Kind::object) ? tool.find("annotations") : std::nullopt;
    if (!annotations || !annotations->is(Kind::object)) continue;
    out.back() = {.read_only = read_hint(*annotations, "readOnlyHint"),
                  .destructive = read_hint(*annotations, "destructiveHint"),
                  .open_world = read_hint(*annotations, "openWorldHint")};
  }
  return out;
}

bool changes_something(const core::Capability& capability) {
  if (const auto* fs = std::get_if<core::FsCapability>(&capability)) {
    return core::is_writing(fs->actions);
  }
  const auto* net = std::get_if<core::NetConnect>(&capability);
  constexpr std::string_view harmless[] = {"GET", "HEAD", "OPTIONS"};
  return net != nullptr &&
         std::ranges::any_of(net->refinements.methods, [&](const std::string& method) {
           return std::ranges::find(harmless, method) == std::ranges::end(harmless);
         });
}

bool can_remove(const core::Capability& capability) {
  const auto* fs = std::get_if<core::FsCapability>(&capability);
  return fs != nullptr && core::rights_of(fs->actions).has(core::FileRights::remove);
}

bool leaves_the_host(const core::Capability& capability) {
  const auto* net = std::get_if<core::NetConnect>(&capability);
  return net != nullptr && !core::names_private_endpoint(net->endpoint.host);
}

void compare(Linter& linter, std::uint32_t index, const Hints& hints) {
  const core::Declared& declared = linter.manifest().declared[index];
  const core::Capability& capability = declared.capability;
  const std::string tool = quoted(linter.manifest().tools[declared.tool].name);
  const std::string line = shown(print(capability));
  if (hints.read_only == true && changes_something(capability)) {
    linter.about(index,
                 {.rule = rule::read_only_writes,
                  .message = format("tool {} has readOnlyHint: true and declares {}", tool, line),
                  .help = "take the annotation away, or declare what reads only"});
  } else if (hints.destructive == false && can_remove(capability)) {
    linter.about(
        index, {.rule = rule::not_destructive_removes,
                .message = format("tool {} has destructiveHint: false and declares {}", tool, line),
                .help = "declare fs:create if it only adds, or take the annotation away"});
  }
  if (hints.open_world == false && leaves_the_host(capability)) {
    linter.about(index,
                 {.rule = rule::closed_world_network,
                  .message = format("tool {} has openWorldHint: false and declares {}", tool, line),
                  .help = "take the annotation away, or the connection"});
  }
}

}  // namespace

void lint_annotations(Linter& linter) {
  const std::vector<Hints> hints = read_hints(linter.document());
  const auto& declared = linter.manifest().declared;
  for (std::uint32_t i = 0; i < declared.size(); ++i) {
    if (declared[i].tool < hints.size()) compare(linter, i, hints[declared[i].tool]);
  }
}

}  // namespace capgate::review::detail
