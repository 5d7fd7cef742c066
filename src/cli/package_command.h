// The command of `run`, where a package runner's words stand for an installed package.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "clients/store.h"

namespace capgate::cli {

struct StartedCommand {
  std::vector<std::string> words;
  std::string package;  // the tree that it lies in, or empty: an ordinary command
};

// "npx -y time-mcp" is what `capgate install npm:time-mcp` put into the store. One that is not
// installed is a refusal, which says how to install it: a server gets no registry. `checked` is the
// package's entry if it was read and compared before: then that very one is started.
[[nodiscard]] std::expected<StartedCommand, int> installed_command(
    const std::vector<std::string>& words, const std::optional<clients::LockedPackage>& checked,
    Output& output);

// The entry of the store that serves these words; nothing, if they name no package. One that is not
// installed is a refusal as above.
[[nodiscard]] std::expected<std::optional<clients::LockedPackage>, int> locked_package(
    const std::vector<std::string>& words, Output& output);

}  // namespace capgate::cli
