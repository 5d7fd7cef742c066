// The half of run --trace that looks at the host: a process of its own, which gets what the server
// tried and writes the lines.
//
//   TraceWriter writer;  writer.start({bound, lacking}, output);
//   writer.note({.kind = TraceNote::Kind::read, .path = "/home/alice/.netrc"});   never waits
//   writer.finish();                                                    everything is written
//
// The supervisor answers the server's calls and must not look itself: the time that its answer
// takes would tell whether the host has the file. Here nobody waits for the look. It happens four
// times a second for all that was tried meanwhile, and once for each attempt.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <unordered_set>

#include "sandbox/bind.h"
#include "sandbox/lacking.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// What a server tried, as far as it is known without a look at the host.
struct TraceNote {
  enum class Kind : std::uint8_t {
    path,     // a name was used
    program,  // run
    socket,   // connected to, by path
    line,     // known to be refused: `path` is what, the subject and the capability, by newlines
  };
  Kind kind = Kind::path;
  bool writes = false;
  bool changes_entry = false;
  bool is_inside = false;  // the sandbox has such a name
  std::string path;
};

// Examples, where the catalog does not know the server.
inline constexpr const char* any_program = "exec:spawn:PROGRAM";
inline constexpr const char* any_host = "net:connect:HOST:PORT";

class TraceWriter {
 public:
  struct Known {
    const Bound& bound;
    const Lacking& lacking;
  };

  TraceWriter() = default;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  TraceWriter(TraceWriter&& other) noexcept;
  TraceWriter& operator=(TraceWriter&&) = delete;
  ~TraceWriter() { finish(); }

  // Forks; the error is an errno.
  [[nodiscard]] std::expected<void, int> start(const Known& known, const sys::Fd& output);
  void note(const TraceNote& note);
  // Waits until everything is written, or the reader of it is known not to read.
  void finish();

 private:
  void send_some();

  sys::Fd socket_;
  pid_t pid_ = -1;
  std::string pending_;
  std::unordered_set<std::size_t> noted_;  // by hash: what collides is only not told
};

}  // namespace capgate::sandbox
