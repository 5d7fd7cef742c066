// Reads the configuration of a git repository as far as one question needs: is there a setting that
// git itself does not write when it makes or clones a repository? Many of the others name a program
// (core.fsmonitor, core.pager, credential.helper, filters, aliases ...) or lead to another file, so
// only what is known to be harmless counts as such.
//
//   foreign_git_setting("[core]\n\tbare = false\n")          -> nothing
//   foreign_git_setting("[core]\n\tfsmonitor = ./run-me\n")  -> "core.fsmonitor"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capgate::sandbox {

// The first such setting, or what cannot be read: git may read it otherwise.
[[nodiscard]] std::optional<std::string> foreign_git_setting(std::string_view text);

}  // namespace capgate::sandbox
