#include "mcp/tools.h"

#include <algorithm>

#include "base/format.h"
#include "mcp/framing.h"
#include "mcp/inquiry.h"

namespace capgate::mcp {
namespace {

using Cause = AskProblem::Cause;

class Asking {
 public:
  Asking(const Pipes& pipes, const AskLimits& limits)
      : limits_(limits), framing_(pipes, limits), inquiry_(limits) {}

  std::expected<ServerTools, AskProblem> run() {
    if (!framing_.prepare()) return std::unexpected(problem(Stop::failed));
    for (;;) {
      const auto sent = framing_.send(inquiry_.take_output(), deadline());
      if (!sent) return std::unexpected(problem(sent.error()));
      const auto line = framing_.next(deadline());
      if (!line && line.error() == Stop::late && probe_is_late()) {
        inquiry_.probe_is_over();
        continue;
      }
      if (!line) return std::unexpected(problem(line.error()));
      inquiry_.read(*line);
      if (inquiry_.state() == Inquiry::State::answered) return inquiry_.take_tools();
      if (inquiry_.state() == Inquiry::State::failed) {
        return std::unexpected(AskProblem{inquiry_.cause(), inquiry_.problem()});
      }
    }
  }

 private:
  // Of the whole conversation, whatever part of it is next.
  [[nodiscard]] Clock::time_point last_moment() const {
    return begin_ +
           (inquiry_.has_answer() ? limits_.whole : std::min(limits_.start, limits_.whole));
  }
  [[nodiscard]] Clock::time_point deadline() const {
    return inquiry_.is_probing() ? std::min(begin_ + limits_.probe, last_moment()) : last_moment();
  }
  [[nodiscard]] bool probe_is_late() const {
    return inquiry_.is_probing() && Clock::now() < last_moment();
  }

  [[nodiscard]] AskProblem problem(Stop stop) const {
    switch (stop) {
      case Stop::closed:
        if (inquiry_.is_probing()) {
          return {Cause::closed_at_probe,
                  format("it ended when it was asked {}", inquiry_.waiting_for())};
        }
        return {Cause::closed, format("it ended without an answer to {}", inquiry_.waiting_for())};
      case Stop::late: {
        const auto seconds = std::chrono::duration<double>(last_moment() - begin_).count();
        return {Cause::late, format("it gave no answer within {:g} seconds to {}", seconds,
                                    inquiry_.waiting_for())};
      }
      case Stop::cancelled: return {Cause::cancelled, "nobody waits for it any more"};
      case Stop::long_line:
        return {Cause::wrong, format("it wrote a line of more than {} bytes", limits_.line)};
      case Stop::too_much:
        return {Cause::wrong, format("it wrote more than {} bytes", limits_.bytes)};
      case Stop::failed: return {Cause::wrong, "its pipes cannot be used"};
    }
    return {};
  }

  AskLimits limits_;
  Clock::time_point begin_ = Clock::now();
  Framing framing_;
  Inquiry inquiry_;
};

}  // namespace

std::expected<ServerTools, AskProblem> ask_tools(const Pipes& pipes, const AskLimits& limits) {
  return Asking(pipes, limits).run();
}

}  // namespace capgate::mcp
