#include "clients/package.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "base/text.h"
#include "clients/pep440.h"
#include "clients/semver.h"

namespace capgate::clients {
namespace {

using Registry = Package::Registry;

constexpr std::size_t longest_name = 214;  // npm's limit; PyPI's names are shorter in practice

// A part of npm's names: never an option, never a hidden file, never a path.
bool is_npm_part(std::string_view part) {
  return !part.empty() && (is_lower(part.front()) || is_digit(part.front())) &&
         std::ranges::all_of(part, [](char c) {
           return is_lower(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '~';
         });
}

bool is_npm_name(std::string_view name) {
  if (name.size() > longest_name || name == "node_modules" || name == "favicon.ico") return false;
  if (!name.starts_with('@')) return is_npm_part(name);
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && is_npm_part(name.substr(1, slash - 1)) &&
         is_npm_part(name.substr(slash + 1));
}

// A tag is a word that cannot be taken for a range, a path or an address.
bool is_npm_tag(std::string_view text) {
  return is_alpha(text.front()) && !is_semver_range(text) && std::ranges::all_of(text, [](char c) {
           return is_alnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::optional<std::string> normal_pypi_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name || !is_alnum(name.front()) ||
      !is_alnum(name.back())) {
    return std::nullopt;
  }
  std::string normal;
  for (const char c : name) {
    const bool is_mark = c == '-' || c == '_' || c == '.';
    if (!is_mark && !is_alnum(c)) return std::nullopt;
    if (!is_mark) {
      normal += to_lower(c);
    } else if (normal.back() != '-') {
      normal += '-';
    }
  }
  return normal;
}

std::optional<Package> parse_npm(std::string_view text) {
  const std::size_t at = text.find('@', text.starts_with('@') ? 1 : 0);
  const std::string_view name = text.substr(0, at);
  if (!is_npm_name(name)) return std::nullopt;
  Package package{.registry = Registry::npm, .name = std::string(name)};
  if (at == std::string_view::npos) return package;
  const std::string_view range = trim(text.substr(at + 1));
  if (range.empty() || (!is_semver_range(range) && !is_npm_tag(range))) return std::nullopt;
  package.range = range;
  return package;
}

std::optional<Package> parse_pypi(std::string_view text) {
  const std::size_t end = find_any(text, "=<>!~@ ");
  auto name = normal_pypi_name(text.substr(0, end));
  if (!name) return std::nullopt;
  Package package{.registry = Registry::pypi, .name = *std::move(name)};
  if (end == std::string_view::npos) return package;
  const std::string_view rest = trim(text.substr(end));
  if (rest.starts_with('@')) {  // uv's way: a version, or the newest
    const std::string_view version = rest.substr(1);
    if (version == "latest") return package;
    if (!is_pep440_version(version)) return std::nullopt;
    package.range = format("=={}", version);
    return package;
  }
  if (!is_pep440_range(rest)) return std::nullopt;
  package.range = rest;
  return package;
}

std::optional<Package> parse_in(Registry registry, std::string_view text) {
  if (!std::ranges::all_of(text, is_printable_ascii)) return std::nullopt;
  return registry == Registry::npm ? parse_npm(text) : parse_pypi(text);
}

// How one runner is spoken to. Options are separated by spaces.
struct Runner {
  std::string_view program;
  std::string_view verbs;  // the words between the program and its options
  Registry registry = Registry::npm;
  std::string_view flags;
  std::string_view values;           // options with a value that does not decide what is run
  std::string_view package_option;   // its value is the package; the next word then is a program
  bool takes_later_options = false;  // options are its own until "--", wherever they stand
};

constexpr std::string_view npm_flags = " -y --yes -q --quiet ";
constexpr std::string_view uv_flags =
    " -q --quiet -n --no-cache --isolated --offline --no-config --no-progress ";
constexpr Runner runners[] = {
    {.program = "npx", .flags = npm_flags, .package_option = " -p --package "},
    {.program = "npm",
     .verbs = "exec",
     .flags = npm_flags,
     .package_option = " --package ",
     .takes_later_options = true},
    {.program = "npm",
     .verbs = "x",
     .flags = npm_flags,
     .package_option = " --package ",
     .takes_later_options = true},
    {.program = "pnpm", .verbs = "dlx", .flags = " -s --silent ", .package_option = " --package "},
    {.program = "pnpx", .flags = " -s --silent ", .package_option = " --package "},
    {.program = "bunx", .flags = " --bun --silent -y ", .package_option = " -p --package "},
    {.program = "uvx",
     .registry = Registry::pypi,
     .flags = uv_flags,
     .values = " -p --python ",
     .package_option = " --from "},
    {.program = "uv",
     .verbs = "tool run",
     .registry = Registry::pypi,
     .flags = uv_flags,
     .values = " -p --python ",
     .package_option = " --from "},
    {.program = "pipx",
     .verbs = "run",
     .registry = Registry::pypi,
     .flags = " -q --quiet --no-cache ",
     .values = " --python ",
     .package_option = " --spec "},
};

bool lists(std::string_view options, std::string_view option) {
  return !option.empty() && options.contains(format(" {} ", option));
}

using Words = std::span<const std::string>;

std::optional<Words> words_after(const Runner& runner, Words words) {
  const std::string_view program = words.front();
  if (program.substr(program.rfind('/') + 1) != runner.program) return std::nullopt;
  words = words.subspan(1);
  if (runner.verbs.empty()) return words;
  for (const std::string_view verb : EachPart(runner.verbs, ' ')) {
    if (words.empty() || words.front() != verb) return std::nullopt;
    words = words.subspan(1);
  }
  return words;
}

struct RunnerOptions {
  std::string_view package;  // of the package option, or empty
  bool ended = false;        // by "--"
};

// Takes the options off the front of `words`.
std::optional<RunnerOptions> take_options(const Runner& runner, Words& words) {
  RunnerOptions options;
  while (!words.empty() && words.front().starts_with('-')) {
    const std::string_view word = words.front();
    words = words.subspan(1);
    if (word == "--") {
      options.ended = true;
      break;
    }
    if (lists(runner.flags, word)) continue;
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const bool is_package = lists(runner.package_option, name);
    if (!is_package && !lists(runner.values, name)) return std::nullopt;
    if (equals == std::string_view::npos && words.empty()) return std::nullopt;
    const std::string_view value = equals == std::string_view::npos
                                       ? std::string_view(words.front())
                                       : word.substr(equals + 1);
    if (equals == std::string_view::npos) words = words.subspan(1);
    if (!is_package) continue;
    if (!options.package.empty() || value.empty()) return std::nullopt;  // several packages
    options.package = value;
  }
  return options;
}

// Of the words after the package or program, those that reach the server.
std::optional<Words> server_words(const Runner& runner, bool ended, Words words) {
  if (!runner.takes_later_options || ended) return words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "--" && words[i].starts_with('-')) return std::nullopt;
    // npm drops this one word, wherever it stands.
    if (words[i] == "--") return i == 0 ? std::optional(words.subspan(1)) : std::nullopt;
  }
  return words;
}

std::optional<PackageCommand> read_command(const Runner& runner, Words words) {
  const auto options = take_options(runner, words);
  if (!options || words.empty()) return std::nullopt;
  const std::string& first = words.front();
  const bool has_package = !options->package.empty();
  auto package = parse_in(runner.registry, has_package ? options->package : first);
  const auto rest = server_words(runner, options->ended, words.subspan(1));
  if (!package || !rest) return std::nullopt;
  // A path would be another program than one of the package.
  if (has_package && (first.contains('/') || first.starts_with('.'))) return std::nullopt;
  return PackageCommand{.package = *std::move(package),
                        .executable = has_package ? first : std::string(),
                        .arguments = {rest->begin(), rest->end()}};
}

}  // namespace

Result<Package> parse_package(std::string_view text) {
  constexpr std::pair<std::string_view, Registry> prefixes[] = {{"npm:", Registry::npm},
                                                                {"pypi:", Registry::pypi}};
  for (const auto& [prefix, registry] : prefixes) {
    if (!text.starts_with(prefix)) continue;
    if (auto package = parse_in(registry, text.substr(prefix.size()))) return *std::move(package);
    return fail(Code::manifest_shape, Span::at(prefix.size(), text.size()),
                format("{} is not the name of a package with a range of versions",
                       quoted(text.substr(prefix.size()))),
                registry == Registry::npm ? "write npm:NAME, npm:@SCOPE/NAME or npm:NAME@^1.2"
                                          : "write pypi:NAME or pypi:NAME>=1.2,<2");
  }
  return fail(Code::manifest_shape, Span::at(0, text.size()),
              format("{} does not say where the package is", quoted(text)),
              "write npm:NAME or pypi:NAME");
}

std::string print(const Package& package) {
  if (package.registry == Registry::pypi) return format("pypi:{}{}", package.name, package.range);
  return package.range.empty() ? format("npm:{}", package.name)
                               : format("npm:{}@{}", package.name, package.range);
}

std::optional<PackageCommand> package_of(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  for (const Runner& runner : runners) {
    if (const auto words = words_after(runner, command)) return read_command(runner, *words);
  }
  return std::nullopt;
}

bool in_range(Package::Registry registry, std::string_view range, std::string_view version) {
  if (registry == Registry::npm) {
    return range.empty() ? is_semver_version(version) : in_semver_range(range, version);
  }
  return range.empty() ? is_pep440_version(version) : in_pep440_range(range, version);
}

}  // namespace capgate::clients
