// capgate approve: a server as it is now, shown with what changed, and then kept as approved.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/approve_show.h"
#include "cli/approved.h"
#include "cli/caller.h"
#include "cli/candidate.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/profile.h"
#include "cli/project.h"
#include "clients/approvals.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

using clients::Approval;
using clients::Approvals;
using text::JsonWriter;

constexpr Option options[] = {
    {.name = "--yes", .help = "without asking; needed where there is no terminal"},
    {.name = "--no-tools", .help = "do not start the server: its tools are not compared later"},
    {.name = "--lock",
     .value = "FILE",
     .help = "write it to this file of pins, too: a project's capgate.lock"},
    {.name = "--manifest",
     .value = "FILE",
     .help = "of a server without an entry, with --lock",
     .alias = "-m"},
    {.name = "--list", .help = "show what was approved, of all projects"},
    {.name = "--revoke", .value = "NAME", .help = "forget what was approved of this server here"},
    config_option,
    set_option,
    live_allow_option,
    timeout_option,
    json_option,
};

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return "";
  }
  return text;
}

int fail(std::string_view message, Output& output) {
  output.err += format("capgate: {}\n", message);
  return Exit::unreadable;
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

int list(const Arguments& arguments, Output& output) {
  const auto all = Approvals(approvals_directory()).all();
  if (!all) return fail(all.error(), output);
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("approvals").begin_array();
    for (const Approval& each : *all) {
      json.begin_object().key("directory").string(each.directory);
      json.key("server").string(each.server).key("hash").string(each.hash);
      json.key("date").string(each.date);
      write_texts(json.key("policy"), each.policy);
      if (each.pin) write_pin(*each.pin, json.key("pin"));
      json.end_object();
    }
    json.end_array().end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  for (const Approval& each : *all) {
    const std::size_t tools = each.pin && each.pin->tools ? each.pin->tools->size() : 0;
    output.out += format(
        "{}  {}  {}{}\n", each.date, escape_for_terminal(each.server),
        each.directory.empty() ? "your own configuration" : escape_for_terminal(each.directory),
        tools == 0 ? "" : format("  {} tool{}", tools, tools == 1 ? "" : "s"));
  }
  if (all->empty()) output.err += "nothing is approved\n";
  return Exit::ok;
}

std::vector<std::string> scopes(const Arguments& arguments) {
  const clients::Places places = config_places(arguments);
  if (places.flag.empty()) return {places.directory, ""};
  return {approval_scope(
      {.server = {}, .layer = clients::Layer::flag, .file = places.flag, .text = {}})};
}

int revoke(const Arguments& arguments, Output& output) {
  const std::string name(*arguments.value("--revoke"));
  const Approvals approvals(approvals_directory());
  // This project's, or that of --config; else the user's own.
  std::expected<bool, std::string> revoked = false;
  for (const std::string& scope : scopes(arguments)) {
    revoked = approvals.revoke(scope, name);
    if (!revoked) return fail(revoked.error(), output);
    if (*revoked) break;
  }
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("revoked").boolean(*revoked);
    json.end_object();
    output.out += std::move(json).take() + "\n";
  }
  if (*revoked) {
    output.err += format("{} is not approved any more\n", quoted(name));
    return Exit::ok;
  }
  return usage_error(format("nothing of {} was approved here", quoted(name)),
                     "capgate approve --list shows what was, and where", output);
}

enum class Answer : unsigned char { yes, no, nobody };

Answer ask(std::string_view question) {
  if (!sys::is_terminal(STDIN_FILENO) || !sys::is_terminal(STDERR_FILENO)) return Answer::nobody;
  if (!sys::write_all(STDERR_FILENO, question)) return Answer::nobody;
  std::string line;
  char c = 0;
  while (line.size() < 16 && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  const std::string answer = to_lower(trim(line));
  return answer == "y" || answer == "yes" ? Answer::yes : Answer::no;
}

// ---- the lock -----------------------------------------------------------------------------------

// The old file or the new one, never a part; not through a link that somebody put there.
sys::Sys<void> write_lock(const std::string& file, std::string_view text) {
  struct stat info{};
  if (::lstat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return std::unexpected(sys::SysError{"open", S_ISLNK(info.st_mode) ? ELOOP : EINVAL, file});
  }
  const std::string fresh = format("{}.{}", file, ::getpid());
  const sys::Fd made(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (made.get() < 0) return std::unexpected(sys::SysError{"open", errno, fresh});
  auto written = sys::write_all(made.get(), text);
  if (written && ::fsync(made.get()) != 0) {
    written = std::unexpected(sys::SysError{"fsync", errno, fresh});
  }
  if (written && ::rename(fresh.c_str(), file.c_str()) != 0) {
    written = std::unexpected(sys::SysError{"rename", errno, file});
  }
  if (!written) (void)::unlink(fresh.c_str());
  return written;
}

// The other servers of the lock stay as they are.
std::expected<void, int> keep_in_lock(const Review& review, Output& output) {
  std::vector<clients::Pin> pins;
  auto text = clients::read_regular_file(review.lock, clients::Links::are_refused);
  if (!text && text.error() != ENOENT) {
    return std::unexpected(fail(
        format("cannot read {}: {}", escape_for_terminal(review.lock), std::strerror(text.error())),
        output));
  }
  if (text) {
    auto read = clients::parse_pins(*std::move(text));
    if (!read) {
      return std::unexpected(fail(format("{} cannot be read: {}", escape_for_terminal(review.lock),
                                         escape_for_terminal(read.error())),
                                  output));
    }
    pins = *std::move(read);
  }
  std::erase_if(pins, [&](const auto& pin) { return pin.server == review.now.server; });
  pins.push_back(review.now);
  const std::string printed = clients::print_pins(std::move(pins));
  if (!clients::parse_pins(printed)) {
    return std::unexpected(fail(
        format("what {} says of its tools is too much for a lock", review.now.server), output));
  }
  if (const auto written = write_lock(review.lock, printed); !written) {
    return std::unexpected(fail(format("cannot write {}: {}", escape_for_terminal(review.lock),
                                       sys::reason(written.error())),
                                output));
  }
  return {};
}

// ---- approve ------------------------------------------------------------------------------------

int keep(const Review& review, const Arguments& arguments, Output& output) {
  const Candidate& candidate = review.candidate;
  if (!review.lock.empty()) {
    if (auto kept = keep_in_lock(review, output); !kept) return kept.error();
  }
  if (candidate.has_entry()) {
    const Approval approval{.directory = candidate.scope,
                            .server = candidate.server,
                            .hash = candidate.hash,
                            .policy = core::policy_lines(candidate.loaded.policy),
                            .date = now(),
                            .pin = review.now};
    if (auto kept = Approvals(approvals_directory()).keep(approval); !kept) {
      return fail(kept.error(), output);
    }
  }
  if (arguments.has("--json")) output.out += review_json(review, true);
  output.err += format("approved; a change of it has to be approved again\n");
  return Exit::ok;
}

std::expected<Candidate, int> read_candidate(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.operands.front();
  const std::vector<std::string> command(arguments.operands.begin() + 1, arguments.operands.end());
  const auto manifest = arguments.value("--manifest");
  if (!manifest) return candidate_of_entry(name, command, arguments, output);
  if (arguments.has("--lock")) {
    return candidate_of_manifest(name, std::string(*manifest), command, arguments, output);
  }
  return std::unexpected(usage_error("-m without --lock would approve nothing",
                                     "your own record is of entries of capgate.yaml; write --lock "
                                     "capgate.lock",
                                     output));
}

// The record of the user, else what the lock has.
std::expected<void, int> find_before(Review& review, std::optional<Approval>& record,
                                     Output& output) {
  const Candidate& candidate = review.candidate;
  if (candidate.has_entry()) {
    auto found = Approvals(approvals_directory()).find(candidate.scope, candidate.server);
    if (!found) return std::unexpected(fail(found.error(), output));
    record = *std::move(found);
  }
  if (record && record->pin) {
    review.before = record->pin;
    review.is_own_record = true;
    review.before_name = format("what you approved on {}", escape_for_terminal(record->date));
  } else if (!review.lock.empty()) {
    auto found = find_locked_pin(review.lock, candidate.server, output);
    if (!found) return std::unexpected(found.error());
    review.before = *std::move(found);
    review.before_name = format("what {} says", escape_for_terminal(review.lock));
  }
  if (review.before) review.change = diff(*review.before, review.now);
  return {};
}

std::expected<clients::Pin, int> read_pin(const Candidate& candidate, const Arguments& arguments,
                                          Output& output) {
  const auto package = clients::package_of(candidate.command);
  const auto lock = clients::read_lock({.base = data_base()});
  const auto* locked = package && lock ? clients::find_locked(*lock, package->package) : nullptr;
  if (locked != nullptr) {
    if (const auto checked = check_package_bytes(*locked); !checked) {
      (void)usage_error(checked.error().message, checked.error().help, output);
      return std::unexpected(Exit::integrity);
    }
  }
  const bool asks = !arguments.has("--no-tools") && !candidate.command.empty();
  return asks ? live_pin(candidate, arguments, output) : pin_of(candidate.subject(), output);
}

// Nothing to ask: what was approved is all that there is.
bool is_as_approved(const Review& review, const std::optional<Approval>& record) {
  return record && record->pin && record->hash == review.candidate.hash &&
         *record->pin == review.now && review.lock.empty();
}

int approve(const Arguments& arguments, Output& output) {
  auto candidate = read_candidate(arguments, output);
  if (!candidate) return candidate.error();
  auto pin = read_pin(*candidate, arguments, output);
  if (!pin) return pin.error();
  Review review{.candidate = *std::move(candidate),
                .now = *std::move(pin),
                .lock = std::string(arguments.value("--lock").value_or(""))};
  std::optional<Approval> record;
  if (auto found = find_before(review, record, output); !found) return found.error();
  if (is_as_approved(review, record)) {
    if (arguments.has("--json")) output.out += review_json(review, true);
    output.err +=
        format("{} is {}: nothing to approve\n", review.candidate.server, review.before_name);
    return Exit::ok;
  }
  if (arguments.has("--yes")) {
    output.err += shown(review);
    return keep(review, arguments, output);
  }
  switch (ask(std::exchange(output.err, {}) + shown(review) + "Approve this? [y/N] ")) {
    case Answer::yes: return keep(review, arguments, output);
    case Answer::no:
      if (arguments.has("--json")) output.out += review_json(review, false);
      output.err += "not approved\n";
      return Exit::usage;
    case Answer::nobody: break;
  }
  output.err += shown(review);
  if (arguments.has("--json")) output.out += review_json(review, false);
  return usage_error("there is no terminal to ask on",
                     format("if this is meant: capgate approve {} --yes", review.candidate.server),
                     output);
}

int run(const Arguments& arguments, Output& output) {
  const bool is_other = arguments.has("--list") || arguments.has("--revoke");
  if (arguments.operands.empty() == !is_other) {
    return usage_error(is_other ? "--list and --revoke take no NAME besides" : "approve needs NAME",
                       "see capgate approve --help", output);
  }
  if (arguments.has("--list")) return list(arguments, output);
  if (arguments.has("--revoke")) return revoke(arguments, output);
  return approve(arguments, output);
}

}  // namespace

Command approve_command() {
  return {
      .name = "approve",
      .operands = "[NAME [-- COMMAND ARGS...]]",
      .summary = "Look at a server and keep it as approved: policy, package, tools.",
      .least_operands = 0,
      .most_operands = SIZE_MAX,
      .options = options,
      .details =
          "NAME is an entry of capgate.yaml. The server is started in its sandbox, without "
          "network,\n"
          "secrets or anything to write, and lists its tools. What it may do, what it says and "
          "what\n"
          "changed since you approved it is shown; what you approve is kept in\n"
          "$XDG_STATE_HOME/capgate/approved, where no server can write. From then on `run` "
          "refuses\n"
          "another manifest, policy, command or package, and `check --live` other tools.\n"
          "What a project's ./capgate.yaml grants beyond your own configuration holds only after\n"
          "this. --lock writes the same to a file for reviews (docs/lock.md).\n"
          "Exit: 0 ok, 2 usage, not approved or nobody to ask, 3 unreadable or no list of tools,\n"
          "4 mistakes, 8 a package whose files changed, or tools that change while they are "
          "listed.",
      .examples =
          "  capgate approve github            asks\n"
          "  capgate approve github --yes      without a terminal\n"
          "  capgate approve github --lock capgate.lock\n"
          "  capgate approve github -m github.json --lock capgate.lock -- node server.js\n"
          "  capgate approve --list --json\n"
          "  capgate approve --revoke github",
      .run = run};
}

}  // namespace capgate::cli
