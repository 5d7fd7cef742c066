// Lines that stand at the wrong place, or for nothing.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "review/covers.h"
#include "review/lint_detail.h"

namespace capgate::review::detail {
namespace {

using core::Capability;
using core::Declared;

// Clocks, limits and assertions grant no access.
bool grants_access(const Capability& capability) {
  return !std::holds_alternative<core::ClockCapability>(capability) &&
         !std::holds_alternative<core::LimitCapability>(capability) &&
         !std::holds_alternative<core::AssertCapability>(capability);
}

// The declarations of one owner stand together: [begin, end).
struct Owned {
  std::uint32_t tool = Declared::whole_server;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

std::vector<Owned> owners(const core::Manifest& manifest) {
  std::vector<Owned> out;
  const auto& declared = manifest.declared;
  for (std::uint32_t i = 0; i < declared.size(); ++i) {
    if (out.empty() || out.back().tool != declared[i].tool) {
      out.push_back({.tool = declared[i].tool, .begin = i, .end = i});
    }
    out.back().end = i + 1;
  }
  return out;
}

void say_redundant(Linter& linter, std::uint32_t line, std::uint32_t by) {
  const Declared& other = linter.manifest().declared[by];
  const bool is_server = other.tool == Declared::whole_server;
  const auto text = shown(print(linter.manifest().declared[line].capability));
  const auto wider = shown(print(other.capability));
  linter.about(line, {.rule = rule::redundant,
                      .message = text == wider ? format("{} is declared already{}", text,
                                                        is_server ? " for the whole server" : "")
                                               : format("{} is part of {}{}", text, wider,
                                                        is_server ? " of the whole server" : ""),
                      .help = "remove it, or narrow the other one"});
}

// A line of a pair of equal ones is redundant if it is the later one.
void lint_owner(Linter& linter, const Owned& owned, const CoverIndex& server) {
  const auto& declared = linter.manifest().declared;
  const std::string_view home = linter.manifest().home;
  CoverIndex own(home);
  for (std::uint32_t i = owned.begin; i < owned.end; ++i) own.add(declared[i].capability, i);
  for (std::uint32_t i = owned.begin; i < owned.end; ++i) {
    const Capability& capability = declared[i].capability;
    const bool is_server = owned.tool == Declared::whole_server;
    const auto by_server = is_server ? std::nullopt : server.find(capability);
    const auto by_own = by_server ? std::nullopt : own.find(capability, i);
    if (by_server) {
      say_redundant(linter, i, *by_server);
    } else if (by_own && (*by_own < i || !covers(capability, declared[*by_own].capability, home))) {
      say_redundant(linter, i, *by_own);
    }
  }
}

// What the server needs to start, wherever its tools work.
bool is_of_the_runtime(const Capability& capability) {
  const auto* fs = std::get_if<core::FsCapability>(&capability);
  return fs != nullptr && is_system_path(fs->path.base);
}

void lint_unused(Linter& linter, const Owned& server) {
  const auto& declared = linter.manifest().declared;
  CoverIndex of_server(linter.manifest().home);
  CoverIndex of_tools(linter.manifest().home);
  for (std::uint32_t i = server.begin; i < server.end; ++i) {
    of_server.add(declared[i].capability, i);
  }
  std::array<bool, std::variant_size_v<Capability>> kinds{};
  std::vector<bool> is_used(server.end);
  for (std::uint32_t i = server.end; i < declared.size(); ++i) {
    const Capability& capability = declared[i].capability;
    kinds.at(capability.index()) = true;
    of_tools.add(capability, i);
    if (const auto by = of_server.find(capability)) is_used[*by] = true;
  }
  for (std::uint32_t i = server.begin; i < server.end; ++i) {
    const Capability& capability = declared[i].capability;
    if (is_used[i] || !kinds.at(capability.index()) || !grants_access(capability)) continue;
    if (is_of_the_runtime(capability) || of_tools.find(capability)) continue;
    linter.about(i, {.rule = rule::unused_server_grant,
                     .message = format("no tool declares {}", shown(print(capability))),
                     .help = "move it to the tool that needs it, or take it away"});
  }
}

void lint_tools(Linter& linter, const std::vector<Owned>& all) {
  const core::Manifest& manifest = linter.manifest();
  std::vector<bool> declares(manifest.tools.size());
  bool any = false;
  bool server = false;
  for (const Owned& owned : all) {
    if (owned.tool == Declared::whole_server) {
      for (std::uint32_t i = owned.begin; i < owned.end; ++i) {
        server = server || grants_access(manifest.declared[i].capability);
      }
    } else {
      declares[owned.tool] = any = true;
    }
  }
  if (!any) {
    if (!server || manifest.tools.size() < 2) return;
    linter.about_all(manifest.declared.front().where,
                     {.rule = rule::tools_not_told_apart,
                      .message = format("each of the {} tools has every grant of the server",
                                        manifest.tools.size()),
                      .help = "declare at each tool what it needs"});
    return;
  }
  for (std::uint32_t i = 0; i < manifest.tools.size(); ++i) {
    if (declares[i]) continue;
    linter.about_tool(
        i, {.rule = rule::tool_without_capabilities,
            .message = format("tool {} declares no capability", quoted(manifest.tools[i].name)),
            .help = "right if it only computes; else declare what it needs"});
  }
}

}  // namespace

void lint_order(Linter& linter) {
  const core::Manifest& manifest = linter.manifest();
  const std::vector<Owned> all = owners(manifest);
  lint_tools(linter, all);
  if (all.empty()) return;
  CoverIndex server(manifest.home);
  const bool has_server = all.front().tool == Declared::whole_server;
  if (has_server) {
    for (std::uint32_t i = 0; i < all.front().end; ++i) {
      server.add(manifest.declared[i].capability, i);
    }
    lint_unused(linter, all.front());
  }
  for (const Owned& owned : all) lint_owner(linter, owned, server);
}

}  // namespace capgate::review::detail
