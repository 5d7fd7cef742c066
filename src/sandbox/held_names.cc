#include "sandbox/held_names.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::sandbox {
namespace {

// Directories in which nobody works by hand: what lies there is never opened as a project.
constexpr std::string_view not_projects[] = {"__pycache__", "node_modules"};

// Of a git directory: its contents are data, however large.
constexpr std::string_view git_data[] = {"info", "lfs", "logs", "objects", "refs"};

template <typename Children>
auto find(Children& children, std::string_view name) {
  const auto found = std::ranges::lower_bound(
      children, name, {}, [](const auto& each) { return std::string_view(each.first); });
  return found != children.end() && found->first == name ? found : children.end();
}

}  // namespace

HeldNames::Role HeldNames::add_node() {
  nodes_.emplace_back();
  return static_cast<Role>(nodes_.size() - 1);
}

HeldNames::Child& HeldNames::add(Role at, std::string_view path) {
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    auto found = find(nodes_[at].children, name);
    if (found == nodes_[at].children.end()) {
      auto& children = nodes_[at].children;
      const auto place = std::ranges::lower_bound(
          children, name, {}, [](const auto& each) { return std::string_view(each.first); });
      found = children.insert(place, {std::string(name), {}});
    }
    if (slash == std::string_view::npos) return found->second;
    if (found->second.role == none) {
      const auto index = found - nodes_[at].children.begin();
      const Role made = add_node();
      nodes_[at].children[static_cast<std::size_t>(index)].second.role = made;
      at = made;
    } else {
      at = found->second.role;
    }
    path.remove_prefix(slash + 1);
  }
}

HeldNames::HeldNames(std::span<const std::string> hidden, std::span<const std::string> held) {
  add_node();
  nodes_[project].any = project;
  for (const std::string_view name : not_projects) add(project, name);
  for (const std::string& name : hidden) add(project, name).treatment = Treatment::hide;
  for (const std::string& name : held) add(project, name).treatment = Treatment::hold;
  if (held.empty()) return;

  // A work tree or a submodule has a file .git that names the real directory, and a main one has
  // the directories of its work trees and submodules. Submodules may be nested: "libs/zlib".
  Child& git = add(project, ".git");
  git.treatment = Treatment::hold;
  git.check = Check::not_a_directory;
  const Role directory = git.role;
  if (directory == none) return;
  for (const std::string_view name : git_data) add(directory, name);
  if (Child& hooks = add(directory, "hooks"); hooks.treatment == Treatment::hold) {
    hooks.check = Check::hooks;
  }
  for (const std::string_view name : {"config", "config.worktree"}) {
    if (Child& file = add(directory, name); file.treatment == Treatment::hold) {
      file.check = Check::git_config;
    }
  }
  const Role others = add_node();
  nodes_[others].any = others;
  for (const std::string_view name : {"modules", "worktrees"}) add(directory, name).role = others;
  nodes_[others].children = nodes_[directory].children;
}

HeldNames::Child HeldNames::child(Role role, std::string_view name) const {
  if (role == none) return {};
  const auto found = find(nodes_[role].children, name);
  if (found != nodes_[role].children.end()) return found->second;
  return {.role = nodes_[role].any};
}

HeldNames::Role HeldNames::role_of(std::string_view path) const {
  Role role = project;
  for (const std::string_view name : split(path.substr(1), '/')) {
    const Child next = child(role, name);
    // A manifest that grants what lies below a held name has named it.
    if (next.treatment != Treatment::none && next.check != Check::not_a_directory) return none;
    // What nobody would walk into is a project like any other once it is granted.
    role = next.role == none ? project : next.role;
  }
  return role;
}

HeldNames::Role HeldNames::with(Role role,
                                std::span<const std::pair<std::string, Treatment>> more) {
  if (more.empty()) return role;
  const Role made = add_node();
  if (role != none) nodes_[made] = nodes_[role];
  for (const auto& [path, treatment] : more) {
    // Nodes on the way may be shared with other roles: this one has copies of its own.
    Role at = made;
    std::string_view rest = path;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
         slash = rest.find('/')) {
      const Child way = add(at, rest.substr(0, slash));
      const Role shared = way.role != none ? way.role : nodes_[at].any;
      const Role own = add_node();
      if (shared != none) nodes_[own] = nodes_[shared];
      add(at, rest.substr(0, slash)).role = own;
      at = own;
      rest.remove_prefix(slash + 1);
    }
    add(at, rest).treatment = treatment;
  }
  return made;
}

std::vector<std::string_view> HeldNames::known(Role role) const {
  std::vector<std::string_view> out;
  if (role == none) return out;
  for (const auto& [name, child] : nodes_[role].children) {
    if (child.treatment != Treatment::none || child.role != none) out.push_back(name);
  }
  return out;
}

}  // namespace capgate::sandbox
