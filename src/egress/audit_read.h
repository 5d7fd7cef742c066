// The audit log, read back strictly: a line is exactly what AuditLog writes, or it is refused.
//
//   const auto record = read_audit_line(R"({"seq":1,"time":"2026-11-15T12:00:00.123Z",...})");
//   record->host  -> "api.github.com"
//
//   AuditChain chain;
//   for (line of the file) if (auto fault = chain.feed(line)) report(*fault);   // the first one
//   chain.is_running()  -> true: the last run has no end line: it is still running, or it was cut
//
// Everything here is pure.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/audit.h"

namespace capgate::egress {

// The fields of AuditEvent and those that AuditLog adds, as they stand in the line.
struct AuditRecord {
  std::uint64_t sequence = 0;
  std::string time;
  std::string sandbox;
  std::string server;
  AuditEvent::Kind kind = AuditEvent::Kind::connect;
  std::optional<std::uint64_t> flow;
  std::string host;
  std::optional<std::uint64_t> port;
  std::string address;
  std::string server_name;
  std::string protocol;
  std::string method;
  std::string path;
  std::optional<std::uint64_t> status;
  std::string secrets;
  std::optional<bool> allowed;
  std::string rule;
  std::string position;
  std::string reason;
  std::string text;
  std::string remedy;
  std::optional<std::uint64_t> sent;
  std::optional<std::uint64_t> received;
  std::optional<std::uint64_t> milliseconds;
  std::optional<std::uint64_t> count;
  std::string previous;

  friend bool operator==(const AuditRecord&, const AuditRecord&) = default;
};

// What is wrong with a line, and from which byte on.
struct AuditMistake {
  std::size_t offset = 0;
  std::string message;
};

// `line` is without its newline.
[[nodiscard]] std::expected<AuditRecord, AuditMistake> read_audit_line(std::string_view line);

[[nodiscard]] std::optional<AuditEvent::Kind> event_of(std::string_view name);

// Milliseconds since 1970 as in "2026-11-15T12:00:00.123Z", and back. Years 1970 to 9999.
[[nodiscard]] std::optional<std::uint64_t> parse_audit_time(std::string_view text);
void append_audit_time(std::string& out, std::uint64_t milliseconds);

// Follows the chain through a file, line by line.
class AuditChain {
 public:
  struct Fault {
    enum class What : unsigned char {
      unreadable,  // not a line of an audit log
      sequence,    // lines are missing, or too many
      hash,        // the line before is not the one that was there
      start,       // outside of a run, or within another one
    };
    std::uint64_t line = 0;
    What what = What::unreadable;
    std::string message;
  };

  // The first fault of the file, once; what comes after it is only counted. A line that a crash cut
  // short is no fault if the next one, a start or restart, holds its hash: it counts as cut.
  [[nodiscard]] std::optional<Fault> feed(std::string_view line);
  // After the last line, which was not ended by a newline unless `is_ended`.
  [[nodiscard]] std::optional<Fault> finish(bool is_ended);

  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }
  // The last run has no end line.
  [[nodiscard]] bool is_running() const { return !sandbox_.empty(); }
  // Runs before it that have none: they ended without warning, but nothing was taken out.
  [[nodiscard]] std::uint64_t unended_runs() const { return unended_runs_; }
  // The hash of the last line. Kept elsewhere, it shows later that nothing was changed, last line
  // included, and that nothing was cut off.
  [[nodiscard]] const std::string& head() const { return previous_; }
  [[nodiscard]] const std::vector<std::uint64_t>& cut_lines() const { return cut_lines_; }

 private:
  [[nodiscard]] std::optional<Fault> check(const AuditRecord& record) const;
  void follow(const AuditRecord& record);

  bool is_broken_ = false;
  std::uint64_t lines_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t unended_runs_ = 0;
  std::string sandbox_;  // of the run that goes on
  std::string previous_ = std::string(64, '0');
  std::optional<Fault> unreadable_;  // the line before, which may have been cut by a crash
  std::vector<std::uint64_t> cut_lines_;
};

[[nodiscard]] std::string_view fault_name(AuditChain::Fault::What what);

}  // namespace capgate::egress
