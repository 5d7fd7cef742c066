#include "cli/package_command.h"

#include "base/format.h"
#include "cli/caller.h"
#include "cli/load.h"
#include "clients/store.h"

namespace capgate::cli {

std::expected<StartedCommand, int> installed_command(const std::vector<std::string>& words,
                                                     Output& output) {
  const auto wanted = clients::package_of(words);
  if (!wanted) return StartedCommand{.words = words, .package = ""};
  auto found = clients::find_installed({.base = data_base()}, *wanted);
  if (!found) {
    return std::unexpected(usage_error(found.error().message, found.error().help, output));
  }
  const std::string package = clients::print(wanted->package);
  if (!*found) {
    return std::unexpected(
        usage_error(format("{} is not installed, and a server gets no registry", package),
                    format("install it once: capgate install '{}'", package), output));
  }
  return StartedCommand{.words = std::move((*found)->command),
                        .package = std::move((*found)->directory)};
}

}  // namespace capgate::cli
