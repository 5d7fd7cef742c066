// Asks a server for its tools, as a client of either protocol era would.
//
//   const auto answer = ask_tools({.to = server_stdin, .from = server_stdout});
//   answer->tools[0].name
//
// A modern server is told apart by `server/discover`: any other error than its own, or silence,
// means the legacy `initialize`. Every page of tools/list is read, within limits: a server is not
// trusted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace capgate::mcp {

enum class Era : std::uint8_t { legacy, modern };

struct ToolInfo {
  std::string name;
  std::string title;
  std::string description;
  std::string input_schema;  // JSON as the server sent it; so are the next two
  std::string output_schema = {};
  std::string annotations = {};
  // Absent means the pessimistic default; a server's own word in any case.
  std::optional<bool> read_only;
  std::optional<bool> destructive;
  std::optional<bool> idempotent;
  std::optional<bool> open_world;
  // What else it says, as a JSON object: _meta, icons, ... Empty: nothing.
  std::string other = {};
};

struct ServerTools {
  Era era = Era::legacy;
  std::string protocol;  // the revision that it speaks
  std::string server_name;
  std::string server_version;
  std::string instructions = {};  // for the model: clients put it into its prompt
  // What it declares to have, sorted: "prompts", "tools"; of extensions and experiments each one,
  // "extensions/io.example/x".
  std::vector<std::string> declares = {};
  std::vector<ToolInfo> tools;     // in the server's order, each name once
  std::vector<std::string> notes;  // what a person should know of the server, escaped
  // What it listed when it was asked again in the same conversation (AskLimits::twice).
  std::optional<std::vector<ToolInfo>> again = {};
};

class ErrorTail;

struct Pipes {
  int to = -1;      // the server's stdin; becomes non-blocking
  int from = -1;    // its stdout; becomes non-blocking
  int cancel = -1;  // readable, for example a signalfd: nobody waits for the answer any more
  ErrorTail* errors = nullptr;  // its stderr, read meanwhile so that the server cannot block on it
};

struct AskLimits {
  std::chrono::milliseconds start = std::chrono::seconds(30);  // until the first answer
  // For server/discover. Zero: that is not asked, for a server that ends when it is.
  std::chrono::milliseconds probe = std::chrono::seconds(5);
  std::chrono::milliseconds whole = std::chrono::seconds(60);
  std::size_t line = std::size_t{4} << 20;
  std::size_t bytes = std::size_t{64} << 20;  // of everything that the server writes
  std::size_t tools = 10000;
  std::size_t pages = 1000;
  bool twice = false;  // the whole list is asked for again
};

struct AskProblem {
  enum class Cause : std::uint8_t {
    closed_at_probe,  // it ended on server/discover: start it again and ask with probe = 0
    closed,           // it closed its pipes, or does not read
    late,
    cancelled,
    refused,  // it answered with an error
    wrong,    // it does not keep to the protocol or to the limits
  };
  Cause cause = Cause::wrong;
  std::string message;  // what the server did, with what it sent, escaped and cut
};

[[nodiscard]] std::expected<ServerTools, AskProblem> ask_tools(const Pipes& pipes,
                                                               const AskLimits& limits = {});

}  // namespace capgate::mcp
