// capgate approve: a server as it is now, shown with what changed, and then kept as approved.
#include <unistd.h>

#include <ctime>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/approve_records.h"
#include "cli/approve_show.h"
#include "cli/approve_words.h"
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

int keep(const Review& review, const Arguments& arguments, Output& output) {
  const Candidate& candidate = review.candidate;
  if (!review.lock.empty()) {
    if (auto kept = keep_in_lock(review.now, review.lock, output); !kept) return kept.error();
  }
  if (candidate.has_entry()) {
    const Approval approval{.directory = candidate.scope,
                            .server = candidate.server,
                            .hash = candidate.hash,
                            .policy = core::policy_lines(candidate.loaded.policy),
                            .date = now(),
                            .pin = review.now};
    if (auto kept = Approvals(approvals_directory()).keep(approval); !kept) {
      return cannot(kept.error(), output);
    }
  }
  if (arguments.has("--json")) output.out += review_json(review, true);
  output.err += format("approved; a change of it has to be approved again\n");
  return Exit::ok;
}

std::vector<std::string> command_of(const Arguments& arguments) {
  return {arguments.operands.begin() + 1, arguments.operands.end()};
}

std::expected<Candidate, int> read_candidate(const Arguments& arguments, Output& output) {
  const std::string& name = arguments.operands.front();
  const std::vector<std::string> command = command_of(arguments);
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

// The record of the user, and what the lock has: what is written is held against both.
std::expected<void, int> find_before(Review& review, std::optional<Approval>& record,
                                     Output& output) {
  const Candidate& candidate = review.candidate;
  if (candidate.has_entry()) {
    auto found = Approvals(approvals_directory()).find(candidate.scope, candidate.server);
    if (!found) return std::unexpected(cannot(found.error(), output));
    record = *std::move(found);
  }
  if (record && record->pin) {
    review.add_before({.name = format("what you approved on {}", escape_for_terminal(record->date)),
                       .pin = *record->pin,
                       .is_own_record = true});
  }
  if (review.lock.empty()) return {};
  const auto found = find_locked_pin(review.lock, candidate.server, LockFile::may_lack, output);
  if (!found) return std::unexpected(found.error());
  if (*found) {
    review.add_before(
        {.name = format("what {} says", escape_for_terminal(review.lock)), .pin = **found});
  }
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
        format("{} is {}: nothing to approve\n", review.candidate.server, review.before[0].name);
    return Exit::ok;
  }
  if (arguments.has("--yes")) {
    output.err += shown(review);
    return keep(review, arguments, output);
  }
  const std::string said = std::exchange(output.err, {}) + shown(review);
  switch (ask(said + "Approve this? [y/N] ")) {
    case Answer::yes: return keep(review, arguments, output);
    case Answer::no:
      if (arguments.has("--json")) output.out += review_json(review, false);
      output.err += "not approved\n";
      return Exit::usage;
    case Answer::nobody: break;
  }
  output.err += said;
  if (arguments.has("--json")) output.out += review_json(review, false);
  const ApproveWords again{.server = review.candidate.server,
                           .manifest = std::string(arguments.value("--manifest").value_or("")),
                           .lock = review.lock,
                           .command = command_of(arguments),
                           .is_live = true,
                           .is_answered = true};
  return usage_error("there is no terminal to ask on",
                     format("if this is meant: {}", approve_words(again, arguments)), output);
}

int run(const Arguments& arguments, Output& output) {
  const bool is_other = arguments.has("--list") || arguments.has("--revoke");
  // What stands after -- is its command.
  if (is_other ? !arguments.operands.empty() : arguments.words_before_dashes() == 0) {
    return usage_error(is_other ? "--list and --revoke take no NAME besides" : "approve needs NAME",
                       "see capgate approve --help", output);
  }
  const auto lock = arguments.value("--lock");
  if (lock == "-" || lock == "") {
    return usage_error("--lock needs the name of a file", "write --lock capgate.lock", output);
  }
  if (arguments.has("--list")) return list_approvals(arguments, output);
  if (arguments.has("--revoke")) return revoke_approval(arguments, output);
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
      .run = run,
      .most_before_dashes = 1};
}

}  // namespace capgate::cli
