#include "cli/wrap_write.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "cli/sealed_files.h"
#include "cli/wrapped_files.h"
#include "clients/catalog.h"
#include "clients/install.h"
#include "sys/file.h"
#include "text/document.h"

namespace capgate::cli {
namespace {

using Kind = ServerPlan::Kind;

void give_up(ServerPlan& plan, std::string reason) {
  plan.kind = Kind::problem;
  plan.reason = std::move(reason);
}

bool has_work(const FileWork& work) {
  return std::ranges::any_of(work.plans,
                             [](const ServerPlan& plan) { return plan.kind == Kind::wrap; });
}

// One line that is written over, on a terminal only.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)) {
    if (!is_shown_) say(format("capgate: installing {}\n", what_));
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress() {
    if (is_shown_) say("\r\x1b[K");
  }
  void step(std::string_view text) const {
    if (is_shown_) say(format("\r\x1b[K{}: {}", what_, escape_for_terminal(text)));
  }

 private:
  static void say(std::string_view text) { (void)sys::write_all(STDERR_FILENO, text).has_value(); }

  std::string what_;
  bool is_shown_ = sys::is_terminal(STDERR_FILENO) && variable("TERM") != "dumb";
};

std::expected<std::string, int> random_key() {
  std::string out(32, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t got = ::getrandom(out.data() + size, out.size() - size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    size += static_cast<std::size_t>(got);
  }
  return out;
}

}  // namespace

int WrapWriter::write(FileWork& work, Output& output) {
  int code = Exit::ok;
  for (ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::wrap || !plan.package || plan.is_installed || !plan.installs) continue;
    flush(output);
    if (!install(plan, work.document.file.servers[plan.server], output)) code = Exit::internal;
  }
  if (!has_work(work)) return code;
  if (const auto stored = store_secrets(work, output); !stored) return stored.error();
  const std::vector<std::string> before = written_;
  const auto made = write_profiles(work, output);
  const int replaced = made ? replace(work, output) : made.error();
  if (replaced == Exit::ok) return code;
  written_ = before;
  if (made) {
    for (const std::string& file : *made) (void)::unlink(file.c_str());
  }
  return replaced;
}

bool WrapWriter::install(ServerPlan& plan, const clients::ServerEntry& server, Output& output) {
  const std::string shown = clients::print(*plan.package);
  const auto installed = [&] {
    const Progress progress(shown);
    return clients::install(options_.store, *plan.package,
                            {.home = options_.surroundings.home,
                             .path = variable("PATH"),
                             .environment = options_.surroundings.environment,
                             .progress = [&](std::string_view step) { progress.step(step); }});
  }();
  if (!installed) {
    output.err += format("capgate: {} is left alone: {} cannot be installed: {}\nhelp: {}\n",
                         escape_for_terminal(server.name), shown, installed.error().message,
                         installed.error().help);
    give_up(plan, format("{} cannot be installed", shown));
    return false;
  }
  const std::string& version = installed->locked.version;
  output.err += format("capgate: installed {} {}\n", shown, version);
  const auto* entry = clients::find_entry(*plan.package, version);
  const std::string manifest = entry == nullptr ? "" : format("catalog:{}", entry->name);
  if (!plan.profile.manifest.empty() && plan.profile.manifest != manifest) {
    output.err += format(
        "capgate: {} is left alone: {} is not for version {}\nhelp: ask for a version that it is "
        "for, or wrap it again: it gets the empty policy then\n",
        escape_for_terminal(server.name), plan.profile.manifest, version);
    give_up(plan, "its version is not the manifest's");
    return false;
  }
  plan.is_installed = true;
  return true;
}

// A client starts capgate without a terminal, where nobody can be asked for a passphrase.
std::expected<std::optional<std::string>, int> WrapWriter::key_for_new_store(Output& output) {
  const std::string file = format("{}/store.key", options_.places.config);
  if (::access(file.c_str(), F_OK) != 0) {
    const auto key = random_key();
    if (!key) {
      output.err += "capgate: no random numbers\nhelp: see capgate doctor\n";
      return std::unexpected(Exit::internal);
    }
    if (const auto made = clients::create_file(file, *key); !made) {
      say(made.error(), output);
      return std::unexpected(code_of(made.error()));
    }
    output.err += format("capgate: made the key of the store, {}; keep a copy of it\n",
                         escape_for_terminal(file));
  }
  return format("file:{}", file);
}

std::expected<void, int> WrapWriter::store_secrets(const FileWork& work, Output& output) {
  const auto seals = [](const ServerPlan& plan) {
    return plan.kind == Kind::wrap && !plan.sealed.empty();
  };
  if (std::ranges::none_of(work.plans, seals)) return {};
  flush(output);
  const auto store = SecretStore::open(output);
  if (!store) return std::unexpected(store.error());
  auto source = store->key(output);
  if (!source) return std::unexpected(source.error());
  if (*source == "passphrase") {
    output.err += format(
        "capgate: the store is opened by a passphrase, for which a client cannot be asked\n"
        "help: capgate secret rotate --key file:PATH, with a file of 32 random bytes: "
        "(umask 077; head -c 32 /dev/urandom > PATH)\n");
    return std::unexpected(Exit::unreadable);
  }
  std::optional<std::string> key;
  if (!source->has_value()) {
    auto made = key_for_new_store(output);
    if (!made) return std::unexpected(made.error());
    key = *std::move(made);
  }
  for (const ServerPlan& plan : work.plans) {
    if (!seals(plan)) continue;
    const auto& variables = work.document.file.servers[plan.server].environment;
    for (const std::string& name : plan.sealed) {
      const auto variable = std::ranges::find(variables, name, &clients::EnvironmentEntry::name);
      const SecretPlace place{.server = plan.profile.name, .name = name};
      if (auto done = store->set(place, variable->value, key, output); !done) return done;
    }
    const auto noted =
        note_sealed({.target = work.document.opened.target, .profile = plan.profile.name});
    if (!noted) {
      say(noted.error(), output);
      return std::unexpected(code_of(noted.error()));
    }
  }
  return {};
}

// The names of the files that were not there before.
std::expected<std::vector<std::string>, int> WrapWriter::write_profiles(const FileWork& work,
                                                                        Output& output) {
  std::vector<std::string> made;
  const auto fail = [&](const clients::FileProblem& problem) {
    for (const std::string& file : made) (void)::unlink(file.c_str());
    say(problem, output);
    return std::unexpected(code_of(problem));
  };
  for (const ServerPlan& plan : work.plans) {
    if (plan.kind != Kind::wrap || !plan.writes_profile) continue;
    if (contains(written_, plan.profile.name)) continue;
    const std::string text = clients::print_profile(plan.profile);
    if (plan.replaces_profile) {
      const auto old = clients::open_file(plan.profile_file, text::largest_document);
      if (!old) return fail(old.error());
      const auto done = clients::replace_file(*old, {.text = text});
      if (!done) return fail(done.error());
    } else {
      const auto done = clients::create_file(plan.profile_file, text);
      if (!done) return fail(done.error());
      made.push_back(plan.profile_file);
    }
    written_.push_back(plan.profile.name);
  }
  return made;
}

int WrapWriter::replace(FileWork& work, Output& output) {
  const clients::ClientFile& file = work.document.file;
  const auto text = clients::apply(file, changes_of(work.plans, options_.self));
  const auto backup = clients::apply(file, seals_of(work.plans));
  if (!text || !backup) {
    output.err +=
        format("capgate: {}: {}\nhelp: {}\n", escape_for_terminal(work.document.opened.path),
               (text ? backup : text).error().message, (text ? backup : text).error().help);
    return Exit::internal;
  }
  // Noted first: from the moment that a client can start what the file says, no server may change
  // it.
  const std::string& target = work.document.opened.target;
  if (const auto noted = note_wrapped(target); !noted) {
    say(noted.error(), output);
    return code_of(noted.error());
  }
  const auto done = clients::replace_file(work.document.opened, {.text = *text, .backup = *backup});
  if (!done) {
    const auto& servers = file.servers;
    if (std::ranges::all_of(servers, [](const auto& each) { return each.profile.empty(); })) {
      forget_wrapped(target);
    }
    say(done.error(), output);
    return code_of(done.error());
  }
  work.is_written = true;
  work.backup = done->backup;
  return Exit::ok;
}

}  // namespace capgate::cli
