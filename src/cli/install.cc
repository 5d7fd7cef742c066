// capgate install: packages of servers, fetched once in a sandbox.
#include "clients/install.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "lower/common.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using clients::Installed;
using clients::LockedPackage;
using clients::Package;
using text::JsonWriter;

constexpr Option options[] = {
    {.name = "--allow-scripts",
     .help = "let scripts of packages run, in the same sandbox (npm: sh and node; PyPI: builds)"},
    {.name = "--registry",
     .value = "URL",
     .help = "instead of the one that npm's or pip's configuration names"},
    {.name = "--upgrade", .help = "ask the registry also where a version in range is installed"},
    {.name = "--check", .help = "compare every file with its hash: exit code 8 if one differs"},
    {.name = "--list", .help = "what is installed"},
    {.name = "--remove", .help = "take packages out of the store"},
    json_option,
};

std::vector<std::string> environment() {
  char** end = ::environ;
  while (*end != nullptr) ++end;
  return {::environ, end};
}

using Packages = std::vector<Package>;

std::expected<Packages, int> read_packages(const Arguments& arguments, Output& output) {
  Packages out;
  for (const std::string& word : arguments.operands) {
    auto package = clients::parse_package(word);
    if (!package) {
      return std::unexpected(usage_error(package.error().message, package.error().help, output));
    }
    out.push_back(*std::move(package));
  }
  return out;
}

int fail(const clients::StoreProblem& problem, int code, Output& output) {
  (void)usage_error(problem.message, problem.help, output);
  return code;
}

// What of the lock the words name: all of it without any.
std::vector<LockedPackage> chosen(const clients::Lock& lock, const Packages& packages) {
  std::vector<LockedPackage> out;
  for (const LockedPackage& locked : lock.packages) {
    const bool named = std::ranges::any_of(packages, [&](const Package& package) {
      return package.registry == locked.package.registry && package.name == locked.package.name &&
             (package.range.empty() || package.range == locked.package.range);
    });
    if (packages.empty() || named) out.push_back(locked);
  }
  return out;
}

void begin_json(JsonWriter& json) {
  json.begin_object().key("schemaVersion").number(1).key("packages").begin_array();
}

void end_json(JsonWriter&& json, const Arguments& arguments, Output& output) {
  json.end_array().end_object();
  if (arguments.has("--json")) output.out += std::move(json).take() + "\n";
}

JsonWriter& describe(JsonWriter& json, const LockedPackage& locked) {
  json.begin_object().key("package").string(clients::print(locked.package));
  json.key("version").string(locked.version).key("integrity").string(locked.integrity);
  return json.key("tree").string(locked.tree).key("scripts").boolean(locked.scripts);
}

int list(const clients::Store& store, const Packages& packages, const Arguments& arguments,
         Output& output) {
  const auto lock = clients::read_lock(store);
  if (!lock) return fail(lock.error(), Exit::unreadable, output);
  JsonWriter json(JsonWriter::Style::pretty);
  begin_json(json);
  for (const LockedPackage& locked : chosen(*lock, packages)) {
    const std::string directory = store.directory_of(locked);
    describe(json, locked).key("directory").string(directory).end_object();
    if (!arguments.has("--json")) {
      output.out += format("{}  {}  {}\n", clients::print(locked.package), locked.version,
                           escape_for_terminal(directory));
    }
  }
  end_json(std::move(json), arguments, output);
  return Exit::ok;
}

int check(const clients::Store& store, const Packages& packages, const Arguments& arguments,
          Output& output) {
  const auto lock = clients::read_lock(store);
  if (!lock) return fail(lock.error(), Exit::unreadable, output);
  int code = Exit::ok;
  JsonWriter json(JsonWriter::Style::pretty);
  begin_json(json);
  for (const LockedPackage& locked : chosen(*lock, packages)) {
    const auto checked = clients::check_installed(store, locked);
    describe(json, locked).key("ok").boolean(checked.has_value());
    if (!checked) {
      json.key("problem").string(checked.error().message);
      code = fail(checked.error(), Exit::integrity, output);
    } else if (!arguments.has("--json")) {
      output.out += format("{}  {}  ok\n", clients::print(locked.package), locked.version);
    }
    json.end_object();
  }
  end_json(std::move(json), arguments, output);
  return code;
}

int remove(const clients::Store& store, const Packages& packages, const Arguments& arguments,
           Output& output) {
  JsonWriter json(JsonWriter::Style::pretty);
  begin_json(json);
  for (const Package& package : packages) {
    const auto removed = clients::remove_installed(store, package);
    if (!removed) return fail(removed.error(), Exit::internal, output);
    const std::string shown = clients::print(package);
    if (!*removed) {
      return usage_error(format("{} is not installed", shown), "see capgate install --list",
                         output);
    }
    output.err += format("{} is removed\n", shown);
    json.string(shown);
  }
  end_json(std::move(json), arguments, output);
  return Exit::ok;
}

clients::InstallOptions install_options(const Arguments& arguments, Progress& progress) {
  const std::string path = variable("PATH");
  return {.scripts = arguments.has("--allow-scripts"),
          .again = arguments.has("--upgrade"),
          .home = home_directory(),
          .path = path.empty() ? std::string(lower::sandbox_path) : path,
          .registry = std::string(arguments.value("--registry").value_or("")),
          .environment = environment(),
          .progress = [&progress](std::string_view step) { progress.show(step); }};
}

std::string said_of(const Installed& installed) {
  const LockedPackage& locked = installed.locked;
  std::string out =
      format("{}: version {} is installed", clients::print(locked.package), locked.version);
  if (locked.scripts) out += ", and scripts of its packages ran";
  if (installed.command.empty()) out += "; it has no program of its own name to start";
  return out + "\n";
}

int install(const clients::Store& store, const Packages& packages, const Arguments& arguments,
            Output& output) {
  JsonWriter json(JsonWriter::Style::pretty);
  begin_json(json);
  for (const Package& package : packages) {
    Progress progress;
    const auto installed = clients::install(store, package, install_options(arguments, progress));
    progress.clear();
    if (!installed) return fail(installed.error(), Exit::internal, output);
    output.err += said_of(*installed);
    describe(json, installed->locked).key("directory").string(installed->directory);
    json.key("command").begin_array();
    for (const std::string& word : installed->command) json.string(word);
    json.end_array().end_object();
  }
  end_json(std::move(json), arguments, output);
  return Exit::ok;
}

int run(const Arguments& arguments, Output& output) {
  const auto modes = std::ranges::count_if(arguments.options, [](const auto& option) {
    return option.first == "--check" || option.first == "--list" || option.first == "--remove";
  });
  if (modes > 1) {
    return usage_error("--check, --list and --remove do not go together", "write one of them",
                       output);
  }
  const auto packages = read_packages(arguments, output);
  if (!packages) return packages.error();
  const clients::Store store{.base = data_base()};
  if (arguments.has("--list")) return list(store, *packages, arguments, output);
  if (arguments.has("--check")) return check(store, *packages, arguments, output);
  if (packages->empty()) {
    return usage_error("install needs a package", "write capgate install npm:NAME", output);
  }
  if (arguments.has("--remove")) return remove(store, *packages, arguments, output);
  return install(store, *packages, arguments, output);
}

}  // namespace

Command install_command() {
  return {
      .name = "install",
      .operands = "PACKAGE...",
      .summary = "Install the packages of servers, so that they run without a registry.",
      .least_operands = 0,
      .most_operands = SIZE_MAX,
      .options = options,
      .details =
          "PACKAGE is npm:NAME[@RANGE] or pypi:NAME[==VERSION]. npm or pip runs in a sandbox\n"
          "that reaches the registry of its own configuration and nothing else, holds no token\n"
          "and runs no script of a package. What comes out is hashed, kept in\n"
          "$XDG_DATA_HOME/capgate, and mounted read-only by `capgate run -- npx -y NAME`.",
      .examples =
          "  capgate install npm:@modelcontextprotocol/server-memory\n"
          "  capgate install 'npm:time-mcp@^1' pypi:mcp-server-git==2025.1.14\n"
          "  capgate install --upgrade npm:time-mcp      a newer version, if there is one\n"
          "  capgate install --check                     is every file as it was installed?\n"
          "  capgate run -- npx -y time-mcp              starts what was installed",
      .run = run};
}

}  // namespace capgate::cli
