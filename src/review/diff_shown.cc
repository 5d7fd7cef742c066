#include "review/diff_shown.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "core/describe.h"
#include "core/limits.h"

namespace capgate::review {
namespace {

using core::Capability;
using core::GrantChange;
using Kind = GrantChange::Kind;

class Shower {
 public:
  explicit Shower(const ServerDiff& server) : server_(server) {}

  ShownChange show(const GrantChange& change) const {
    const Capability& subject = change.subject();
    ShownChange out{.kind = change.kind,
                    .is_grant = !std::holds_alternative<core::LimitCapability>(subject) &&
                                !std::holds_alternative<core::AssertCapability>(subject),
                    .sentence = named(sentence(change)),
                    .capability = named(print(subject)),
                    .before = change.before ? named(print(*change.before)) : "",
                    .after = change.after ? named(print(*change.after)) : "",
                    .places = {},
                    .side = change.side()};
    const DiffSide& side =
        change.side() == GrantChange::Side::after ? server_.after : server_.before;
    for (const std::uint32_t origin : change.origins) {
      if (side.manifest == nullptr || origin >= side.manifest->declared.size()) continue;
      out.places.push_back(place(side, side.manifest->declared[origin]));
    }
    return out;
  }

 private:
  [[nodiscard]] std::string named(const std::string& text) const {
    return server_.symbols == nullptr ? text : server_.symbols->show(text);
  }

  static ShownPlace place(const DiffSide& side, const core::Declared& declared) {
    ShownPlace out{.name = {}, .file = side.file, .position = {}, .end = {}, .tool = {}};
    if (declared.tool != core::Declared::whole_server) out.tool = side.manifest->owner(declared);
    if (side.source == nullptr || declared.where == Span::nowhere()) return out;
    out.name = side.source->name();
    out.position = side.source->position(declared.where.begin);
    out.end = side.source->position(declared.where.end);
    return out;
  }

  static std::string sentence(const GrantChange& change) {
    const std::string words = describe(change.subject());
    if (std::holds_alternative<core::AssertCapability>(change.subject())) {
      if (change.before && change.after)
        return format("{} (before, it promised something else)", words);
      return format("{} {}", change.kind == Kind::narrowed ? "now" : "no longer", words);
    }
    if (std::holds_alternative<core::LimitCapability>(change.subject())) {
      return limit_sentence(change);
    }
    if (change.kind != Kind::narrowed) return format("may now {}", words);
    if (!change.after) return format("may no longer {}", words);
    return format("may no longer {}; what is left: {}", words, describe(*change.after));
  }

  // What the manifest does not state is kept to the default, where there is one.
  static std::string limit_sentence(const GrantChange& change) {
    const auto usual = default_limit(std::get<core::LimitCapability>(change.subject()).kind);
    if (change.before && change.after) {
      return format("may now {} (before: {})", describe(*change.after),
                    limit_value(*change.before));
    }
    if (change.after) {
      if (!usual) return format("is now kept to a limit: {}", describe(*change.after));
      return format("may now {} (before: {}, the default)", describe(*change.after),
                    limit_value(*usual));
    }
    if (!usual) return format("is no longer kept to a limit: {}", describe(*change.before));
    return format("may now {}, the default (before: {})", describe(*usual),
                  limit_value(*change.before));
  }

  static std::string limit_value(const Capability& limit) {
    return core::print_limit_value(std::get<core::LimitCapability>(limit));
  }

  const ServerDiff& server_;
};

constexpr std::size_t longest_shown = 400;

std::size_t start_of_character(std::string_view text, std::size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

// From `start` on.
std::string shortened(std::string_view text, std::size_t start = 0) {
  const std::string_view rest = text.substr(start);
  const std::string_view before = start == 0 ? "" : "...";
  if (rest.size() <= longest_shown) return format("{}{}", before, rest);
  const std::size_t end = start_of_character(rest, longest_shown);
  return format("{}{}... ({} bytes)", before, rest.substr(0, end), text.size());
}

// Where two texts that are too long to be shown begin to differ, with some words before it.
std::size_t first_shown(std::string_view before, std::string_view after) {
  constexpr std::size_t words_before = 40;
  if (std::max(before.size(), after.size()) <= longest_shown) return 0;
  const auto [a, b] = std::ranges::mismatch(before, after);
  const auto same = static_cast<std::size_t>(a - before.begin());
  return same <= words_before ? 0 : start_of_character(before, same - words_before);
}

Verdict verdict_of(const core::ManifestDiff& diff) {
  if (diff.is_wider()) return Verdict::more;
  if (diff.has_moved()) return Verdict::moved;
  return diff.is_empty() ? Verdict::same : Verdict::less;
}

}  // namespace

bool ShownServer::is_changed() const {
  return is_new || is_gone || !changes.empty() || !tools.empty() || !parts.empty();
}

void ShownServer::add(ShownPart part) {
  using enum ShownPart::Kind;
  switch (part.kind) {
    case widened: verdict = Verdict::more; break;
    case differs: verdict = std::max(verdict, Verdict::unclear); break;
    case narrowed: verdict = std::max(verdict, Verdict::less); break;
    case told: break;
  }
  parts.push_back(std::move(part));
}

std::string_view kind_name(ShownPart::Kind kind) {
  using enum ShownPart::Kind;
  switch (kind) {
    case widened: return "widened";
    case differs: return "differs";
    case narrowed: return "narrowed";
    case told: return "told";
  }
  return {};
}

std::string part_words(const ShownPart& part) {
  std::string out = part.part;
  if (!part.before.empty() && !part.after.empty()) {
    const std::size_t start = first_shown(part.before, part.after);
    out += format(": {} -> {}", shortened(part.before, start), shortened(part.after, start));
  } else if (!part.before.empty() || !part.after.empty()) {
    out += format(": {}", shortened(part.after.empty() ? part.before : part.after));
  }
  return out;
}

std::string part_cause(const ShownPart& part) {
  if (part.capability.empty()) return part.why;
  std::string out = part.capability;
  if (!part.place.empty()) out += format(" at {}", part.place);
  return out;
}

ShownServer show(const ServerDiff& server) {
  ShownServer out{.name = server.name,
                  .file = server.after.file.empty() ? server.before.file : server.after.file,
                  .is_new = server.before.manifest == nullptr,
                  .is_gone = server.after.manifest == nullptr,
                  .verdict = verdict_of(server.diff),
                  .changes = {},
                  .tools = {}};
  const Shower shower(server);
  for (const GrantChange& change : server.diff.server) out.changes.push_back(shower.show(change));
  for (const core::ToolChange& tool : server.diff.tools) {
    ShownTool shown{.name = tool.tool, .presence = tool.presence, .changes = {}};
    for (const GrantChange& change : tool.changes) shown.changes.push_back(shower.show(change));
    out.tools.push_back(std::move(shown));
  }
  return out;
}

std::string verdict_words(const ShownServer& server, std::string_view name) {
  if (server.is_new) return format("adds the server {}", name);
  if (server.is_gone) return format("removes the server {}", name);
  switch (server.verdict) {
    case Verdict::more: return format("lets the server {} do more", name);
    case Verdict::unclear:
      return format("may let the server {} do more: what differs cannot be judged", name);
    case Verdict::moved:
      return format("lets tools of the server {} do what only others of it could", name);
    case Verdict::less: return format("does not let the server {} do more", name);
    case Verdict::same: return format("does not alter what the server {} may do", name);
  }
  return {};
}

std::vector<std::string> tools_of(const ShownChange& change) {
  std::vector<std::string> out;
  for (const ShownPlace& place : change.places) {
    const std::string name = place.tool.empty() ? "every tool" : place.tool;
    if (!contains(out, name)) out.push_back(name);
    if (out.size() == 100) break;  // a line that nobody reads, and a search that would grow
  }
  return out;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::widened: return "widened";
    case Kind::narrowed: return "narrowed";
    case Kind::moved: return "moved";
  }
  return {};
}

}  // namespace capgate::review
