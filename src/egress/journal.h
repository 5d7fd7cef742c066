// What the broker tells people: every decision to the audit log, denials also to stderr.
//
// The log gets a line for each connection. What a server can cause without limit (names that it
// asks for, ports where nobody listens) is told once a minute for each subject, with a count, and
// for so many subjects a minute: a server must not fill the disk. What no line has told at the end
// is told then. stderr gets one line per destination a minute, for as many of them, and never makes
// the broker wait.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "egress/audit.h"
#include "egress/decide.h"
#include "egress/dns.h"
#include "egress/loop.h"
#include "egress/policy.h"
#include "egress/refusal.h"
#include "egress/tunnel.h"

namespace capgate::egress {

class Journal {
 public:
  Journal(Loop& loop, const Policy& policy, int audit_fd, int stderr_fd);

  // The first line, or that the broker was started again. False: the log cannot be written.
  [[nodiscard]] bool begin();
  void end();

  [[nodiscard]] std::uint64_t next_flow() { return ++flows_; }

  // False: it could not be written, so the connection must not be made.
  [[nodiscard]] bool allow(const FlowRecord& record, const Flow& flow, const Verdict& verdict);
  void deny(const FlowRecord& record, const Flow& flow, const Verdict& verdict);
  // What is refused for another reason than the policy's rules.
  void refuse(const FlowRecord& record, const Flow& flow, std::string_view reason,
              std::string_view text);
  struct RequestNote {
    std::string_view method;
    std::string_view path;  // as the client sent it: with placeholders, without its query
    int status = 0;
    std::string_view secrets;
    std::string_view reason;  // of a refusal; empty: allowed
    std::string_view text;
    std::string_view remedy;
    const Rule* rule = nullptr;
  };
  // One request of a terminated connection. False: it could not be written. Refusals cost a server
  // nothing, so of more than a number of them in a minute only the number is told.
  [[nodiscard]] bool request(const FlowRecord& record, const RequestNote& note);
  // False: the last line could not be written. The next one is tried all the same.
  [[nodiscard]] bool is_written() const { return log_.is_written(); }
  // Why not: "No space left on device".
  [[nodiscard]] const std::string& problem() const { return log_.problem(); }
  [[nodiscard]] bool allow_inbound(const FlowRecord& record);
  void close(const FlowRecord& record, std::uint64_t sent, std::uint64_t received,
             std::string_view reason);

  void tell_dns(const DnsReply& reply);
  void tell_refused(const core::HostPattern& host, const RefusedPort& port);
  void tell_limit(std::string_view reason, std::string_view text);

 private:
  // What a line of a subject says, for the next line of it.
  struct Told {
    AuditEvent::Kind kind = AuditEvent::Kind::limit;
    std::string host = {};
    std::uint16_t port = 0;
    std::string protocol = {};
    bool allowed = false;
    std::string reason = {};
    std::string text = {};
    std::string remedy = {};
  };
  struct Repeat {
    Time since;
    std::uint64_t count = 0;  // that no line tells yet
    Told told;
  };
  enum class Subject : unsigned char { name, port, limit };

  // The subject if it is to be told now; null: it was, less than a minute ago.
  [[nodiscard]] Repeat* news(Subject subject, std::string_view key);
  [[nodiscard]] bool has_room(std::string_view name);
  [[nodiscard]] bool has_room_for_refusal();
  void tell(Repeat& repeat);
  void tell_repeats();
  // `text` holds foreign text only as audit_text() gives it.
  void say(std::string_view key, const std::string& text);
  void write_to_stderr(const std::string& text);
  struct Hint {
    std::string remedy;
    bool is_port_guessed = false;
  };
  // What would allow a name, which was asked for without a port.
  [[nodiscard]] Hint hint_for(const core::HostPattern& host) const;
  void tell_refusal(const FlowRecord& record, const Flow& flow, AuditEvent event);

  Loop& loop_;
  const Policy& policy_;
  AuditLog log_;
  int stderr_;
  std::uint64_t flows_ = 0;
  Time refusals_since_;
  std::size_t refusals_ = 0;
  std::map<std::string, Repeat, std::less<>> repeats_;
  std::map<std::string, Time, std::less<>> said_;
};

}  // namespace capgate::egress
