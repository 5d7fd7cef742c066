#include "mcp/ask_command.h"

#include "base/format.h"
#include "mcp/process.h"

namespace capgate::mcp {
namespace {

std::expected<ServerTools, CommandProblem> ask_once(const AskedCommand& command,
                                                    const AskLimits& limits) {
  auto process = Process::start(command.program, command.words);
  if (!process) {
    return std::unexpected(CommandProblem{
        .asked = {.message = format("it cannot be started: {}", sys::reason(process.error()))}});
  }
  auto answer = ask_tools(process->pipes(command.cancel), limits);
  const int status = process->end(command.grace);
  if (answer) return *std::move(answer);
  return std::unexpected(CommandProblem{
      .asked = std::move(answer).error(), .status = status, .errors = process->errors()});
}

}  // namespace

std::expected<ServerTools, CommandProblem> ask_command(const AskedCommand& command) {
  auto answer = ask_once(command, command.limits);
  if (answer || answer.error().asked.cause != AskProblem::Cause::closed_at_probe) return answer;
  AskLimits again = command.limits;
  again.probe = {};
  return ask_once(command, again);
}

}  // namespace capgate::mcp
