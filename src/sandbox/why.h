// Whether a server may do one thing, asked of what would keep it from it: the bound plan that init
// carries out, and the decision of the broker. Nothing is started, nothing is made.
//
//   const Answer answer = why_path({plan, policy, launcher}, {"/workspace/a.txt", Access::write});
//   answer.allowed    false
//   answer.reason     "/workspace is mounted read-only"
//   answer.remedy     "fs:write:/workspace/a.txt"
//
// Grants that this host does not have are left out of the binding, which would refuse them, and
// answered for by the Plan: a policy can be asked on a machine that it is not for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/policy.h"
#include "lower/plan.h"
#include "sandbox/bind.h"

namespace capgate::sandbox {

struct Asked {
  const lower::Plan& plan;
  const core::Policy& policy;
  const Launcher& launcher;
  std::vector<std::string> command;  // of the server; empty: any
};

struct Answer {
  bool allowed = false;
  std::string reason;                      // one sentence, without its full stop
  std::optional<core::Capability> grant;   // the one that decides: allows it, or comes closest
  const core::Origins* origins = nullptr;  // its declarations
  std::string remedy;  // the capability that would change a denial, if one should
  std::vector<std::string> notes;
};

enum class Access : std::uint8_t { read, write };

struct PathQuestion {
  std::string path;  // absolute and plain
  Access access = Access::read;
};

// A refusal is one of this host's: it has no Landlock, or the command is not there.
[[nodiscard]] std::expected<Answer, Refusal> why_path(const Asked& asked,
                                                      const PathQuestion& question);
// `endpoint` has a port and no wildcard.
[[nodiscard]] Answer why_host(const Asked& asked, const core::Endpoint& endpoint);
// A name, or an absolute path.
[[nodiscard]] Answer why_exec(const Asked& asked, const std::string& program);
[[nodiscard]] Answer why_variable(const Asked& asked, std::string_view name);

}  // namespace capgate::sandbox
