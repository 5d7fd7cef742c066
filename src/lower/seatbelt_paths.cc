#include "lower/seatbelt_paths.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/seatbelt_text.h"

namespace capgate::lower::seatbelt {
namespace {

constexpr std::string_view system_programs[] = {"/bin", "/usr/bin"};

// Prefixes that many programs share: of these only the libraries.
constexpr std::string_view shared_prefixes[] = {"/",    "/usr",       "/usr/local",
                                                "/opt", "/opt/local", "/opt/homebrew"};

std::string_view parent_of(std::string_view path) {
  const std::string_view parent = path.substr(0, path.rfind('/'));
  return parent.empty() ? "/" : parent;
}

// A directory whose every file may be read and started, and that holds nothing else.
bool is_own_prefix(std::string_view prefix, std::string_view home) {
  const std::string_view spelled = short_spelling(prefix);
  return !contains(shared_prefixes, prefix) && !core::refused_scope(spelled, home) &&
         core::credential_at(spelled, home) == nullptr &&
         core::credentials_below(spelled, home).empty();
}

// Homebrew keeps each package in Cellar/NAME/VERSION and links to it from opt/NAME: a program loads
// libraries of other packages by those links.
void add_homebrew(Programs& out, std::string_view program) {
  const std::size_t cellar = program.find("/Cellar/");
  if (cellar == std::string_view::npos) return;
  const std::string_view root = program.substr(0, cellar);
  out.library_regexes.push_back(format("^{}/Cellar/[^/]+/[^/]+/lib(/.*)?$", escape_regex(root)));
  out.links.push_back(format("{}/opt", root));
  out.links.push_back(format("{}/lib", root));
  out.libraries.push_back(format("{}/etc/ca-certificates", root));
  out.libraries.push_back(format("{}/etc/openssl@3", root));
}

void add_program(Programs& out, std::string_view given, std::string_view home) {
  const std::string program = canonical_path(given);
  out.files.push_back(program);
  const std::string_view directory = parent_of(program);
  out.directories.emplace_back(directory);
  add_homebrew(out, program);
  if (!directory.ends_with("/bin")) return;
  const std::string_view prefix = parent_of(directory);
  if (is_own_prefix(prefix, home)) {
    out.trees.emplace_back(prefix);
  } else if (prefix == "/usr/local" || prefix == "/opt/local") {
    out.libraries.push_back(format("{}/lib", prefix));
  }
}

bool is_given(const std::vector<std::string>& programs, std::string_view name) {
  const std::string suffix = format("/{}", name);
  return std::ranges::any_of(programs,
                             [&](const std::string& path) { return path.ends_with(suffix); });
}

// macOS brings its programs in two directories; where one is not is no harm.
void add_declared(Programs& out, std::string_view name) {
  for (const std::string_view directory : system_programs) {
    out.files.push_back(format("{}/{}", directory, name));
  }
  // Apple's sh is a small program that starts one of these.
  if (name == "sh") out.files.insert(out.files.end(), {"/bin/bash", "/bin/dash", "/bin/zsh"});
}

void add_held(std::vector<HeldPath>& out, const FileGrant& grant, std::string_view path,
              HeldPath::Kind kind) {
  const std::string canonical = canonical_path(path);
  out.push_back({.root = grant.base,
                 .tail = canonical.substr(grant.base.size()),
                 .kind = kind,
                 .origins = &grant.granted->origins});
}

}  // namespace

std::vector<FileGrant> file_grants(const core::Policy& policy) {
  std::vector<FileGrant> out;
  for (const auto& granted : policy.files) {
    if (is_private_tmp(granted.capability)) continue;
    out.push_back({.granted = &granted,
                   .base = canonical_path(granted.capability.path.base),
                   .rights = core::rights_of(granted.capability.actions)});
  }
  std::ranges::sort(out, [](const FileGrant& a, const FileGrant& b) {
    const auto order = core::compare_as_tree(a.base, b.base);
    return order != 0 ? order < 0 : a.granted->capability.path < b.granted->capability.path;
  });
  return out;
}

std::vector<HeldPath> held_paths(const FileGrant& grant, std::string_view home) {
  using enum HeldPath::Kind;
  std::vector<HeldPath> out;
  const std::string_view spelled = short_spelling(grant.base);
  for (const core::HiddenPath& hidden : core::credentials_below(spelled, home)) {
    add_held(out, grant, hidden.path, closed);
  }
  for (const std::string_view name : core::workspace_secret_names()) {
    add_held(out, grant, format("{}/{}", spelled, name), closed);
  }
  if (grant.writes()) {
    for (const core::ReadOnlyPath& startup : core::startup_below(spelled, home)) {
      add_held(out, grant, startup.path, read_only);
    }
    for (const std::string_view name : core::protected_workspace_paths()) {
      add_held(out, grant, format("{}/{}", spelled, name), read_only);
    }
  }
  // What is closed is also not written: of two entries the closed one stays.
  std::ranges::sort(out, [](const HeldPath& a, const HeldPath& b) {
    const auto order = core::compare_as_tree(a.tail, b.tail);
    return order != 0 ? order < 0 : a.kind < b.kind;
  });
  const auto rest = std::ranges::unique(out, {}, &HeldPath::tail);
  out.erase(rest.begin(), rest.end());
  return out;
}

CredentialList credential_list(std::string_view home) {
  CredentialList out;
  while (home.ends_with('/')) home.remove_suffix(1);
  for (const core::CredentialPath& entry : core::credential_paths()) {
    if (!entry.path.starts_with('~')) {
      if (entry.path != home) out.absolute.push_back(canonical_path(entry.path));
    } else if (!home.empty()) {
      out.below_home.emplace_back(entry.path.substr(1));
    }
  }
  sort_and_deduplicate(out.absolute);
  return out;
}

Programs programs_of(const Input& input) {
  Programs out;
  for (const std::string& program : input.options.programs) {
    add_program(out, program, input.options.home);
  }
  for (const auto& grant : input.policy.programs) {
    if (!is_given(input.options.programs, grant.capability.program)) {
      add_declared(out, grant.capability.program);
    }
  }
  if (input.options.programs.empty()) {
    out.trees.assign(std::begin(system_programs), std::end(system_programs));
  }
  for (auto* list : {&out.files, &out.trees, &out.libraries, &out.library_regexes, &out.links}) {
    sort_and_deduplicate(*list);
  }
  for (const std::string_view directory : {"/usr/bin", "/bin", "/usr/sbin", "/sbin"}) {
    out.directories.emplace_back(directory);
  }
  std::vector<std::string> path;
  for (std::string& directory : out.directories) {
    if (!contains(path, directory)) path.push_back(std::move(directory));
  }
  out.directories = std::move(path);
  return out;
}

}  // namespace capgate::lower::seatbelt
