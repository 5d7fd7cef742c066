#include "clients/entry_point.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "clients/tree.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Value;

constexpr std::size_t largest_description = std::size_t{4} << 20U;

using Programs = std::vector<std::pair<std::string, std::string>>;  // name, file or function

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

std::unexpected<StoreProblem> changed(const LockedPackage& locked, std::string_view why) {
  return refuse(
      format("the installed {} is not what was installed: {}", print(locked.package), why),
      format("install it again: capgate install --upgrade {}", print(locked.package)));
}

std::unexpected<StoreProblem> no_program(const LockedPackage& locked, const Programs& programs,
                                         std::string_view wanted) {
  std::string names;
  for (const auto& [name, file] : programs) {
    names += format("{}{}", names.empty() ? "" : ", ", escape_for_terminal(name));
  }
  const std::string shown = print(locked.package);
  if (programs.empty()) {
    return refuse(format("{} has no program to start", shown), "is it a server's package?");
  }
  return refuse(format("{} has no program {}", shown, quoted(wanted)),
                format("it has {}: name one, as in npx --package {} NAME", names, shown));
}

// The one that was asked for, the one of the package's name, or the only one.
Stored<std::string> choose(const LockedPackage& locked, const Programs& programs,
                           const std::string& executable) {
  const std::string wanted(executable.empty() ? last_part(locked.package.name) : executable);
  const auto found =
      std::ranges::find_if(programs, [&](const auto& program) { return program.first == wanted; });
  if (found != programs.end()) return found->second;
  // Several names of one program are one program.
  const bool is_one = !programs.empty() && std::ranges::all_of(programs, [&](const auto& program) {
    return program.second == programs.front().second;
  });
  if (executable.empty() && is_one) return programs.front().second;
  return no_program(locked, programs, wanted);
}

// ---- npm ----------------------------------------------------------------------------------------

std::string text_of(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

Programs programs_of(Value package, std::string_view name) {
  const auto bin = package.find("bin");
  if (!bin) return {};
  if (bin->is(Kind::string)) return {{std::string(last_part(name)), std::string(bin->text())}};
  Programs out;
  if (!bin->is(Kind::object)) return out;
  for (const auto member : bin->members()) {
    if (member.value.is(Kind::string)) {
      out.emplace_back(member.key.text(), member.value.text());
    }
  }
  return out;
}

bool is_javascript(std::string_view file) {
  return file.ends_with(".js") || file.ends_with(".mjs") || file.ends_with(".cjs");
}

Stored<std::vector<std::string>> start_file(const std::string& directory,
                                            const LockedPackage& locked, const std::string& file) {
  auto text = read_start(directory, file);
  if (!text) return std::unexpected(std::move(text).error());
  std::vector<std::string> words = shebang_words(*text);
  if (words.empty()) {
    if (!is_javascript(file)) {
      return refuse(
          format("the program {} of {} is no script", quoted(file), print(locked.package)),
          "programs of the machine are not started from packages; install it as one");
    }
    words = {"node"};
  }
  // The package's own text says what comes first: it chooses no program of this machine.
  if (last_part(words.front()) != "node") {
    return refuse(format("the program {} of {} asks to be run by {}", quoted(file),
                         print(locked.package), quoted(words.front())),
                  format("packages of npm are run by {} alone: start it yourself, if you trust it",
                         escape_for_terminal(locked.runtime)));
  }
  words.front() = locked.runtime;
  words.push_back(format("{}/{}", shown_at, file));
  return words;
}

Stored<std::vector<std::string>> npm_entry(const std::string& directory,
                                           const LockedPackage& locked,
                                           const std::string& executable) {
  const std::string place = format("node_modules/{}", locked.package.name);
  auto text = read_inside(directory, place + "/package.json", largest_description);
  if (!text) return changed(locked, text.error().message);
  const auto document = text::parse_json(*std::move(text));
  if (!document || !document->root().is(Kind::object)) {
    return changed(locked, "its package.json cannot be read");
  }
  const Value package = document->root();
  if (text_of(package, "name") != locked.package.name ||
      text_of(package, "version") != locked.version) {
    return changed(locked, "its package.json has another name or version than capgate.lock");
  }
  auto chosen = choose(locked, programs_of(package, locked.package.name), executable);
  if (!chosen) return std::unexpected(std::move(chosen).error());
  // Below the package itself first: a path of a package does not lead into another one.
  const std::string file = file_inside(format("{}/{}", directory, place), *chosen);
  if (file.empty()) {
    return refuse(
        format("the program {} of {} is no file in it", quoted(*chosen), print(locked.package)),
        "do not use this package; tell whoever publishes it");
  }
  return start_file(directory, locked, format("{}/{}", place, file));
}

// ---- PyPI ---------------------------------------------------------------------------------------

// PEP 503: runs of - _ . are one separator, and case says nothing.
std::string normalised(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separates = c == '-' || c == '_' || c == '.';
    if (separates && !out.empty() && out.back() == '-') continue;
    out += separates ? '-' : to_lower(c);
  }
  return out;
}

bool is_function(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto is_dotted = [](std::string_view part) {
    return !part.empty() && !is_digit(part.front()) &&
           std::ranges::all_of(part, [](char c) { return is_alnum(c) || c == '_' || c == '.'; });
  };
  return colon != std::string_view::npos && is_dotted(text.substr(0, colon)) &&
         is_dotted(text.substr(colon + 1));
}

// [console_scripts] of an entry_points.txt.
Programs console_scripts(std::string_view text) {
  Programs out;
  bool inside = false;
  for (const std::string_view whole : split(text, '\n')) {
    const std::string_view line = trim(whole);
    if (line.starts_with('[')) inside = line == "[console_scripts]";
    const std::size_t equals = line.find('=');
    if (!inside || line.starts_with('#') || equals == std::string_view::npos) continue;
    std::string_view function = trim(line.substr(equals + 1));
    function = trim(function.substr(0, function.find('[')));  // extras
    if (is_function(function)) out.emplace_back(trim(line.substr(0, equals)), function);
  }
  return out;
}

// The directory of the package's own description, whose spelling of the name is the wheel's.
std::string dist_info(const std::string& directory, std::string_view name) {
  constexpr std::string_view ending = ".dist-info";
  for (const std::string& entry : names_inside(directory, "lib")) {
    const std::string_view stem = entry;
    if (!stem.ends_with(ending)) continue;
    if (normalised(stem.substr(0, stem.find('-'))) == normalised(name)) return "lib/" + entry;
  }
  return "";
}

bool has_version(std::string_view metadata, std::string_view version) {
  for (const std::string_view line : split(metadata, '\n')) {
    if (trim(line).empty()) return false;  // the end of the head
    if (line.starts_with("Version:")) return trim(line.substr(8)) == version;
  }
  return false;
}

Stored<std::vector<std::string>> pypi_entry(const std::string& directory,
                                            const LockedPackage& locked,
                                            const std::string& executable) {
  const std::string info = dist_info(directory, locked.package.name);
  const auto metadata = read_inside(directory, info + "/METADATA", largest_description);
  if (info.empty() || !metadata || !has_version(*metadata, locked.version)) {
    return changed(locked, "its description is gone, or has another version than capgate.lock");
  }
  const auto points = read_inside(directory, info + "/entry_points.txt", largest_description);
  const Programs scripts = points ? console_scripts(*points) : Programs();
  auto chosen = choose(locked, scripts, executable);
  if (!chosen) return std::unexpected(std::move(chosen).error());
  if (file_inside(directory, "launch.py").empty()) return changed(locked, "launch.py is not there");
  return std::vector<std::string>{locked.runtime, "-I", "-S", format("{}/launch.py", shown_at),
                                  *std::move(chosen)};
}

}  // namespace

std::vector<std::string> shebang_words(std::string_view start) {
  if (!start.starts_with("#!")) return {};
  std::string line(trim(start.substr(2, start.find('\n') - 2)));
  std::ranges::replace(line, '\t', ' ');
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  if (words.empty()) return {};
  if (last_part(words.front()) == "env") {
    words.erase(words.begin());
    if (!words.empty() && words.front() == "-S") words.erase(words.begin());
    // Variables and options of env are not understood: no guess is made.
    if (words.empty() || words.front().starts_with('-') || words.front().contains('=')) return {};
  }
  return words;
}

std::string_view python_launcher() {
  // Started with -I -S: only the standard library and this tree can be imported, by the server and
  // by the Pythons that it starts.
  return R"(import importlib
import os
import site
import sys

place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
os.environ["PYTHONPATH"] = place
os.environ["PYTHONNOUSERSITE"] = "1"
sys.path.insert(0, place)
site.addsitedir(place)
module, function = sys.argv.pop(1).split(":")
sys.argv[0] = module
start = importlib.import_module(module)
for part in function.split("."):
    start = getattr(start, part)
sys.exit(start())
)";
}

Stored<std::vector<std::string>> entry_point(const std::string& directory,
                                             const LockedPackage& locked,
                                             const std::string& executable) {
  return locked.package.registry == Package::Registry::npm
             ? npm_entry(directory, locked, executable)
             : pypi_entry(directory, locked, executable);
}

}  // namespace capgate::clients
