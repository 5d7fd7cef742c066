#include "cli/approved.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/approve_words.h"
#include "cli/caller.h"
#include "cli/package_command.h"
#include "cli/pins.h"
#include "cli/project.h"
#include "clients/tree.h"

namespace capgate::cli {
namespace {

using clients::Pin;

// What the caller knows a pin by, and what to do if it does not fit.
struct Record {
  std::string what;  // "what you approved on ..."
  std::string help;
};

std::expected<void, int> check_bytes(const Subject& subject, const Record& record, Output& output) {
  if (!subject.package) return {};
  const auto checked = check_package_bytes(*subject.package);
  if (checked) return {};
  return std::unexpected(
      usage_error(format("{} is not {}: {}", subject.server, record.what, checked.error().message),
                  checked.error().help, output));
}

std::expected<void, int> check_pin(const Pin& approved, const Subject& subject,
                                   const Record& record, Output& output) {
  const auto now = pin_of(subject, output);
  if (!now) return std::unexpected(now.error());
  const clients::PinDiff change = difference(approved, *now, subject);
  if (!change.is_empty()) {
    std::string text = format("{} is not {}:\n{}", subject.server, record.what, print(change));
    text.pop_back();
    return std::unexpected(usage_error(text, record.help, output));
  }
  return approved.package ? check_bytes(subject, record, output) : std::expected<void, int>();
}

bool is_own_words(const Arguments& arguments) {
  return arguments.has("--manifest") || arguments.has("--allow");
}

std::string approve_again(const clients::FoundServer& entry, const Subject& subject,
                          const ChosenPolicy& chosen, const Arguments& arguments) {
  if (is_own_words(arguments)) {
    return "you approved the entry of capgate.yaml: leave -m and --allow out";
  }
  const bool is_base = chosen.base_entry && chosen.base_entry->file == entry.file;
  return format(
      "if this is meant{}: {}", is_base ? ", elsewhere than in this project" : "",
      approve_words({.server = subject.server, .command = arguments.operands}, arguments));
}

// The user's own record. False: there is none.
std::expected<bool, int> check_record(const clients::FoundServer& entry, const Subject& subject,
                                      ChosenPolicy& chosen, const Arguments& arguments,
                                      Output& output) {
  const clients::Approvals approvals(approvals_directory());
  const std::string scope = approval_scope(entry);
  const auto found = approvals.find(scope, subject.server);
  if (!found) {
    return std::unexpected(
        usage_error(found.error(), format("run capgate approve {} again", subject.server), output));
  }
  if (!*found || !(*found)->pin) return false;
  chosen.places.push_back({.path = approvals.file_of(scope, subject.server)});
  const Record record{
      .what = format("what you approved on {}", escape_for_terminal((*found)->date)),
      .help = approve_again(entry, subject, chosen, arguments)};
  auto checked = check_pin(*(*found)->pin, subject, record, output);
  if (!checked) return std::unexpected(checked.error());
  return true;
}

// A project's file that narrows must not take the user's own approval out of the way: its entry,
// too, is what was approved.
std::expected<void, int> check_base(const Subject& subject, ChosenPolicy& chosen,
                                    const Arguments& arguments, Output& output) {
  if (!chosen.base || !chosen.base_entry) return {};
  const clients::FoundServer entry = *chosen.base_entry;
  const LoadedEntry base = *chosen.base;
  // With what runs: it may be another command than the entry's.
  const Subject users{.server = subject.server,
                      .loaded = base.loaded,
                      .command = subject.command,
                      .catalog_text = catalog_text(entry, base.manifest_text),
                      .package = subject.package};
  auto checked = check_record(entry, users, chosen, arguments, output);
  return checked ? std::expected<void, int>() : std::unexpected(checked.error());
}

std::string lock_again(const std::string& file, const Subject& subject,
                       const Arguments& arguments) {
  if (arguments.has("--allow")) {
    return "a lock is of a manifest or an entry: write what --allow says there, and approve that";
  }
  const std::string manifest(arguments.value("--manifest").value_or(""));
  return format("if this is meant: {}",
                approve_words({.server = subject.server,
                               .manifest = manifest,
                               .lock = file,
                               .command = manifest.empty() ? arguments.operands : subject.command},
                              arguments));
}

std::expected<void, int> check_lock(const std::string& file, LockFile lock, const Subject& subject,
                                    const Arguments& arguments, Output& output) {
  const auto pin = find_locked_pin(file, subject.server, lock, output);
  if (!pin) return std::unexpected(pin.error());
  const std::string shown = escape_for_terminal(file);
  const std::string again = lock_again(file, subject, arguments);
  if (*pin) {
    return check_pin(**pin, subject, {.what = format("what {} says", shown), .help = again},
                     output);
  }
  if (lock == LockFile::may_lack) return {};
  return std::unexpected(
      usage_error(format("{} has no server {}", shown, quoted(subject.server)), again, output));
}

int never_approved(const Subject& subject, bool has_entry, const Arguments& arguments,
                   Output& output) {
  if (!has_entry) {
    return usage_error("--require-approval needs an entry of capgate.yaml: --profile NAME",
                       "for -m there is --locked FILE", output);
  }
  return usage_error(
      format("{} was never approved", quoted(subject.server)),
      format("look at it first: {}",
             approve_words({.server = subject.server,
                            .command = is_own_words(arguments) ? std::vector<std::string>()
                                                               : arguments.operands},
                           arguments)),
      output);
}

}  // namespace

clients::Stored<void> check_package_bytes(const clients::LockedPackage& locked) {
  const clients::Store store{.base = data_base()};
  const std::string directory = store.directory_of(locked);
  const clients::Approvals approvals(approvals_directory());
  // Before the files are read: what changes meanwhile has another mark.
  const auto mark = clients::mark_tree(directory);
  if (!mark) return std::unexpected(mark.error());
  const std::string kept = format("{} {}\n", *mark, locked.tree);
  if (!mark->empty() && approvals.mark_of(directory) == kept) return {};
  auto checked = clients::check_installed(store, locked);
  if (checked && !mark->empty()) approvals.keep_mark(directory, kept);
  return checked;
}

std::expected<void, int> check_approved(const Arguments& arguments, ChosenPolicy& chosen,
                                        Output& output) {
  const auto lock = arguments.value(locked_option.name);
  const bool is_required = arguments.has(require_approval_option.name);
  const bool has_record = chosen.entry && (is_required || !is_own_words(arguments));
  if (!has_record && !lock && !is_required) return {};
  // Read once: what is compared is what is started.
  auto package = locked_package(chosen.command, output);
  if (!package) return std::unexpected(package.error());
  chosen.package = *std::move(package);
  const Subject subject{
      .server = chosen.server.empty() ? chosen.loaded.manifest.name : chosen.server,
      .loaded = chosen.loaded,
      .command = chosen.command,
      .catalog_text = chosen.catalog_text,
      .package = chosen.package};
  bool is_approved = false;
  if (has_record) {
    auto checked = check_record(*chosen.entry, subject, chosen, arguments, output);
    if (!checked) return std::unexpected(checked.error());
    is_approved = *checked;
    if (auto base = check_base(subject, chosen, arguments, output); !base) return base;
  }
  if (is_required && !is_approved) {
    return std::unexpected(never_approved(subject, has_record, arguments, output));
  }
  if (lock) {
    chosen.places.push_back({.path = std::string(*lock)});
    auto done = check_lock(std::string(*lock), LockFile::must_exist, subject, arguments, output);
    if (!done) return done;
  }
  if (has_record && chosen.entry->layer == clients::Layer::project) {
    return check_lock(lock_beside(chosen.entry->file), LockFile::may_lack, subject, arguments,
                      output);
  }
  return {};
}

}  // namespace capgate::cli
