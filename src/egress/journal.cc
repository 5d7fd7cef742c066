#include "egress/journal.h"

#include <poll.h>
#include <unistd.h>

#include "base/format.h"
#include "base/text.h"

namespace capgate::egress {
namespace {

constexpr std::chrono::minutes quiet{1};
// A server could invent endless names: of more than this many in a minute only the number is told.
constexpr std::size_t most_subjects = 512;

std::string print_destination(std::string_view host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  return is_ipv6 ? format("[{}]:{}", host, port) : format("{}:{}", host, port);
}

// False if it is new and as many were met within this minute. `time_of` gives an entry's time.
template <typename Map, typename TimeOf>
bool has_room(Map& map, std::string_view key, Time now, TimeOf time_of) {
  if (map.size() < most_subjects || map.contains(key)) return true;
  std::erase_if(map, [&](const auto& entry) { return now - time_of(entry.second) >= quiet; });
  return map.size() < most_subjects;
}

AuditEvent event_of(const FlowRecord& record, const Flow& flow, AuditEvent::Kind kind) {
  AuditEvent event{.kind = kind};
  event.flow = record.number;
  event.host = record.host;
  event.port = record.port;
  event.address = record.address;
  event.protocol = record.protocol;
  if (flow.said) event.server_name = flow.said->text;
  return event;
}

}  // namespace

Journal::Journal(Loop& loop, const Policy& policy, int audit_fd, int stderr_fd)
    : loop_(loop),
      policy_(policy),
      log_(audit_fd, {.sandbox = policy.sandbox, .server = policy.server}),
      stderr_(stderr_fd),
      flows_(log_.goes_on() ? log_.last_flow() : 0) {}

bool Journal::begin() {
  return log_.append({.kind = log_.goes_on() ? AuditEvent::Kind::restart : AuditEvent::Kind::start,
                      .text = policy_.hash});
}

void Journal::end() { (void)log_.append({.kind = AuditEvent::Kind::end, .count = flows_}); }

bool Journal::allow(const FlowRecord& record, const Flow& flow, const Verdict& verdict) {
  AuditEvent event = event_of(record, flow, AuditEvent::Kind::connect);
  event.allowed = true;
  event.rule = verdict.rule->text;
  event.position = verdict.rule->position;
  if (verdict.inner_name_unverified) event.text = "inner name not verified";
  return log_.append(event);
}

bool Journal::allow_inbound(const FlowRecord& record) {
  AuditEvent event = event_of(record, {}, AuditEvent::Kind::inbound);
  event.allowed = true;
  return log_.append(event);
}

void Journal::deny(const FlowRecord& record, const Flow& flow, const Verdict& verdict) {
  const std::string text = explain(verdict, flow);
  const std::string better = remedy(verdict, flow);
  AuditEvent event = event_of(record, flow, AuditEvent::Kind::connect);
  if (verdict.rule != nullptr) {
    event.rule = verdict.rule->text;
    event.position = verdict.rule->position;
  }
  event.reason = reason_name(verdict.reason);
  event.text = text;
  event.remedy = better;
  tell_refusal(record, flow, event);
}

void Journal::refuse(const FlowRecord& record, const Flow& flow, std::string_view reason,
                     std::string_view text) {
  AuditEvent event = event_of(record, flow, AuditEvent::Kind::connect);
  event.reason = reason;
  event.text = text;
  tell_refusal(record, flow, event);
}

void Journal::tell_refusal(const FlowRecord& record, const Flow& /*flow*/, AuditEvent event) {
  event.allowed = false;
  (void)log_.append(event);
  const std::string where = print_destination(record.host, record.port);
  std::string line = format("connection to {} refused: {}", where, event.text);
  if (!event.remedy.empty()) line += format("; {} would allow it", event.remedy);
  say(where, line);
}

void Journal::close(const FlowRecord& record, std::uint64_t sent, std::uint64_t received,
                    std::string_view reason) {
  AuditEvent event = event_of(record, {}, AuditEvent::Kind::close);
  event.reason = reason;
  event.sent = sent;
  event.received = received;
  event.milliseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(loop_.now() - record.started).count());
  if (record.rule != nullptr) {
    event.rule = record.rule->text;
    event.position = record.rule->position;
  }
  (void)log_.append(event);
}

void Journal::tell_dns(const DnsReply& reply) {
  const bool answered = reply.kind == DnsReply::Kind::answered;
  std::uint64_t count = 0;
  if (!is_news(Subject::name, format("{}{}", answered ? "+" : "-", reply.name), count)) return;
  AuditEvent event{.kind = AuditEvent::Kind::dns};
  event.host = reply.name;
  event.allowed = answered;
  event.count = count;
  std::string better;
  if (!answered) {
    event.reason = reply.kind == DnsReply::Kind::malformed ? "malformed" : "no-rule";
    // Which port the program wants is not known yet.
    if (auto host = core::parse_host(reply.name)) {
      better = remedy({.reason = Reason::no_rule}, {.host = *std::move(host), .port = 443});
    }
    event.remedy = better;
    std::string line = format("name {} refused: no rule covers it", reply.name);
    if (!better.empty()) line += format("; {}, or the port that it needs, would allow it", better);
    say(reply.name, line);
  }
  (void)log_.append(event);
}

void Journal::tell_refused(const core::HostPattern& host, const RefusedPort& port) {
  const bool is_loopback = port.address == loopback_ipv4 || port.address == loopback_ipv6;
  const auto localhost = core::parse_host("localhost");
  const Flow flow{.host = is_loopback && localhost ? *localhost : host, .port = port.port};
  const std::string where = print_destination(flow.host.text, port.port);
  std::uint64_t count = 0;
  if (!is_news(Subject::port, format("{} {}", port.protocol, where), count)) return;
  AuditEvent event{.kind = AuditEvent::Kind::refused};
  event.host = flow.host.text;
  event.port = port.port;
  event.protocol = port.protocol;
  event.allowed = false;
  event.reason = port.protocol == "udp" ? "no-udp" : "no-rule";
  event.count = count;
  std::string better;
  if (port.protocol == "tcp") better = remedy({.reason = Reason::no_rule}, flow);
  event.remedy = better;
  (void)log_.append(event);
  std::string line = format("{} to {} refused: nothing is declared there", port.protocol, where);
  if (!better.empty()) line += format("; {} would allow it", better);
  say(where, line);
}

void Journal::tell_limit(std::string_view reason, std::string_view text) {
  std::uint64_t count = 0;
  if (!is_news(Subject::limit, reason, count)) return;
  AuditEvent event{.kind = AuditEvent::Kind::limit};
  event.allowed = false;
  event.reason = reason;
  event.text = text;
  event.count = count;
  (void)log_.append(event);
  write_to_stderr(std::string(text));
}

bool Journal::is_news(Subject subject, std::string_view key, std::uint64_t& count) {
  std::string name = format("{}{}", static_cast<char>('0' + static_cast<int>(subject)), key);
  // Limits are few, and one of them tells of this one.
  if (subject != Subject::limit &&
      !has_room(repeats_, name, loop_.now(), [](const Repeat& repeat) { return repeat.since; })) {
    tell_limit("subjects", "too many names and ports in a minute to tell of each");
    return false;
  }
  auto& repeat = repeats_[std::move(name)];
  ++repeat.count;
  if (repeat.since != Time{} && loop_.now() - repeat.since < quiet) return false;
  count = std::exchange(repeat.count, 0);
  repeat.since = loop_.now();
  return true;
}

void Journal::say(std::string_view key, const std::string& text) {
  if (!has_room(said_, key, loop_.now(), [](Time time) { return time; })) return;
  auto& last = said_[std::string(key)];
  if (last != Time{} && loop_.now() - last < quiet) return;
  last = loop_.now();
  write_to_stderr(text);
}

void Journal::write_to_stderr(const std::string& text) {
  // Shorter than PIPE_BUF: a pipe that can be written takes it whole.
  const std::string line = format("capgate: {}\n", audit_text(text));
  pollfd poll{.fd = stderr_, .events = POLLOUT, .revents = 0};
  if (::poll(&poll, 1, 0) == 1 && (poll.revents & POLLOUT) != 0) {
    (void)!::write(stderr_, line.data(), line.size());
  }
}

}  // namespace capgate::egress
