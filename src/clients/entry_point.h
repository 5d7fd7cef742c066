// How an installed package is started.
//
//   npm:   the program of its package.json ("bin"), with the flags of its `#!` line
//   PyPI:  the function of its entry_points.txt, by launch.py of the tree
//
// Always by the runtime that it was installed with (capgate.lock): what a package says of another
// interpreter is refused.
#pragma once

#include <string>
#include <vector>

#include "clients/store.h"
#include "sandbox/bind.h"

namespace capgate::clients {

// Where the sandbox shows the tree; entry points are named there.
inline constexpr std::string_view shown_at = sandbox::package_place;

// The words before the server's own arguments. `executable` empty: the program that is named like
// the last part of the package, or the only one.
[[nodiscard]] Stored<std::vector<std::string>> entry_point(const std::string& directory,
                                                           const LockedPackage& locked,
                                                           const std::string& executable);

// The interpreter's words of a `#!` line: {"node", "--flag"}. Empty if there is none.
[[nodiscard]] std::vector<std::string> shebang_words(std::string_view start);

// launch.py of a tree of PyPI.
[[nodiscard]] std::string_view python_launcher();

}  // namespace capgate::clients
