#include "egress/audit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <span>

#include "base/digest.h"
#include "base/text.h"
#include "egress/audit_read.h"
#include "sys/lines.h"

namespace capgate::egress {

// What was learnt from the end of the file so far.
struct LastLines {
  std::size_t unreadable = 0;    // lines after the last readable one
  std::size_t size_of_last = 0;  // the very last line, readable or not
  bool is_first_of_log = false;  // it could be the first line ever, cut short
  bool has_record = false;
};

namespace {

constexpr std::size_t longest_foreign = 256;
// Capabilities and positions are ours, and of use only as a whole: a name alone may have 253 bytes.
constexpr std::size_t longest_own = 1024;

enum class Backslash : unsigned char { escaped, kept };

std::size_t printed_size(char c, Backslash backslash) {
  return is_printable_ascii(c) && (c != '\\' || backslash == Backslash::kept) ? 1 : 4;
}

// True if nothing has to be cut, counting no further than that.
bool fits(std::string_view text, std::size_t most, Backslash backslash) {
  std::size_t size = 0;
  for (const char c : text) {
    size += printed_size(c, backslash);
    if (size > most) return false;
  }
  return true;
}

std::string printable(std::string_view text, std::size_t most, Backslash backslash) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr std::string_view cut = "...";
  const bool is_whole = fits(text, most, backslash);
  const std::size_t room = is_whole ? most : most - cut.size();
  std::string out;
  for (const char c : text) {
    const std::size_t size = printed_size(c, backslash);
    if (out.size() + size > room) break;
    if (size == 1) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return is_whole ? out : out.append(cut);
}

void append_number(std::string& line, std::uint64_t value) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  line.append(digits.data(), end);
}

// `,"key":` for keys that need no escape.
void append_key(std::string& line, std::string_view key) {
  line.append(",\"").append(key).append("\":");
}

void append_quoted(std::string& line, std::string_view printed) {
  line += '"';
  for (const char c : printed) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

struct Text {
  std::string_view key;
  std::string_view value;
  std::size_t most = longest_foreign;
  Backslash backslash = Backslash::kept;
};

void append_text(std::string& line, const Text& text) {
  if (text.value.empty()) return;
  append_key(line, text.key);
  const bool is_plain =
      text.value.size() <= text.most && std::ranges::all_of(text.value, [](char c) {
        return is_printable_ascii(c) && c != '"' && c != '\\';
      });
  if (is_plain) {
    line.append("\"").append(text.value).append("\"");
  } else {
    append_quoted(line, printable(text.value, text.most, text.backslash));
  }
}

// For words that are known to be plain.
void append_word(std::string& line, std::string_view key, std::string_view word) {
  append_key(line, key);
  line.append("\"").append(word).append("\"");
}

void append_optional(std::string& line, std::string_view key, std::optional<std::uint64_t> value) {
  if (!value) return;
  append_key(line, key);
  append_number(line, *value);
}

// Zero means none.
void append_positive(std::string& line, std::string_view key, std::uint64_t value) {
  if (value > 0) append_optional(line, key, value);
}

std::uint64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec < 0) return 0;
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::optional<std::uint64_t> size_of(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return {};
  return static_cast<std::uint64_t>(info.st_size);
}

bool ends_with_newline(int fd, std::uint64_t size) {
  char last = '\0';
  return ::pread(fd, &last, 1, static_cast<off_t>(size - 1)) == 1 && last == '\n';
}

bool could_begin_a_log(std::string_view line) {
  constexpr std::string_view first = "{\"seq\":1,\"time\":\"";
  return line.starts_with(first) || first.starts_with(line);
}

std::string name_or_dash(std::string_view text) { return text.empty() ? "-" : audit_text(text); }

}  // namespace

std::string_view event_name(AuditEvent::Kind kind) {
  switch (kind) {
    case AuditEvent::Kind::start: return "start";
    case AuditEvent::Kind::restart: return "restart";
    case AuditEvent::Kind::end: return "end";
    case AuditEvent::Kind::dns: return "dns";
    case AuditEvent::Kind::connect: return "connect";
    case AuditEvent::Kind::refused: return "refused";
    case AuditEvent::Kind::inbound: return "inbound";
    case AuditEvent::Kind::close: return "close";
    case AuditEvent::Kind::limit: return "limit";
    case AuditEvent::Kind::request: return "request";
  }
  return "";
}

std::string audit_text(std::string_view foreign) {
  return printable(foreign, longest_foreign, Backslash::escaped);
}

AuditLog::AuditLog(int fd, const Origin& origin)
    : fd_(fd),
      origin_{.sandbox = name_or_dash(origin.sandbox), .server = name_or_dash(origin.server)},
      previous_(64, '0') {
  line_.reserve(longest_audit_line);
  const auto size = size_of(fd_);
  if (!size) {
    problem_ = std::strerror(errno);
    is_usable_ = false;
  } else if (*size > 0) {
    go_on(*size);
  }
}

// From the last line to the first one of this run.
bool AuditLog::visit(std::string_view line, LastLines& last) {
  const auto record = read_audit_line(line);
  if (!last.has_record && last.unreadable == 0) {
    sha256_hex(line, std::span<char, 64>(previous_.data(), 64));
    last.size_of_last = line.size();
    last.is_first_of_log = could_begin_a_log(line);
  }
  if (!record) return !last.has_record && ++last.unreadable <= 2;
  if (!last.has_record) {
    last.has_record = true;
    sequence_ = record->sequence + last.unreadable;
    goes_on_ = record->sandbox == origin_.sandbox;
  }
  if (record->sandbox != origin_.sandbox) return false;
  last_flow_ = std::max(last_flow_, record->flow.value_or(0));
  return record->kind != AuditEvent::Kind::start;
}

void AuditLog::go_on(std::uint64_t size) {
  ends_line_ = !ends_with_newline(fd_, size);
  LastLines last;
  const auto done =
      sys::each_line_backwards(fd_, ends_line_ ? size : size - 1, longest_audit_line,
                               [&](std::string_view line) { return visit(line, last); });
  const bool is_cut_twice = last.has_record && last.unreadable == 2 && ends_line_;
  const bool is_first_cut = ends_line_ && last.is_first_of_log && last.size_of_last == size;
  if (last.has_record && last.unreadable <= 1) return;
  if (!done) {
    problem_ = sys::reason(done.error());
  } else if (is_first_cut) {
    sequence_ = 1;
    return;
  } else if (is_cut_twice) {
    // The line that ended a cut one was cut too. It told of nothing that happened; without it
    // there is only one cut line, which the chain can hold.
    const std::uint64_t before = size - last.size_of_last - 1;
    if (::ftruncate(fd_, static_cast<off_t>(before)) == 0) return go_on(before);
    problem_ = std::strerror(errno);
  } else {
    problem_ = "it is not an audit log, or its last lines are damaged";
  }
  is_usable_ = false;
}

// In the order in which read_audit_line reads.
void AuditLog::compose(const AuditEvent& event) {
  line_.assign(ends_line_ ? "\n" : "").append("{\"seq\":");
  append_number(line_, sequence_ + 1);
  line_.append(",\"time\":\"");
  append_audit_time(line_, milliseconds_now());
  line_ += '"';
  append_text(line_, {"sandbox", origin_.sandbox});
  append_text(line_, {"server", origin_.server});
  append_word(line_, "event", event_name(event.kind));
  append_positive(line_, "flow", event.flow);
  append_text(line_, {"host", event.host, longest_foreign, Backslash::escaped});
  append_positive(line_, "port", event.port);
  append_text(line_, {"address", event.address});
  append_text(line_, {"serverName", event.server_name, longest_foreign, Backslash::escaped});
  append_text(line_, {"protocol", event.protocol});
  append_text(line_, {"method", event.method, longest_foreign, Backslash::escaped});
  append_text(line_, {"path", event.path, longest_foreign, Backslash::escaped});
  append_positive(line_, "status", event.status);
  append_text(line_, {"secrets", event.secrets, longest_own});
  if (event.allowed) append_word(line_, "verdict", *event.allowed ? "allowed" : "denied");
  append_text(line_, {"rule", event.rule, longest_own});
  append_text(line_, {"at", event.position, longest_own});
  append_text(line_, {"reason", event.reason});
  append_text(line_, {"text", event.text});
  append_text(line_, {"remedy", event.remedy, longest_own});
  append_optional(line_, "sent", event.sent);
  append_optional(line_, "received", event.received);
  append_optional(line_, "ms", event.milliseconds);
  append_optional(line_, "count", event.count);
  append_word(line_, "prev", previous_);
  line_.append("}\n");
}

bool AuditLog::take_back() {
  if (!excess_) return true;
  if (::ftruncate(fd_, static_cast<off_t>(*excess_)) != 0) return false;
  excess_.reset();
  return true;
}

// One write for the whole line: whoever reads the file meanwhile sees a newline only after all of
// the line.
bool AuditLog::write_line() {
  ssize_t written = 0;
  do {
    written = ::write(fd_, line_.data(), line_.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line_.size())) return true;
  problem_ = std::strerror(written < 0 ? errno : ENOSPC);
  if (written > 0) {
    const auto size = size_of(fd_);
    is_usable_ = size.has_value();
    if (size) excess_ = *size - static_cast<std::uint64_t>(written);
    (void)take_back();  // else before the next line
  }
  return false;
}

bool AuditLog::append(const AuditEvent& event) {
  is_written_ = false;
  if (!is_usable_ || !take_back()) return false;
  compose(event);
  if (!write_line()) return false;
  const std::size_t begin = ends_line_ ? 1 : 0;
  const auto line = std::string_view(line_).substr(begin, line_.size() - begin - 1);
  sha256_hex(line, std::span<char, 64>(previous_.data(), 64));
  ++sequence_;
  ends_line_ = false;
  is_written_ = true;
  return true;
}

}  // namespace capgate::egress
