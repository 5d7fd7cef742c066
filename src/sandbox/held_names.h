// The names in a granted directory that are not left to the server: secrets of a workspace, which
// are hidden, and files that a program of the host runs or trusts later, which stay as they are.
//
//   HeldNames names(plan.hidden_names, plan.protected_names);
//   const auto root = names.role_of("/srv/notes");         a project, like every other directory
//   const auto git = names.child(root, ".git").role;
//   names.child(git, "hooks").treatment                    hold
//
// A role says what a directory is to git and to editors, and so which names in it matter. It
// follows from the whole path: in a grant of /srv/notes/.git the name "hooks" is held, too. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capgate::sandbox {

class HeldNames {
 public:
  using Role = std::uint32_t;         // the number of a node
  static constexpr Role none = ~0U;   // nothing below it matters
  static constexpr Role project = 0;  // a directory as any: those in it are projects, too

  enum class Treatment : std::uint8_t {
    none,
    hide,  // covered
    hold,  // read-only where it exists; set aside where it appears
  };
  // What counts where a held name appears later: the name alone, or what git would run.
  enum class Check : std::uint8_t { name, not_a_directory, hooks, git_config };

  struct Child {
    Treatment treatment = Treatment::none;
    Check check = Check::name;
    Role role = none;  // of a directory with this name
    friend bool operator==(const Child&, const Child&) = default;
  };

  HeldNames(std::span<const std::string> hidden, std::span<const std::string> held);

  [[nodiscard]] Role role_of(std::string_view path) const;
  [[nodiscard]] Child child(Role role, std::string_view name) const;

  // A role like another one, with more names: paths relative to the directory that has the role.
  [[nodiscard]] Role with(Role role, std::span<const std::pair<std::string, Treatment>> more);

  // Those that `role` knows by name; directories of any name are no part of it.
  [[nodiscard]] std::vector<std::string_view> known(Role role) const;

  // True for a git directory, a submodule's and the like: there the contents count, too.
  [[nodiscard]] bool is_git(Role role) const { return child(role, "hooks").check == Check::hooks; }

 private:
  struct Node {
    std::vector<std::pair<std::string, Child>> children;  // sorted
    Role any = none;                                      // of other directories
  };
  Role add_node();
  Child& add(Role at, std::string_view path);

  std::vector<Node> nodes_;
};

}  // namespace capgate::sandbox
