// The command of `run`, where a package runner's words stand for an installed package.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "cli/options.h"

namespace capgate::cli {

struct StartedCommand {
  std::vector<std::string> words;
  std::string package;  // the tree that it lies in, or empty: an ordinary command
};

// "npx -y time-mcp" is what `capgate install npm:time-mcp` put into the store. One that is not
// installed is a refusal, which says how to install it: a server gets no registry.
[[nodiscard]] std::expected<StartedCommand, int> installed_command(
    const std::vector<std::string>& words, Output& output);

}  // namespace capgate::cli
