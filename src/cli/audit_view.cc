#include "cli/audit_view.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using egress::AuditRecord;
using Kind = egress::AuditEvent::Kind;

// The kernel refuses without asking: there is no verdict, and it was denied all the same.
std::optional<bool> verdict(const AuditRecord& record) {
  return record.kind == Kind::refused ? false : record.allowed;
}

// '*' is any number of characters. Goes back to the last star only, so it takes |text| * |pattern|
// steps at most.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;
  std::size_t in = 0;
  std::optional<std::size_t> star;
  std::size_t retry = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = in;
    } else if (at < pattern.size() && to_lower(pattern[at]) == to_lower(text[in])) {
      ++at;
      ++in;
    } else if (star) {
      at = *star + 1;
      in = ++retry;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

std::string endpoint(const AuditRecord& record) {
  if (!record.port) return record.host;
  const bool is_ipv6 = record.host.find(':') != std::string::npos && !record.host.starts_with('[');
  return format("{}{}{}:{}", is_ipv6 ? "[" : "", record.host, is_ipv6 ? "]" : "", *record.port);
}

void add_part(std::string& out, std::string_view part) {
  if (part.empty()) return;
  if (!out.empty()) out += ", ";
  out += part;
}

std::string repetition(const AuditRecord& record) {
  if (!record.count) return "";
  if (record.kind == Kind::end) return counted(*record.count, "flow");
  return counted(*record.count, "time");
}

std::string request_line(const AuditRecord& record) {
  if (record.method.empty()) return "";
  std::string out = format("{} {}", record.method, record.path);
  if (record.status) out += format(" -> {}", *record.status);
  if (!record.secrets.empty()) out += format(" with {}", record.secrets);
  return out;
}

// Why, and what came of it.
std::string account(const AuditRecord& record) {
  std::string out = request_line(record);
  if (verdict(record) == false) {
    add_part(out, record.text.empty() ? record.reason : record.text);
  } else {
    add_part(out, record.rule);
    if (!record.address.empty()) add_part(out, format("at {}", record.address));
    add_part(out, record.text.empty() ? record.reason : record.text);
  }
  if (record.sent) add_part(out, counted(*record.sent, "byte") + " sent");
  if (record.received) add_part(out, counted(*record.received, "byte") + " received");
  if (record.milliseconds) add_part(out, format("{} ms", *record.milliseconds));
  add_part(out, repetition(record));
  if (!record.remedy.empty()) add_part(out, format("to allow it: {}", record.remedy));
  return out;
}

std::string_view verdict_word(const AuditRecord& record) {
  const auto allowed = verdict(record);
  if (!allowed) return "-";
  return *allowed ? "allowed" : "denied";
}

std::optional<std::uint64_t> unit_in_milliseconds(char unit) {
  switch (unit) {
    case 's': return 1000;
    case 'm': return 60'000;
    case 'h': return 3'600'000;
    case 'd': return 86'400'000;
    default: return {};
  }
}

// Columns as wide as their widest cell; the first two are words, the others numbers.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const auto& cells : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += i < 2 ? format("{:<{}}  ", cells[i], widths[i])
                   : format("{:>{}}{}", cells[i], widths[i], i + 1 < cells.size() ? "  " : "\n");
    }
  }
  return out;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view thing) {
  return format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

bool matches(const AuditFilter& filter, const AuditRecord& record) {
  if (filter.host && !matches_pattern(*filter.host, record.host)) return false;
  if (filter.port && filter.port != record.port) return false;
  if (filter.server && *filter.server != record.server) return false;
  if (filter.allowed && filter.allowed != verdict(record)) return false;
  if (filter.event && *filter.event != record.kind) return false;
  return !filter.since || egress::parse_audit_time(record.time).value_or(0) >= *filter.since;
}

std::optional<std::uint64_t> parse_since(std::string_view text, std::uint64_t now) {
  constexpr std::string_view midnight = "0000-00-00T00:00:00.000Z";
  if (text.empty()) return {};
  if (const auto unit = unit_in_milliseconds(text.back())) {
    const auto count = parse_decimal(text.substr(0, text.size() - 1));
    if (!count || *count > now / *unit) return {};
    return now - *count * *unit;
  }
  if (text.ends_with('Z')) text.remove_suffix(1);
  // A date, and then as many parts of the time as were written.
  constexpr std::size_t sizes[] = {10, 16, 19, 23};
  if (std::ranges::find(sizes, text.size()) == std::end(sizes)) return {};
  return egress::parse_audit_time(std::string(text).append(midnight.substr(text.size())));
}

std::string row(const AuditRecord& record) {
  std::string out = format("{}  {:<12}  {:<7}  {:<7}  {:<28}  {}", record.time, record.server,
                           egress::event_name(record.kind), verdict_word(record), endpoint(record),
                           account(record));
  while (out.ends_with(' ')) out.pop_back();
  return escape_for_terminal(out);
}

void AuditStats::add(const AuditRecord& record) {
  std::string host = record.host;
  if (record.flow) {
    const auto key = std::pair(record.sandbox, *record.flow);
    const auto known = flows_.find(key);
    if (known != flows_.end() && host.empty()) host = known->second;
    if (known != flows_.end() && record.kind == Kind::close) flows_.erase(known);
    if (record.kind != Kind::close && !host.empty()) flows_.insert_or_assign(key, host);
  }
  if (host.empty()) return;
  Totals& totals = totals_[{record.server, host}];
  const std::uint64_t times = record.count.value_or(1);
  const auto allowed = verdict(record);
  if (allowed == true) totals.allowed += times;
  if (allowed == false) totals.denied += times;
  if (allowed == true && record.kind == Kind::connect) totals.connections += 1;
  totals.sent += record.sent.value_or(0);
  totals.received += record.received.value_or(0);
  if (!record.remedy.empty()) remedies_[{record.server, record.remedy}] += times;
}

std::vector<std::pair<AuditStats::Pair, std::uint64_t>> AuditStats::top_remedies() const {
  constexpr std::size_t most = 10;
  std::vector<std::pair<Pair, std::uint64_t>> all(remedies_.begin(), remedies_.end());
  std::ranges::sort(all, [](const auto& a, const auto& b) {
    return std::tie(b.second, a.first) < std::tie(a.second, b.first);
  });
  if (all.size() > most) all.resize(most);
  return all;
}

std::string AuditStats::text() const {
  std::vector<std::vector<std::string>> rows = {
      {"server", "host", "connections", "allowed", "denied", "sent", "received"}};
  for (const auto& [key, totals] : totals_) {
    rows.push_back({escape_for_terminal(key.first), escape_for_terminal(key.second),
                    format("{}", totals.connections), format("{}", totals.allowed),
                    format("{}", totals.denied), format("{}", totals.sent),
                    format("{}", totals.received)});
  }
  std::string out = table(rows);
  if (!remedies_.empty()) out += "\nwhat would have allowed the most that was denied:\n";
  for (const auto& [key, times] : top_remedies()) {
    out += format("{:>8}  {}  {}\n", times, escape_for_terminal(key.first),
                  escape_for_terminal(key.second));
  }
  return out;
}

std::string AuditStats::json() const {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("hosts").begin_array();
  for (const auto& [key, totals] : totals_) {
    json.begin_object().key("server").string(key.first).key("host").string(key.second);
    json.key("connections").number(totals.connections);
    json.key("allowed").number(totals.allowed).key("denied").number(totals.denied);
    json.key("sent").number(totals.sent).key("received").number(totals.received).end_object();
  }
  json.end_array().key("remedies").begin_array();
  for (const auto& [key, times] : top_remedies()) {
    json.begin_object().key("server").string(key.first).key("capability").string(key.second);
    json.key("times").number(times).end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::cli
