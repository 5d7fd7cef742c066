// Where capgate.yaml lies, and which one holds.
//
//   --config FILE                                    the flag
//   ./capgate.yaml                                   the project's: only narrows
//   $XDG_CONFIG_HOME/capgate/capgate.yaml            the user's
//   $XDG_CONFIG_HOME/capgate/servers/NAME.yaml       the user's: what `wrap` writes
//   /etc/capgate/capgate.yaml                        the system's
//
// The first one that has the server holds, but for the project's: its entry is used only if the
// policy grants nothing beyond what the user's or the system's entry of that name grants, or if a
// person approved exactly this entry (`capgate approve`, kept in the user's state directory). So a
// server that can write the project's file gains nothing by it.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/config.h"

namespace capgate::clients {

enum class Layer : unsigned char { flag, project, user, system };

struct Places {
  std::string flag;       // --config, or empty
  std::string directory;  // the caller's
  std::string config;     // $XDG_CONFIG_HOME/capgate
  std::string system = "/etc/capgate";
  std::string home;
};

struct FoundServer {
  ServerConfig server;
  Layer layer = Layer::user;
  std::string file;       // where it stands
  text::SharedText text;  // of that file, for diagnostics
};

// A file that cannot be read or parsed: everything to say about it. A file that is not there is
// none.
struct ConfigProblem {
  std::string file;
  text::SharedText text;    // null: it could not be read
  Diagnostics diagnostics;  // or
  std::string message;
};

// Every entry of that name, in the order of the layers; two of one layer are a problem.
[[nodiscard]] std::expected<std::vector<FoundServer>, ConfigProblem> find_server(
    std::string_view name, const Places& places);

// Every entry of one file's text, as if --config named it.
[[nodiscard]] std::expected<std::vector<FoundServer>, ConfigProblem> read_config_text(
    const std::string& file, const text::SharedText& text, const Places& places);

// All of them, for listings; sorted by name, then by layer.
[[nodiscard]] std::expected<std::vector<FoundServer>, ConfigProblem> all_servers(
    const Places& places);

// ./capgate.yaml, whether or not it is there.
[[nodiscard]] std::string project_file(const Places& places);

// Every file and directory where an entry would be looked for, but for the project's: whoever can
// write one of them, there or not, decides a policy.
[[nodiscard]] std::vector<std::string> deciding_files(const Places& places);

// Every entry of those files. What is wrong with one of them is for those who use it: it has none.
[[nodiscard]] std::vector<FoundServer> readable_servers(const Places& places);

// A file that a server may have put there is read as such: no link to somewhere else, no pipe that
// nobody writes. The error is an errno.
enum class Links : unsigned char { are_followed, are_refused };
[[nodiscard]] std::expected<std::string, int> read_regular_file(const std::string& path,
                                                                Links links);

}  // namespace capgate::clients
