// The audit log: one JSON line per decision and per closed flow, each with the hash of the line
// before it, so that no line can be changed, taken out or put in without `capgate audit verify`
// telling where.
//
//   AuditLog log(fd);                      // takes over at the last line of the file
//   if (!log.append({.event = AuditEvent::Kind::connect, ...})) refuse();   // nothing unrecorded
//
//   {"seq":3,"time":"2026-11-15T12:00:00.123Z","sandbox":"5f2c9a11","server":"github",
//    "event":"connect","flow":2,"host":"api.github.com","port":443,"verdict":"allowed",
//    "rule":"net:connect:api.github.com:443","at":"github.json:12:7","prev":"<sha256 of line 2>"}
//
// `prev` is the SHA-256 of the whole line before, without its newline; 64 zeros on the first. `seq`
// is the number of the line in the file, whichever run wrote it. The first line of a run is
// "start", the last "end" with the number of flows: a log that was cut at its end lacks it.
// docs/audit.md is the format for users; egress/audit_read.h reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capgate::egress {

struct AuditEvent {
  enum class Kind : unsigned char {
    start,    // of a run; `text` is the policy hash
    restart,  // of the broker within a run
    end,      // of a run; `count` flows
    dns,      // a name was asked for
    connect,  // a connection was asked for, and decided
    refused,  // by the kernel: a port where nobody listens (`protocol` tcp or udp)
    inbound,  // a connection to a published port
    close,    // of a flow that was opened
    limit,    // a limit of the sandbox was reached
    request,  // on a terminated connection, with its answer's status or why it was refused
  };
  Kind kind = Kind::connect;
  std::uint64_t flow = 0;                 // 0: none
  std::string_view host;                  // foreign text is escaped and cut here, once
  std::uint16_t port = 0;                 // 0: none
  std::string_view address;               // that was dialled
  std::string_view server_name;           // SNI or Host, as sent
  std::string_view protocol;              // tls, http, tcp, udp, socks5 ...
  std::string_view method;                // of a request
  std::string_view path;                  // of a request, as the client sent it, without its query
  std::uint64_t status = 0;               // of its answer; 0: none
  std::string_view secrets;               // whose values it was given: names, with commas
  std::optional<bool> allowed;            // the verdict
  std::string_view rule;                  // the capability that allowed it or came closest
  std::string_view position;              // of the rule, in its manifest
  std::string_view reason;                // reason_name() or another fixed word
  std::string_view text;                  // one readable sentence
  std::string_view remedy;                // the capability that would allow it
  std::optional<std::uint64_t> sent;      // bytes to the origin
  std::optional<std::uint64_t> received;  // bytes from it
  std::optional<std::uint64_t> milliseconds;
  std::optional<std::uint64_t> count;  // of equal events in one line, or flows
};

[[nodiscard]] std::string_view event_name(AuditEvent::Kind kind);

// A line is never longer than this, newline included, whatever the event holds.
inline constexpr std::size_t longest_audit_line = 16384;

// Printable ASCII, at most 256 bytes: other bytes and backslashes as \xNN, a cut marked with "...".
[[nodiscard]] std::string audit_text(std::string_view foreign);

class AuditLog {
 public:
  struct Origin {
    std::string sandbox;
    std::string server;
  };
  // `fd` stays the caller's; it was opened for reading and appending, and nobody else writes there.
  // Reads the last lines of the file to go on from them; a line that was cut short by a crash is
  // ended first, and counts as a line. Calls fstat, pread, write, ftruncate and clock_gettime. The
  // caller ignores SIGXFSZ, so that a file size limit is an error.
  AuditLog(int fd, const Origin& origin);

  // False if the whole line could not be written (a full disk): what it tells must not happen. What
  // was written of it is taken back.
  [[nodiscard]] bool append(const AuditEvent& event);
  // What append() said last.
  [[nodiscard]] bool is_written() const { return is_written_; }

  // Why append() refuses or has refused last, for people: "No space left on device", "it is not an
  // audit log". Empty before that, so it also tells whether the file can be gone on with.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // True if the file held lines of this sandbox already: the broker was started again.
  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] std::uint64_t last_flow() const { return last_flow_; }

 private:
  void go_on(std::uint64_t size);
  [[nodiscard]] bool visit(std::string_view line, struct LastLines& last);
  void compose(const AuditEvent& event);
  [[nodiscard]] bool write_line();
  [[nodiscard]] bool take_back();

  int fd_;
  Origin origin_;
  std::uint64_t sequence_ = 0;
  std::uint64_t last_flow_ = 0;  // read from the file
  bool goes_on_ = false;
  bool is_written_ = true;
  bool is_usable_ = true;                // false: the file is something else
  bool ends_line_ = false;               // the last line lacks its newline
  std::optional<std::uint64_t> excess_;  // where a line begins that is still to be taken back
  std::string previous_;                 // hash of the last line, hexadecimal
  std::string line_;                     // kept, so that a line costs no allocation
  std::string problem_;
};

}  // namespace capgate::egress
