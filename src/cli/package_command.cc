#include "cli/package_command.h"

#include "base/format.h"
#include "cli/caller.h"
#include "cli/load.h"

namespace capgate::cli {

std::expected<std::optional<clients::LockedPackage>, int> locked_package(
    const std::vector<std::string>& words, Output& output) {
  const auto wanted = clients::package_of(words);
  if (!wanted) return std::nullopt;
  const auto lock = clients::read_lock({.base = data_base()});
  if (!lock) return std::unexpected(usage_error(lock.error().message, lock.error().help, output));
  if (const auto* found = clients::find_locked(*lock, wanted->package)) return *found;
  const std::string package = clients::print(wanted->package);
  return std::unexpected(
      usage_error(format("{} is not installed, and a server gets no registry", package),
                  format("install it once: capgate install '{}'", package), output));
}

std::expected<StartedCommand, int> installed_command(
    const std::vector<std::string>& words, const std::optional<clients::LockedPackage>& checked,
    Output& output) {
  const auto locked = checked ? std::expected<std::optional<clients::LockedPackage>, int>(checked)
                              : locked_package(words, output);
  if (!locked) return std::unexpected(locked.error());
  const auto wanted = clients::package_of(words);
  if (!*locked || !wanted) return StartedCommand{.words = words, .package = ""};
  auto found = clients::find_installed({.base = data_base()}, *wanted, **locked);
  if (!found) {
    return std::unexpected(usage_error(found.error().message, found.error().help, output));
  }
  return StartedCommand{.words = std::move(found->command), .package = std::move(found->directory)};
}

}  // namespace capgate::cli
