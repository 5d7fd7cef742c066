// Files, programs and sockets of the host.
#include "base/format.h"
#include "base/text.h"
#include "core/scope.h"
#include "core/sensitive.h"
#include "review/lint_detail.h"
#include "review/lint_tables.h"

namespace capgate::review::detail {
namespace {

using core::ExecCapability;
using core::FsCapability;
using core::IpcCapability;

void lint_files(Linter& linter, const Line& line, const FsCapability& fs) {
  const std::string& home = linter.manifest().home;
  if (const core::CredentialPath* entry = core::credential_at(fs.path.base, home)) {
    linter.about(line, {.rule = rule::credential_path,
                        .message = format("{} lies where credentials are kept ({})",
                                          shown(core::print(fs.path)), entry->group),
                        .help = "hand over the one value that is needed as env:inject"});
  }
  if (core::is_writing(fs.actions) && core::startup_at(fs.path.base, home) != nullptr) {
    linter.about(
        line, {.rule = rule::startup_write,
               .message = format("{} is run outside of the sandbox", shown(core::print(fs.path))),
               .help = "grant fs:read, or leave it out"});
  }
}

bool is_unsafe(const core::Capability& capability) {
  return std::visit(
      [](const auto& each) {
        if constexpr (requires { each.unsafe; }) return each.unsafe;
        return false;
      },
      capability);
}

void lint_ipc(Linter& linter, const Line& line, const IpcCapability& ipc) {
  using enum IpcCapability::Kind;
  if (ipc.kind != x11 && ipc.kind != dbus_session && ipc.kind != dbus_system) return;
  linter.about(
      line, {.rule = rule::ipc_desktop,
             .message = format("{} is shared with every other program of the {}", shown(line.text),
                               ipc.kind == dbus_system ? "system" : "desktop"),
             .help = "leave it out, or name the one socket that is needed"});
}

void lint_exec(Linter& linter, const Line& line, const ExecCapability& exec) {
  if (!runs_any_code(exec.program)) return;
  linter.about(line, {.rule = rule::exec_shell,
                      .message = format("{} runs whatever it is told", quoted(exec.program)),
                      .help = "name the programs that the server really starts"});
}

}  // namespace

void lint_local(Linter& linter) {
  for (const Line& line : linter.lines()) {
    if (is_unsafe(*line.capability)) {
      linter.about(line, {.rule = rule::unsafe,
                          .message = format("{} gives away control", shown(line.text)),
                          .help = "leave it out, or give the reason in the ignore file"});
    }
    if (const auto* fs = std::get_if<FsCapability>(line.capability)) {
      lint_files(linter, line, *fs);
    } else if (const auto* ipc = std::get_if<IpcCapability>(line.capability)) {
      lint_ipc(linter, line, *ipc);
    } else if (const auto* exec = std::get_if<ExecCapability>(line.capability)) {
      lint_exec(linter, line, *exec);
    }
  }
}

}  // namespace capgate::review::detail
