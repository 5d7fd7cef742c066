#include "cli/approve_words.h"

#include <algorithm>

#include "base/text.h"
#include "clients/profile_file.h"

namespace capgate::cli {

std::string approve_words(const ApproveWords& words, const Arguments& arguments) {
  std::vector<std::string> out = {"capgate", "approve", words.server};
  const auto add = [&](const char* name, std::string_view value) {
    out.emplace_back(name);
    out.emplace_back(value);
  };
  const auto add_given = [&](const char* name) {
    for (const std::string& value : arguments.values(name)) add(name, value);
  };
  if (!words.manifest.empty()) add("-m", words.manifest);
  if (!words.lock.empty()) add("--lock", words.lock);
  add_given("--config");
  add_given("--set");
  if (words.is_live) {
    add_given("--allow");
    add_given("--timeout");
  }
  if (arguments.has("--no-tools")) out.emplace_back("--no-tools");
  if (words.is_answered) out.emplace_back("--yes");
  if (!words.command.empty()) {
    out.emplace_back("--");
    // What a terminal must not get would be another command if it were copied.
    const bool is_plain = std::ranges::all_of(
        words.command, [](const std::string& word) { return escape_for_terminal(word) == word; });
    const std::vector<std::string> stand_in = {"COMMAND", "ARGS..."};
    const std::vector<std::string>& shown = is_plain ? words.command : stand_in;
    out.insert(out.end(), shown.begin(), shown.end());
  }
  return clients::print_command(out);
}

}  // namespace capgate::cli
