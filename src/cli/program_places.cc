#include "cli/program_places.h"

#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace capgate::cli {
namespace {

using sandbox::PolicyPlace;

// The name in every directory of PATH up to the one that has it: planted in an earlier one, it
// would run instead.
void add_path(std::string_view name, const sandbox::Caller& caller, const std::string& role,
              std::vector<PolicyPlace>& out) {
  for (const std::string_view directory : EachPart(caller.path, ':')) {
    if (!directory.starts_with('/')) continue;  // not searched
    std::string full = format("{}/{}", directory, name);
    const bool is_there = sandbox::find_program({full}, caller, sandbox::Shebang::any).has_value();
    out.push_back({.path = std::move(full), .role = role});
    if (is_there) return;
  }
}

}  // namespace

std::vector<PolicyPlace> program_places(const std::vector<std::string>& command,
                                        const sandbox::Caller& caller, const std::string& role) {
  std::vector<PolicyPlace> out;
  const std::string& name = command.front();
  if (name.contains('/')) {
    out.push_back({.path = name, .role = role});
  } else {
    add_path(name, caller, role, out);
  }
  const auto program = sandbox::find_program(command, caller, sandbox::Shebang::any);
  if (!program) return out;  // it does not run now either
  for (const auto* list : {&program->readable, &program->executables}) {
    for (const std::string& path : *list) out.push_back({.path = path, .role = role});
  }
  for (const auto& [link, target] : program->links) out.push_back({.path = link, .role = role});
  return out;
}

}  // namespace capgate::cli
