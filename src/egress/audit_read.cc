#include "egress/audit_read.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"

namespace capgate::egress {
namespace {

using Kind = AuditEvent::Kind;

constexpr std::array kinds = {Kind::start,   Kind::restart, Kind::end,     Kind::dns,
                              Kind::connect, Kind::refused, Kind::inbound, Kind::close,
                              Kind::limit,   Kind::request};

// Walks over one line. After the first mistake nothing is read any more.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  // True if `expected` came next.
  bool skip(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  // True if the member comes next: its value is to be read.
  bool skip_key(std::string_view key) {
    const std::size_t before = at_;
    if (skip(before == 0 ? "{\"" : ",\"") && skip(key) && skip("\":")) return true;
    at_ = before;
    return false;
  }

  void require_key(std::string_view key) {
    if (!mistake_ && !skip_key(key)) refuse(format("{} is expected here", quoted(key)));
  }

  std::uint64_t number() {
    const std::size_t size = std::min(rest().find_first_not_of("0123456789"), rest().size());
    const auto value = parse_decimal(rest().substr(0, size));
    if (!value) refuse("not a number");
    at_ += value ? size : 0;
    return value.value_or(0);
  }

  // Not empty, printable ASCII; of the escapes only those that ASCII needs.
  std::string string() {
    std::string text;
    if (!skip("\"")) refuse("not a string");
    while (!mistake_ && !skip("\"")) {
      const std::string_view left = rest();
      const bool is_escape = left.starts_with("\\\"") || left.starts_with("\\\\");
      const char c = left.empty() ? '\0' : left[is_escape ? 1 : 0];
      if (!is_printable_ascii(c) || (c == '\\' && !is_escape)) {
        refuse("not printable ASCII, or an escape that is not written here");
      } else {
        text += c;
        at_ += is_escape ? 2 : 1;
      }
    }
    if (text.empty()) refuse("an empty text");
    return text;
  }

  void require_end() {
    if (!mistake_ && rest() != "}") refuse("the line does not end here as it should");
  }

  void refuse(std::string message) {
    if (!mistake_) mistake_ = AuditMistake{.offset = at_, .message = std::move(message)};
  }

  [[nodiscard]] bool is_good() const { return !mistake_; }
  [[nodiscard]] const AuditMistake& mistake() const { return *mistake_; }

 private:
  [[nodiscard]] std::string_view rest() const { return line_.substr(at_); }

  std::string_view line_;
  std::size_t at_ = 0;
  std::optional<AuditMistake> mistake_;
};

void read_time(Cursor& cursor, AuditRecord& record) {
  cursor.require_key("time");
  record.time = cursor.string();
  if (!parse_audit_time(record.time)) cursor.refuse("not a time");
}

void read_event(Cursor& cursor, AuditRecord& record) {
  cursor.require_key("event");
  const auto kind = event_of(cursor.string());
  if (!kind) cursor.refuse("not an event");
  record.kind = kind.value_or(Kind::connect);
}

void read_verdict(Cursor& cursor, AuditRecord& record) {
  if (!cursor.skip_key("verdict")) return;
  const std::string verdict = cursor.string();
  if (verdict != "allowed" && verdict != "denied") cursor.refuse("neither allowed nor denied");
  record.allowed = verdict == "allowed";
}

void read_text(Cursor& cursor, std::string_view key, std::string& value) {
  if (cursor.skip_key(key)) value = cursor.string();
}

void read_number(Cursor& cursor, std::string_view key, std::optional<std::uint64_t>& value) {
  if (cursor.skip_key(key)) value = cursor.number();
}

// Zero is written by leaving it out.
void read_positive(Cursor& cursor, std::string_view key, std::optional<std::uint64_t>& value) {
  read_number(cursor, key, value);
  if (value == 0) cursor.refuse(format("{} is zero", key));
}

void read_hash(Cursor& cursor, AuditRecord& record) {
  cursor.require_key("prev");
  record.previous = cursor.string();
  const bool is_hash =
      record.previous.size() == 64 && std::ranges::all_of(record.previous, [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'f');
      });
  if (!is_hash) cursor.refuse("not a SHA-256 in hexadecimal");
}

}  // namespace

std::optional<AuditEvent::Kind> event_of(std::string_view name) {
  const auto kind = std::ranges::find(kinds, name, event_name);
  return kind == kinds.end() ? std::nullopt : std::optional(*kind);
}

// In the order in which AuditLog::compose writes.
std::expected<AuditRecord, AuditMistake> read_audit_line(std::string_view line) {
  AuditRecord record;
  Cursor cursor(line);
  if (line.size() >= longest_audit_line) cursor.refuse("longer than a line can be");
  cursor.require_key("seq");
  record.sequence = cursor.is_good() ? cursor.number() : 0;
  read_time(cursor, record);
  cursor.require_key("sandbox");
  record.sandbox = cursor.string();
  cursor.require_key("server");
  record.server = cursor.string();
  read_event(cursor, record);
  read_positive(cursor, "flow", record.flow);
  read_text(cursor, "host", record.host);
  read_positive(cursor, "port", record.port);
  if (record.port.value_or(0) > 65535) cursor.refuse("not a port");
  read_text(cursor, "address", record.address);
  read_text(cursor, "serverName", record.server_name);
  read_text(cursor, "protocol", record.protocol);
  read_text(cursor, "method", record.method);
  read_text(cursor, "path", record.path);
  read_positive(cursor, "status", record.status);
  read_text(cursor, "secrets", record.secrets);
  read_verdict(cursor, record);
  read_text(cursor, "rule", record.rule);
  read_text(cursor, "at", record.position);
  read_text(cursor, "reason", record.reason);
  read_text(cursor, "text", record.text);
  read_text(cursor, "remedy", record.remedy);
  read_number(cursor, "sent", record.sent);
  read_number(cursor, "received", record.received);
  read_number(cursor, "ms", record.milliseconds);
  read_number(cursor, "count", record.count);
  read_hash(cursor, record);
  cursor.require_end();
  if (!cursor.is_good()) return std::unexpected(cursor.mistake());
  return record;
}

std::optional<std::uint64_t> parse_audit_time(std::string_view text) {
  constexpr std::string_view shape = "0000-00-00T00:00:00.000Z";
  if (text.size() != shape.size()) return {};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0' ? !is_digit(text[i]) : text[i] != shape[i]) return {};
  }
  const auto number = [&](std::size_t at, std::size_t size) {
    unsigned value = 0;
    for (const char c : text.substr(at, size)) value = value * 10 + static_cast<unsigned>(c - '0');
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(number(5, 2)),
                                         std::chrono::day(number(8, 2)));
  if (!date.ok() || date.year() < std::chrono::year(1970)) return {};
  if (number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59) return {};
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::uint64_t minutes =
      (static_cast<std::uint64_t>(days) * 24 + number(11, 2)) * 60 + number(14, 2);
  return (minutes * 60 + number(17, 2)) * 1000 + number(20, 3);
}

void append_audit_time(std::string& out, std::uint64_t milliseconds) {
  constexpr std::uint64_t day = 86'400'000;
  const std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(milliseconds / day)));
  const auto rest = static_cast<unsigned>(milliseconds % day);
  std::array<char, 24> text{'0', '0', '0', '0', '-', '0', '0', '-', '0', '0', 'T', '0',
                            '0', ':', '0', '0', ':', '0', '0', '.', '0', '0', '0', 'Z'};
  const auto put = [&](std::size_t end, unsigned value) {  // the last digit stands before `end`
    for (; value > 0; value /= 10) text[--end] = static_cast<char>('0' + value % 10);
  };
  put(4, static_cast<unsigned>(static_cast<int>(date.year())));
  put(7, static_cast<unsigned>(date.month()));
  put(10, static_cast<unsigned>(date.day()));
  put(13, rest / 3'600'000);
  put(16, rest / 60'000 % 60);
  put(19, rest / 1000 % 60);
  put(23, rest % 1000);
  out.append(text.data(), text.size());
}

std::string_view fault_name(AuditChain::Fault::What what) {
  switch (what) {
    case AuditChain::Fault::What::unreadable: return "unreadable";
    case AuditChain::Fault::What::sequence: return "sequence";
    case AuditChain::Fault::What::hash: return "hash";
    case AuditChain::Fault::What::start: return "start";
  }
  return "";
}

std::optional<AuditChain::Fault> AuditChain::check(const AuditRecord& record) const {
  const auto fault = [&](Fault::What what, std::string message) {
    return Fault{.line = lines_, .what = what, .message = std::move(message)};
  };
  const bool begins = record.kind == Kind::start || record.kind == Kind::restart;
  if (unreadable_ && !begins) return unreadable_;
  if (record.sequence != lines_) {
    return fault(Fault::What::sequence,
                 format("it says that it is line {}: lines {} before it", record.sequence,
                        record.sequence > lines_ ? "are missing" : "were added"));
  }
  if (record.previous != previous_) {
    return fault(Fault::What::hash,
                 lines_ == 1 ? "it does not begin a chain"
                             : format("line {} was changed after it was written", lines_ - 1));
  }
  if (record.kind == Kind::start) return {};
  if (sandbox_.empty())
    return fault(Fault::What::start, "it belongs to no run: a start is missing");
  if (record.sandbox != sandbox_) {
    return fault(Fault::What::start, format("it belongs to the run {}, whose start is missing",
                                            quoted(record.sandbox)));
  }
  return {};
}

void AuditChain::follow(const AuditRecord& record) {
  if (record.kind == Kind::start) {
    unended_runs_ += sandbox_.empty() ? 0 : 1;
    ++runs_;
    sandbox_ = record.sandbox;
  } else if (record.kind == Kind::end) {
    sandbox_.clear();
  }
}

std::optional<AuditChain::Fault> AuditChain::feed(std::string_view line) {
  ++lines_;
  if (is_broken_) return {};
  const auto record = read_audit_line(line);
  std::optional<Fault> fault;
  if (record) {
    fault = check(*record);
    if (unreadable_ && !fault) cut_lines_.push_back(unreadable_->line);
    unreadable_.reset();
    if (!fault) follow(*record);
  } else {
    fault = std::exchange(
        unreadable_,
        Fault{.line = lines_,
              .what = Fault::What::unreadable,
              .message = format("byte {}: {}", record.error().offset + 1, record.error().message)});
  }
  is_broken_ = fault.has_value();
  sha256_hex(line, std::span<char, 64>(previous_.data(), 64));
  return fault;
}

std::optional<AuditChain::Fault> AuditChain::finish(bool is_ended) {
  if (lines_ == 0) {
    return Fault{
        .line = 1, .what = Fault::What::start, .message = "there is none: the log is empty"};
  }
  if (is_broken_ || !unreadable_) return {};
  // Cut by a crash, or being written just now: the next start would end it.
  if (!is_ended) {
    cut_lines_.push_back(unreadable_->line);
    return {};
  }
  return std::exchange(unreadable_, std::nullopt);
}

}  // namespace capgate::egress
