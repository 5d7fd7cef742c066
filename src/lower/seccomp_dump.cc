#include "base/format.h"
#include "lower/seccomp.h"

namespace capgate::lower {
namespace {

std::string_view describe(Errno error) {
  switch (error) {
    case Errno::none: return "skipped";
    case Errno::eperm: return "EPERM";
    case Errno::eacces: return "EACCES";
    case Errno::enosys: return "ENOSYS";
    case Errno::eprotonosupport: return "EPROTONOSUPPORT";
    case Errno::eafnosupport: return "EAFNOSUPPORT";
  }
  return "?";
}

std::string describe(const ArgTest& test) {
  if (test.kind == TestKind::token) return format("arg{} == token", test.arg);
  if (test.mask == 0xffffffff) return format("arg{} == {:#x}", test.arg, test.value);
  return format("(arg{} & {:#x}) == {:#x}", test.arg, test.mask, test.value);
}

}  // namespace

std::string describe(const Action& action) {
  switch (action.kind) {
    case ActionKind::allow: return "allow";
    case ActionKind::error: return std::string(describe(action.error));
    case ActionKind::kill_process: return "kill process";
  }
  return "?";
}

std::string dump(const std::vector<Rule>& rules) {
  std::string out;
  for (const Rule& rule : rules) {
    out += format("{}: {}", core::syscall_info(rule.call).name, describe(rule.action));
    std::string_view separator = " if ";
    for (const ArgTest& test : rule.when) {
      if (is_always_true(test)) continue;
      out += format("{}{}", separator, describe(test));
      separator = " and ";
    }
    out += '\n';
  }
  return out;
}

}  // namespace capgate::lower
