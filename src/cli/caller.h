// What the caller's environment says of the user's own places.
#pragma once

#include <string>

namespace capgate::cli {

[[nodiscard]] std::string variable(const char* name);  // empty if it is not set

[[nodiscard]] std::string current_directory();  // "/" if it is gone

// HOME, if it says something sensible; a server always has a home of its own.
[[nodiscard]] std::string home_directory();

// $XDG_STATE_HOME/capgate
[[nodiscard]] std::string state_base();

// $XDG_CONFIG_HOME/capgate
[[nodiscard]] std::string config_base();

// $XDG_DATA_HOME/capgate
[[nodiscard]] std::string data_base();

// Where a run makes its log, and where `capgate audit` looks for it.
[[nodiscard]] std::string audit_directory();

}  // namespace capgate::cli
