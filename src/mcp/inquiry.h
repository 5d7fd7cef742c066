// The client's side of the conversation that lists a server's tools, in both eras of the protocol,
// without a pipe or a clock: lines of the server in, lines for it out.
//
//   Inquiry inquiry(limits);
//   send(inquiry.take_output());                     // server/discover, or initialize
//   while (inquiry.state() == Inquiry::State::asking) {
//     inquiry.read(next_line());                     // or probe_is_over(), if there is none
//     send(inquiry.take_output());
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "mcp/tools.h"
#include "text/document.h"

namespace capgate::mcp {

inline constexpr std::string_view modern_revision = "2026-07-28";
// The newest is the one that `initialize` offers.
inline constexpr std::string_view legacy_revisions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                        "2024-11-05"};

class Inquiry {
 public:
  enum class State : std::uint8_t { asking, answered, failed };

  explicit Inquiry(const AskLimits& limits);

  [[nodiscard]] State state() const { return state_; }
  // Whole lines for the server.
  [[nodiscard]] std::string take_output() { return std::exchange(output_, {}); }
  [[nodiscard]] bool is_probing() const { return stage_ == Stage::probing; }
  [[nodiscard]] bool has_answer() const { return has_answer_; }

  void read(std::string_view line);
  // No answer to server/discover came in time: the server is taken for a legacy one.
  void probe_is_over();

  [[nodiscard]] ServerTools take_tools();
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] AskProblem::Cause cause() const { return cause_; }
  // What the server is asked at the moment, and what it wrote instead of an answer.
  [[nodiscard]] std::string waiting_for() const;

 private:
  enum class Stage : std::uint8_t { probing, initializing, listing };

  void request(std::string_view method, std::string_view params);
  void ask_for_tools(std::string_view cursor);
  void initialize();
  void fail(AskProblem::Cause cause, std::string message);
  void refuse(text::Value error);

  void read_message(text::Value message);
  void read_answer(text::Value message, text::Value id);
  void read_request(std::string_view method, text::Value id);
  void stray(std::string_view line);

  void answer(text::Value message);
  void probed(text::Value message);
  void speak_one_of(text::Value revisions);
  void discovered(text::Value result);
  void initialized(text::Value message);
  void listed(text::Value message);
  void list_is_over();
  void add_tool(text::Value tool);
  void take_identity(text::Value info);
  void take_words(text::Value result);

  AskLimits limits_;
  State state_ = State::asking;
  Stage stage_ = Stage::probing;
  unsigned id_ = 0;        // of the question at hand
  unsigned probe_id_ = 0;  // its answer may come when nobody waits for it any more
  bool has_answer_ = false;
  bool declares_tools_ = false;
  std::string output_;
  std::string problem_;
  AskProblem::Cause cause_ = AskProblem::Cause::wrong;
  ServerTools tools_;
  std::optional<std::vector<ToolInfo>> first_list_;  // while it is asked for again
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> cursors_;
  std::size_t messages_ = 0;
  std::size_t requests_ = 0;
  std::size_t strays_ = 0;
  std::string first_stray_;
  std::string other_id_;  // of an answer to nothing that was asked
};

}  // namespace capgate::mcp
