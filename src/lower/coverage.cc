#include "lower/coverage.h"

namespace capgate::lower {
namespace {

template <typename... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};

}  // namespace

std::array<Cover, 10> columns_of(const Coverage& c) {
  return {c.fs, c.connect, c.listen, c.exec, c.env, c.sealed, c.ipc, c.clock, c.limit, c.assertion};
}

const Cover& cover_of(const Coverage& coverage, const core::Capability& capability) {
  return std::visit(
      Overloaded{
          [&](const core::FsCapability&) -> const Cover& { return coverage.fs; },
          [&](const core::NetConnect&) -> const Cover& { return coverage.connect; },
          [&](const core::NetListen&) -> const Cover& { return coverage.listen; },
          [&](const core::ExecCapability&) -> const Cover& { return coverage.exec; },
          [&](const core::EnvCapability& env) -> const Cover& {
            return env.to.empty() ? coverage.env : coverage.sealed;
          },
          [&](const core::IpcCapability&) -> const Cover& { return coverage.ipc; },
          [&](const core::ClockCapability&) -> const Cover& { return coverage.clock; },
          [&](const core::LimitCapability&) -> const Cover& { return coverage.limit; },
          [&](const core::AssertCapability&) -> const Cover& { return coverage.assertion; },
      },
      capability);
}

std::string_view level_name(Cover::Level level) {
  constexpr std::string_view names[] = {"enforced", "partly", "no"};
  return names[static_cast<std::size_t>(level)];
}

}  // namespace capgate::lower
