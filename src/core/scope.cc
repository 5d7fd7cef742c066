#include "core/scope.h"

#include "base/format.h"
#include "core/sensitive.h"
#include "core/unsealable.h"

namespace capgate::core {
namespace {

std::unexpected<Diagnostic> fail(Code code, std::string message, std::string help) {
  return capgate::fail(code, Span{}, std::move(message), std::move(help));
}

// `danger` says what makes the grant unsafe, and is empty when nothing does.
Result<void> check_unsafe(bool unsafe, std::string_view danger) {
  if (!danger.empty() && !unsafe) {
    return fail(Code::cap_needs_unsafe, std::string(danger),
                "leave it out, or add ?unsafe=true if this is really meant");
  }
  if (danger.empty() && unsafe) {
    return fail(Code::cap_refinement, "unsafe=true is not needed here",
                "remove it, so that it stays a sign of danger");
  }
  return {};
}

Result<void> check_fs(const FsCapability& fs, std::string_view home) {
  const std::string& base = fs.path.base;
  if (const auto reason = refused_scope(base, home)) {
    return fail(Code::cap_scope_refused, format("{} cannot be granted: {}", base, *reason),
                "grant the directory or file below it that the server needs");
  }
  if (base == "/tmp" && fs.path.shape == PathPattern::Shape::entries) {
    return fail(Code::cap_scope_refused, "/tmp is private to the sandbox and empty at start",
                "write /tmp for the private one, or name a host path such as /tmp/shared/**");
  }
  const auto system = is_writing(fs.actions) ? unsafe_write(base) : std::nullopt;
  return check_unsafe(
      fs.unsafe,
      system ? format("writing below {} changes what the host runs", *system) : std::string());
}

Result<void> check_ipc(const IpcCapability& ipc) {
  const auto controlled =
      ipc.kind == IpcCapability::Kind::unix_path ? control_socket(ipc.path) : std::nullopt;
  return check_unsafe(ipc.unsafe,
                      controlled ? format("this socket controls {}", *controlled) : std::string());
}

Result<void> check_env(const EnvCapability& env) {
  const auto reason = env.to.empty() ? std::nullopt : why_unsealable(env.name);
  if (reason) {
    return fail(Code::cap_env_unsealable, format("{} cannot be sealed: {}", env.name, *reason),
                format("write env:inject:{} without to=, so that the server holds it, or use a "
                       "credential that is sent, such as a bearer token",
                       env.name));
  }
  return check_unsafe(env.unsafe,
                      is_loader_variable(env.name)
                          ? format("{} decides what programs load, trust or start", env.name)
                          : std::string());
}

}  // namespace

bool is_writing(FsActions actions) {
  return actions.has(FsAction::write) || actions.has(FsAction::create) ||
         actions.has(FsAction::remove);
}

Result<void> check_scope(const Capability& capability, std::string_view home) {
  if (const auto* fs = std::get_if<FsCapability>(&capability)) return check_fs(*fs, home);
  if (const auto* ipc = std::get_if<IpcCapability>(&capability)) return check_ipc(*ipc);
  if (const auto* env = std::get_if<EnvCapability>(&capability)) return check_env(*env);
  return {};
}

}  // namespace capgate::core
