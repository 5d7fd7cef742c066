#include "egress/journal.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/text.h"

namespace capgate::egress {
namespace {

constexpr std::chrono::minutes quiet{1};
// A server could invent endless names: of more than this many in a minute only the number is told.
constexpr std::size_t most_subjects = 512;
// The same for requests that are refused.
constexpr std::size_t most_refusals = 1000;

std::string print_destination(std::string_view host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  return is_ipv6 ? format("[{}]:{}", host, port) : format("{}:{}", host, port);
}

// What to add to a refusal. Not if it would have to be cut or escaped: then it is none.
std::string print_remedy(std::string_view remedy, std::string_view or_else = "") {
  constexpr std::size_t longest = 400;
  const bool is_plain =
      std::ranges::all_of(remedy, [](char c) { return c >= ' ' && c <= '~' && c != '\\'; });
  if (remedy.empty() || remedy.size() > longest || !is_plain) return {};
  return format("; {}{} would allow it", remedy, or_else);
}

// The one that all rules for other hosts have, or that of HTTPS.
std::uint16_t likely_port(const std::vector<Rule>& rules) {
  constexpr std::uint16_t https = 443;
  std::optional<std::uint16_t> port;
  for (const Rule& rule : rules) {
    const core::Endpoint& endpoint = rule.connect.endpoint;
    if (core::names_private_endpoint(endpoint.host)) continue;
    if (!endpoint.port || (port && port != endpoint.port)) return https;
    port = endpoint.port;
  }
  return port.value_or(https);
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

void Journal::end() {
  tell_repeats();
  (void)log_.append({.kind = AuditEvent::Kind::end, .count = flows_});
}

bool Journal::allow(const FlowRecord& record, const Flow& flow, const Verdict& verdict) {
  AuditEvent event = event_of(record, flow, AuditEvent::Kind::connect);
  event.allowed = true;
  event.rule = verdict.rule->text;
  event.position = verdict.rule->position;
  if (verdict.inner_name_unverified) event.text = "inner name not verified";
  if (record.is_reused) event.reason = "reused";
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
  say(where, format("connection to {} refused: {}{}", audit_text(where), audit_text(event.text),
                    print_remedy(event.remedy)));
}

bool Journal::has_room_for_refusal() {
  if (loop_.now() - refusals_since_ >= quiet) {
    refusals_since_ = loop_.now();
    refusals_ = 0;
  }
  return ++refusals_ <= most_refusals;
}

bool Journal::request(const FlowRecord& record, const RequestNote& note) {
  if (!note.reason.empty() && log_.is_written() && !has_room_for_refusal()) {
    tell_limit("requests", "too many refused requests in a minute to tell of each");
    return log_.is_written();
  }
  AuditEvent event{.kind = AuditEvent::Kind::request};
  event.flow = record.number;
  event.host = record.host;
  event.port = record.port;
  event.method = note.method;
  event.path = note.path;
  event.status = static_cast<std::uint64_t>(std::max(note.status, 0));
  event.secrets = note.secrets;
  event.allowed = note.reason.empty();
  if (note.rule != nullptr) {
    event.rule = note.rule->text;
    event.position = note.rule->position;
  }
  event.reason = note.reason;
  event.text = note.text;
  event.remedy = note.remedy;
  const bool is_written = log_.append(event);
  if (note.reason.empty()) return is_written;
  const std::string where = print_destination(record.host, record.port);
  say(format("{} {}", where, note.reason),
      format("request {} {} to {} refused: {}{}", audit_text(note.method), audit_text(note.path),
             audit_text(where), audit_text(note.text), print_remedy(note.remedy)));
  return is_written;
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

Journal::Hint Journal::hint_for(const core::HostPattern& host) const {
  Flow flow{.host = host, .port = likely_port(policy_.rules)};
  bool is_port_guessed = true;
  for (const core::NetConnect& known : policy_.lacking) {
    if (known.endpoint.host == host) return {.remedy = print(core::Capability(known))};
    // Of a wildcard the port alone: the server chose the name, and no other is opened for it.
    if (!known.endpoint.port || !matches(known.endpoint.host, host)) continue;
    flow.port = *known.endpoint.port;
    is_port_guessed = false;
  }
  return {.remedy = remedy({.reason = Reason::no_rule}, flow), .is_port_guessed = is_port_guessed};
}

void Journal::tell_dns(const DnsReply& reply) {
  const bool answered = reply.kind == DnsReply::Kind::answered;
  Repeat* repeat = news(Subject::name, format("{}{}", answered ? "+" : "-", reply.name));
  if (repeat == nullptr) return;
  Told& told = repeat->told;
  told = {.kind = AuditEvent::Kind::dns, .host = reply.name, .allowed = answered};
  if (!answered) {
    told.reason = reply.kind == DnsReply::Kind::malformed ? "malformed" : "no-rule";
    Hint hint;
    if (const auto host = core::parse_host(reply.name)) hint = hint_for(*host);
    told.remedy = hint.remedy;
    say(reply.name,
        format(
            "name {} refused: no rule covers it{}", audit_text(reply.name),
            print_remedy(told.remedy, hint.is_port_guessed ? ", or the port that it needs," : "")));
  }
  tell(*repeat);
}

void Journal::tell_refused(const core::HostPattern& host, const RefusedPort& port) {
  const bool is_loopback = port.address == loopback_ipv4 || port.address == loopback_ipv6;
  const auto localhost = core::parse_host("localhost");
  const Flow flow{.host = is_loopback && localhost ? *localhost : host, .port = port.port};
  const std::string where = print_destination(flow.host.text, port.port);
  Repeat* repeat = news(Subject::port, format("{} {}", port.protocol, where));
  if (repeat == nullptr) return;
  Told& told = repeat->told;
  told = {.kind = AuditEvent::Kind::refused,
          .host = flow.host.text,
          .port = port.port,
          .protocol = std::string(port.protocol),
          .reason = port.protocol == "udp" ? "no-udp" : "no-rule"};
  if (port.protocol == "tcp") told.remedy = remedy({.reason = Reason::no_rule}, flow);
  tell(*repeat);
  const std::string_view why =
      port.protocol == "udp" ? "only TCP and DNS pass" : "nothing is declared there";
  say(where, format("{} to {} refused: {}{}", port.protocol, audit_text(where), why,
                    print_remedy(told.remedy)));
}

void Journal::tell_limit(std::string_view reason, std::string_view text) {
  Repeat* repeat = news(Subject::limit, reason);
  if (repeat == nullptr) return;
  repeat->told = {
      .kind = AuditEvent::Kind::limit, .reason = std::string(reason), .text = std::string(text)};
  tell(*repeat);
  write_to_stderr(audit_text(text));
}

// A subject of an earlier minute makes room, once its repeats are told.
bool Journal::has_room(std::string_view name) {
  if (repeats_.size() < most_subjects || repeats_.contains(name)) return true;
  for (auto entry = repeats_.begin(); entry != repeats_.end();) {
    Repeat& repeat = entry->second;
    const bool is_recent = loop_.now() - repeat.since < quiet;
    if (!is_recent && repeat.count > 0) tell(repeat);
    entry = is_recent ? std::next(entry) : repeats_.erase(entry);
  }
  return repeats_.size() < most_subjects;
}

Journal::Repeat* Journal::news(Subject subject, std::string_view key) {
  std::string name = format("{}{}", static_cast<char>('0' + static_cast<int>(subject)), key);
  // Limits are few, and one of them tells of this one.
  if (subject != Subject::limit && !has_room(name)) {
    tell_limit("subjects", "too many names and ports in a minute to tell of each");
    return nullptr;
  }
  auto& repeat = repeats_[std::move(name)];
  ++repeat.count;
  if (repeat.since != Time{} && loop_.now() - repeat.since < quiet) return nullptr;
  repeat.since = loop_.now();
  return &repeat;
}

void Journal::tell(Repeat& repeat) {
  const Told& told = repeat.told;
  AuditEvent event{.kind = told.kind};
  event.host = told.host;
  event.port = told.port;
  event.protocol = told.protocol;
  event.allowed = told.allowed;
  event.reason = told.reason;
  event.text = told.text;
  event.remedy = told.remedy;
  event.count = std::exchange(repeat.count, 0);
  (void)log_.append(event);
}

void Journal::tell_repeats() {
  for (auto& [key, repeat] : repeats_) {
    if (repeat.count > 0) tell(repeat);
  }
}

void Journal::say(std::string_view key, const std::string& text) {
  const bool is_new = !said_.contains(key);
  if (is_new && said_.size() >= most_subjects) {
    std::erase_if(said_, [&](const auto& entry) { return loop_.now() - entry.second >= quiet; });
    if (said_.size() >= most_subjects) return;
  }
  auto& last = said_[std::string(key)];
  if (last != Time{} && loop_.now() - last < quiet) return;
  last = loop_.now();
  write_to_stderr(text);
}

void Journal::write_to_stderr(const std::string& text) {
  // Its parts are short, so it is shorter than PIPE_BUF: a pipe that can be written takes it whole.
  const std::string line = format("capgate: {}\n", text);
  pollfd poll{.fd = stderr_, .events = POLLOUT, .revents = 0};
  if (::poll(&poll, 1, 0) == 1 && (poll.revents & POLLOUT) != 0) {
    (void)!::write(stderr_, line.data(), line.size());
  }
}

}  // namespace capgate::egress
