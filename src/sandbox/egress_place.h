// Where `capgate egress` listens: a Unix socket in a directory of its own, or a port of the host's
// loopback, or of another address on request.
//
//   EgressPlace place = TRY(open_place(TRY(parse_where("unix:/x/egress.sock", Reach::loopback))));
//   place.listener   for the broker
//   place.name       "unix:/x/egress.sock", "tcp:127.0.0.1:3128"
//
// Beside the socket lies capgate-init, which carries a sandbox's connections to it, so that one
// directory is all that an engine mounts. Both are removed when the place ends; what a killed one
// left behind is replaced by the next.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "sandbox/host_path.h"
#include "sys/fd.h"

namespace capgate::sandbox {

struct Where {
  enum class Kind : unsigned char { unix_socket, tcp };
  Kind kind = Kind::unix_socket;
  std::string path;        // of the socket
  std::string address;     // without brackets
  std::uint16_t port = 0;  // 0: one that is free
  mode_t mode = 0600;      // of the socket
  bool with_forwarder = true;
};
// Which addresses a port may have: other machines reach every one but those of the loopback.
enum class Reach : unsigned char { loopback, network };
// "unix:PATH", "tcp:127.0.0.1:PORT", "tcp:[::1]:PORT".
[[nodiscard]] std::expected<Where, Refusal> parse_where(std::string_view text, Reach reach);

// Removes what was made in a directory, in the end the directory if it was made, too.
class MadeFiles {
 public:
  MadeFiles() = default;
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;
  MadeFiles(MadeFiles&& other) noexcept = default;
  MadeFiles& operator=(MadeFiles&& other) = delete;
  ~MadeFiles();

  sys::Fd directory;  // locked: one service in each
  std::string path;   // of the directory
  bool is_made = false;
  std::string socket;  // names inside, empty where there is none
  std::string forwarder;
};

struct EgressPlace {
  MadeFiles files;
  sys::Fd listener;
  std::string name;
  std::string forwarder;  // its path, or empty
};
[[nodiscard]] std::expected<EgressPlace, Refusal> open_place(const Where& where);

}  // namespace capgate::sandbox
