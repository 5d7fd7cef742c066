// capgate audit: what servers did on the network, and whether the record of it is whole.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "cli/audit_files.h"
#include "cli/audit_view.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "sys/file.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

constexpr std::string_view verbs[] = {"tail", "verify", "search", "stats"};
constexpr std::string_view events[] = {"start",   "restart", "end",     "dns",   "connect",
                                       "refused", "inbound", "request", "close", "limit"};
constexpr Option options[] = {
    {.name = "--lines", .value = "N", .help = "tail: how many (20)", .alias = "-n"},
    {.name = "--follow", .help = "tail: go on as lines are written", .alias = "-f"},
    {.name = "--host", .value = "PATTERN", .help = "only this host; * stands for anything"},
    {.name = "--port", .value = "PORT", .help = "only this port"},
    {.name = "--server", .value = "NAME", .help = "only this server"},
    {.name = "--allowed", .help = "only what was allowed"},
    {.name = "--denied", .help = "only what was denied"},
    {.name = "--since", .value = "TIME", .help = "1h, 7d, 2026-11-15, 2026-11-15T12:00 (UTC)"},
    {.name = "--event", .value = "EVENT", .help = "only lines of this kind", .choices = events},
    json_option,
};

struct Request {
  std::string verb;
  std::vector<std::string> files;
  bool are_named = false;  // the files stand on the command line
  bool is_json = false;
  bool follows = false;
  std::uint64_t lines = 20;
  AuditFilter filter;
};

std::uint64_t now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

std::unexpected<int> refuse_value(std::string_view option, std::string_view value,
                                  std::string_view help, Output& output) {
  return std::unexpected(
      usage_error(format("{} cannot be {}", option, quoted(value)), help, output));
}

std::expected<std::optional<std::uint64_t>, int> read_number(const Arguments& arguments,
                                                             std::string_view option,
                                                             std::uint64_t most, Output& output) {
  const auto text = arguments.value(option);
  if (!text) return std::nullopt;
  const auto number = parse_decimal(*text);
  if (!number || *number > most) {
    return refuse_value(option, *text, format("write a number up to {}", most), output);
  }
  return number;
}

std::optional<std::string> read_text(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.value(option);
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::expected<AuditFilter, int> read_filter(const Arguments& arguments, Output& output) {
  AuditFilter filter{.host = read_text(arguments, "--host"),
                     .port = TRY(read_number(arguments, "--port", 65535, output)),
                     .server = read_text(arguments, "--server")};
  if (arguments.has("--allowed") && arguments.has("--denied")) {
    return std::unexpected(
        usage_error("--allowed and --denied leave nothing", "keep one of them", output));
  }
  if (arguments.has("--allowed") || arguments.has("--denied")) {
    filter.allowed = arguments.has("--allowed");
  }
  if (const auto since = arguments.value("--since")) {
    filter.since = parse_since(*since, now());
    if (!filter.since) {
      return refuse_value("--since", *since, "write 90s, 15m, 1h, 7d, or 2026-11-15T12:00 in UTC",
                          output);
    }
  }
  if (const auto event = arguments.value("--event")) filter.event = egress::event_of(*event);
  return filter;
}

// Options that the verb would not look at are mistakes.
std::expected<void, int> check_options(const Arguments& arguments, Output& output) {
  const std::string& verb = arguments.operands.front();
  for (const auto& [name, value] : arguments.options) {
    const bool is_for_tail = name == "--lines" || name == "--follow";
    const bool is_filter = !is_for_tail && name != "--json";
    if ((is_for_tail && verb != "tail") || (is_filter && verb == "verify")) {
      return std::unexpected(usage_error(
          format("{} does not go with {}", name, verb),
          is_for_tail ? "it belongs to audit tail" : "verify looks at every line", output));
    }
  }
  return {};
}

std::expected<Request, int> read_request(const Arguments& arguments, Output& output) {
  TRY(check_options(arguments, output));
  Request request{.verb = arguments.operands.front(),
                  .files = {arguments.operands.begin() + 1, arguments.operands.end()},
                  .are_named = arguments.operands.size() > 1,
                  .is_json = arguments.has("--json"),
                  .follows = arguments.has("--follow"),
                  .filter = TRY(read_filter(arguments, output))};
  request.lines = TRY(read_number(arguments, "--lines", 1'000'000, output)).value_or(20);
  if (!request.are_named) request.files = find_audit_files();
  if (request.files.empty() && !request.follows) {
    output.err += format(
        "capgate: there is no audit log in {}\nhelp: name a file, or see --audit "
        "of capgate run\n",
        escape_for_terminal(audit_directory()));
    return std::unexpected(Exit::unreadable);
  }
  return request;
}

// A log may be much larger than what should be held of it.
bool write_out(Output& output) {
  const auto written = sys::write_all(STDOUT_FILENO, output.out);
  if (!written && written.error().err != EPIPE) {
    output.err +=
        format("capgate: cannot write to standard output: {}\n", sys::reason(written.error()));
  }
  const auto said = sys::write_all(STDERR_FILENO, output.err);
  output = {};
  return written && said;
}

void show(const Request& request, const AuditEntry& entry, Output& output) {
  output.out += request.is_json ? entry.line : row(entry.record);
  output.out += '\n';
}

// ---- tail ---------------------------------------------------------------------------------------

struct Followed {
  std::string path;
  sys::LineReader lines;
};

std::expected<void, int> follow(const Request& request, const std::string& path,
                                std::uint64_t offset, std::vector<Followed>& followed,
                                Output& output) {
  if (!request.follows) return {};
  auto lines = open_audit_file(path, offset);
  if (!lines) return std::unexpected(cannot_read(path, lines.error(), output));
  followed.push_back({.path = path, .lines = *std::move(lines)});
  return {};
}

// Logs that were not there before, from their beginning; one that cannot be opened is tried again.
void find_new(const Request& request, std::vector<Followed>& followed) {
  if (request.are_named) return;
  for (const std::string& path : find_audit_files()) {
    if (std::ranges::find(followed, path, &Followed::path) != followed.end()) continue;
    if (auto lines = open_audit_file(path)) {
      followed.push_back({.path = path, .lines = *std::move(lines)});
    }
  }
}

// Ends with the signal that ends it, or when nobody reads its output any more.
int keep_following(const Request& request, std::vector<Followed>& followed, Output& output) {
  constexpr int interval = 200;  // milliseconds
  for (;;) {
    for (Followed& each : followed) {
      for (auto line = each.lines.next(); line && *line && (*line)->is_ended;
           line = each.lines.next()) {
        auto record = egress::read_audit_line((*line)->text);
        if (!record || !matches(request.filter, *record)) continue;
        show(request, {.record = *std::move(record), .line = std::string((*line)->text)}, output);
      }
    }
    if (!write_out(output)) return Exit::internal;
    pollfd reader{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
    if (::poll(&reader, 1, interval) > 0) return Exit::ok;
    find_new(request, followed);
  }
}

int tail(const Request& request, Output& output) {
  std::vector<AuditEntry> entries;
  std::vector<Followed> followed;
  for (const std::string& path : request.files) {
    auto last = last_records(path, request.filter, request.lines, output);
    if (!last) return last.error();
    std::ranges::move(last->entries, std::back_inserter(entries));
    if (auto done = follow(request, path, last->end, followed, output); !done) return done.error();
  }
  // Several servers run at the same time: their lines belong between each other.
  std::ranges::sort(entries, {}, [](const AuditEntry& entry) {
    return std::tie(entry.record.time, entry.record.sequence);
  });
  const std::size_t first = entries.size() - std::min<std::size_t>(entries.size(), request.lines);
  for (std::size_t i = first; i < entries.size(); ++i) show(request, entries[i], output);
  return request.follows ? keep_following(request, followed, output) : Exit::ok;
}

// ---- verify -------------------------------------------------------------------------------------

struct Verified {
  std::string path;
  egress::AuditChain chain;
  std::optional<egress::AuditChain::Fault> fault;
};

std::expected<Verified, int> verify_file(const std::string& path, Output& output) {
  auto lines = open_audit_file(path);
  if (!lines) return std::unexpected(cannot_read(path, lines.error(), output));
  Verified verified{.path = path};
  bool is_ended = true;
  while (is_ended) {
    const auto line = lines->next();
    if (!line) return std::unexpected(cannot_read(path, line.error(), output));
    if (!*line) break;
    is_ended = (*line)->is_ended;
    auto fault = verified.chain.feed((*line)->text);
    if (!verified.fault) verified.fault = std::move(fault);
  }
  auto fault = verified.chain.finish(is_ended);
  if (!verified.fault) verified.fault = std::move(fault);
  return verified;
}

std::string verified_text(const Verified& verified) {
  const std::string path = escape_for_terminal(verified.path);
  const egress::AuditChain& chain = verified.chain;
  if (verified.fault) {
    return format("{}:{}: broken ({}): {}\n", path, verified.fault->line,
                  egress::fault_name(verified.fault->what), verified.fault->message);
  }
  std::string out = format("{}: whole, {}, {}, head {}\n", path, counted(chain.lines(), "line"),
                           counted(chain.runs(), "run"), chain.head());
  if (chain.is_running()) {
    out += "  the last run has no end: it is still running, or lines were cut off at the end\n";
  }
  if (chain.unended_runs() > 0) {
    out += format("  without an end: {}, killed before it was written\n",
                  counted(chain.unended_runs(), "earlier run"));
  }
  for (const std::uint64_t line : chain.cut_lines()) {
    out += format("  line {} was cut short by a crash\n", line);
  }
  return out;
}

void add_verified(text::JsonWriter& json, const Verified& verified) {
  const egress::AuditChain& chain = verified.chain;
  json.begin_object().key("file").string(verified.path).key("whole").boolean(!verified.fault);
  json.key("lines").number(chain.lines()).key("runs").number(chain.runs());
  json.key("head").string(chain.head());
  json.key("ended").boolean(!chain.is_running());
  json.key("unendedRuns").number(chain.unended_runs()).key("cutLines").begin_array();
  for (const std::uint64_t line : chain.cut_lines()) json.number(line);
  json.end_array().key("broken");
  if (verified.fault) {
    json.begin_object().key("line").number(verified.fault->line);
    json.key("what").string(egress::fault_name(verified.fault->what));
    json.key("message").string(verified.fault->message).end_object();
  } else {
    json.null();
  }
  json.end_object();
}

int verify(const Request& request, Output& output) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("files").begin_array();
  bool is_whole = true;
  for (const std::string& path : request.files) {
    const auto verified = verify_file(path, output);
    if (!verified) return verified.error();
    is_whole &= !verified->fault;
    add_verified(json, *verified);
    if (!request.is_json) output.out += verified_text(*verified);
  }
  json.end_array().key("whole").boolean(is_whole).end_object();
  if (request.is_json) output.out += std::move(json).take() + "\n";
  return is_whole ? Exit::ok : Exit::integrity;
}

// ---- search and stats ---------------------------------------------------------------------------

int search(const Request& request, Output& output) {
  constexpr std::size_t much = 1 << 20;
  bool is_written = true;
  for (const std::string& path : request.files) {
    const auto show_match = [&](const AuditEntry& entry) {
      if (!is_written || !matches(request.filter, entry.record)) return;
      show(request, entry, output);
      if (output.out.size() > much) is_written = write_out(output);
    };
    if (auto done = each_record(path, show_match, output); !done) return done.error();
  }
  return is_written ? Exit::ok : Exit::internal;
}

int stats(const Request& request, Output& output) {
  AuditStats totals;
  for (const std::string& path : request.files) {
    const auto add = [&](const AuditEntry& entry) {
      if (matches(request.filter, entry.record)) totals.add(entry.record);
    };
    if (auto done = each_record(path, add, output); !done) return done.error();
  }
  output.out += request.is_json ? totals.json() : totals.text();
  return Exit::ok;
}

int run(const Arguments& arguments, Output& output) {
  const auto request = read_request(arguments, output);
  if (!request) return request.error();
  if (request->verb == "tail") return tail(*request, output);
  if (request->verb == "verify") return verify(*request, output);
  return request->verb == "search" ? search(*request, output) : stats(*request, output);
}

}  // namespace

Command audit_command() {
  return {.name = "audit",
          .operands = "tail|verify|search|stats [FILE...]",
          .summary = "Show what servers did on the network, and check that no line was changed.",
          .least_operands = 1,
          .most_operands = 100'000,
          .options = options,
          .details =
              "tail     the last lines, of all logs together\n"
              "verify   follow the hash chain through every line\n"
              "search   all lines that match\n"
              "stats    totals for each server and host, and what would allow what was denied\n"
              "\n"
              "Without FILE: every log in $XDG_STATE_HOME/capgate/audit (~/.local/state/...).\n"
              "Exit: 0 ok, 2 usage, 3 a file cannot be read or is no audit log, 8 a log is broken.",
          .examples =
              "  capgate audit tail --follow --denied\n"
              "  capgate audit verify github.jsonl\n"
              "  capgate audit search --host '*.github.com' --since 1h\n"
              "  capgate audit search --json --event close | jq .received\n"
              "  capgate audit stats --server github --since 7d",
          .run = run,
          .verbs = verbs};
}

}  // namespace capgate::cli
