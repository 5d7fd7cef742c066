#include "cli/caller.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "core/path.h"
#include "lower/common.h"

namespace capgate::cli {

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

std::string current_directory() {
  std::string out(PATH_MAX, '\0');
  if (::getcwd(out.data(), out.size()) == nullptr) return "/";
  return out.c_str();
}

std::string home_directory() {
  const auto home = core::parse_plain_path(variable("HOME"));
  return home && *home != "/" ? *home : std::string(lower::default_home);
}

std::string state_base() {
  const std::string state = variable("XDG_STATE_HOME");
  return (state.starts_with('/') ? state : home_directory() + "/.local/state") + "/capgate";
}

std::string config_base() {
  const std::string config = variable("XDG_CONFIG_HOME");
  return (config.starts_with('/') ? config : home_directory() + "/.config") + "/capgate";
}

std::string data_base() {
  const std::string data = variable("XDG_DATA_HOME");
  return (data.starts_with('/') ? data : home_directory() + "/.local/share") + "/capgate";
}

std::string audit_directory() { return state_base() + "/audit"; }

}  // namespace capgate::cli
