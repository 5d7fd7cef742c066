// What `capgate audit` shows of an audit log, as pure functions on its records.
//
//   row(record)  -> "2026-11-15T12:00:00.123Z  github  connect  denied  evil.test:443  no-rule ..."
//   matches({.host = "*.github.com", .allowed = false}, record)
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "egress/audit_read.h"

namespace capgate::cli {

struct AuditFilter {
  std::optional<std::string> host;  // any number of characters for each '*'; case does not matter
  std::optional<std::uint64_t> port;
  std::optional<std::string> server;
  std::optional<bool> allowed;
  std::optional<std::uint64_t> since;  // milliseconds since 1970
  std::optional<egress::AuditEvent::Kind> event;
};

[[nodiscard]] bool matches(const AuditFilter& filter, const egress::AuditRecord& record);

// "90s", "15m", "1h", "7d" before `now`, or a time in UTC: "2026-11-15", "2026-11-15T12:00",
// "2026-11-15T12:00:00Z", "2026-11-15T12:00:00.123Z". Milliseconds since 1970.
[[nodiscard]] std::optional<std::uint64_t> parse_since(std::string_view text, std::uint64_t now);

// One line for people, without its newline, safe for a terminal.
[[nodiscard]] std::string row(const egress::AuditRecord& record);

// "1 line", "2 lines"
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view thing);

// What each server did with each host.
class AuditStats {
 public:
  void add(const egress::AuditRecord& record);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;

 private:
  struct Totals {
    std::uint64_t connections = 0;
    std::uint64_t allowed = 0;
    std::uint64_t denied = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  using Pair = std::pair<std::string, std::string>;

  [[nodiscard]] std::vector<std::pair<Pair, std::uint64_t>> top_remedies() const;

  std::map<Pair, Totals> totals_;           // by server and host
  std::map<Pair, std::uint64_t> remedies_;  // by server and capability: how often
  std::map<std::pair<std::string, std::uint64_t>, std::string> flows_;  // open ones: their host
};

}  // namespace capgate::cli
