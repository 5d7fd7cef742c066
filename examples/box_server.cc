// A small MCP server for `./dev run`: two honest tools on a checkout, and four that try to leave
// the sandbox. It speaks newline-delimited JSON-RPC over stdin and stdout.
//
//   capgate run -m examples/box.json --set WORKSPACE=/srv/checkout -- capgate-example-server
//
// Nothing in it knows that it is sandboxed: it does what it is asked and tells what the system
// said.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <expected>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "text/json.h"
#include "text/json_write.h"

namespace {

using capgate::text::JsonWriter;
using capgate::text::Kind;
using capgate::text::Value;

// What a tool did, or why it could not.
using Answer = std::expected<std::string, std::string>;

std::unexpected<std::string> failed(std::string what, int error) {
  return std::unexpected(std::move(what) + ": " + std::strerror(error));
}

std::string argument(Value arguments, std::string_view name) {
  if (!arguments.is(Kind::object)) return {};
  const auto found = arguments.find(name);
  return found ? std::string(found->text()) : std::string();
}

// ---- tools --------------------------------------------------------------------------------------

Answer read_file(Value arguments) {
  const std::string path = argument(arguments, "path");
  std::ifstream file(path);
  if (!file) return failed("cannot read " + path, errno);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Answer write_file(Value arguments) {
  const std::string path = argument(arguments, "path");
  std::ofstream file(path);
  if (!file || !(file << argument(arguments, "text")).flush()) {
    return failed("cannot write " + path, errno);
  }
  return "wrote " + path;
}

// The lines of a file that hold a text.
Answer search_code(Value arguments) {
  const std::string path = argument(arguments, "path");
  std::ifstream file(path);
  if (!file) return failed("cannot search " + path, errno);
  std::string found;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.contains(argument(arguments, "text"))) {
      found += path + ":" + std::to_string(number) + ": " + line + "\n";
    }
  }
  return found;
}

Answer connect_to(Value arguments) {
  const std::string address = argument(arguments, "address");
  const std::string port = argument(arguments, "port");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::uint16_t number = 0;
  std::from_chars(port.data(), port.data() + port.size(), number);
  to.sin_port = htons(number);
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) {
    return std::unexpected(address + " is no IPv4 address");
  }
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return failed("cannot make a socket", errno);
  const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  const int error = errno;
  ::close(fd);
  const std::string where = address + ":" + port;
  if (result != 0) return failed("cannot connect to " + where, error);
  return "connected to " + where;
}

// With fork, not popen, which calls every failure "Cannot allocate memory".
Answer run_shell(Value arguments) {
  const std::string command = argument(arguments, "command");
  int output[2];
  if (::pipe(output) != 0) return failed("cannot make a pipe", errno);
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::dup2(output[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  const int error = errno;
  ::close(output[1]);
  std::string said;
  char byte = 0;
  while (shell > 0 && ::read(output[0], &byte, 1) == 1) said += byte;
  ::close(output[0]);
  if (shell < 0) return failed("cannot start a shell", error);
  int status = 0;
  ::waitpid(shell, &status, 0);
  if (status != 0) return std::unexpected("the shell failed");
  return said;
}

struct Tool {
  std::string_view name;
  std::string_view description;
  std::array<std::string_view, 2> arguments;
  Answer (*run)(Value arguments);
};
constexpr Tool tools[] = {
    {"search_code", "Find a text in a file of the checkout", {"path", "text"}, search_code},
    {"apply_patch", "Write a file of the checkout", {"path", "text"}, write_file},
    {"read_file", "Read any file", {"path"}, read_file},
    {"write_file", "Write any file", {"path", "text"}, write_file},
    {"connect", "Open a TCP connection", {"address", "port"}, connect_to},
    {"run_shell", "Run a shell command", {"command"}, run_shell},
};

// ---- the protocol -------------------------------------------------------------------------------

void write_initialize(JsonWriter& json) {
  json.begin_object().key("protocolVersion").string("2025-06-18");
  json.key("capabilities").begin_object().key("tools").begin_object().end_object().end_object();
  json.key("serverInfo").begin_object().key("name").string("box").key("version").string("1");
  json.end_object().end_object();
}

void write_tools(JsonWriter& json) {
  json.begin_object().key("tools").begin_array();
  for (const Tool& tool : tools) {
    json.begin_object().key("name").string(tool.name);
    json.key("description").string(tool.description);
    json.key("inputSchema").begin_object().key("type").string("object");
    json.key("properties").begin_object();
    for (const std::string_view name : tool.arguments) {
      if (name.empty()) continue;
      json.key(name).begin_object().key("type").string("string").end_object();
    }
    json.end_object().end_object().end_object();
  }
  json.end_array().end_object();
}

Answer call_tool(Value request) {
  const auto parameters = request.find("params");
  if (!parameters || !parameters->is(Kind::object)) return std::unexpected("no parameters");
  const auto arguments = parameters->find("arguments");
  const std::string name = argument(*parameters, "name");
  for (const Tool& tool : tools) {
    if (tool.name == name) return tool.run(arguments.value_or(*parameters));
  }
  return std::unexpected("there is no tool " + name);
}

void write_answer(JsonWriter& json, const Answer& answer) {
  json.begin_object().key("content").begin_array();
  json.begin_object().key("type").string("text");
  json.key("text").string(answer ? *answer : answer.error()).end_object().end_array();
  json.key("isError").boolean(!answer).end_object();
}

void write_result(JsonWriter& json, std::string_view method, Value request) {
  if (method == "initialize") return write_initialize(json.key("result"));
  if (method == "tools/list") return write_tools(json.key("result"));
  if (method == "tools/call") return write_answer(json.key("result"), call_tool(request));
  json.key("error").begin_object().key("code").verbatim("-32601");
  json.key("message").string("no such method").end_object();
}

// The line to send back; nothing for a notification.
std::string answer_to(std::string line) {
  const auto document = capgate::text::parse_json(std::move(line));
  if (!document || !document->root().is(Kind::object)) return {};
  const Value request = document->root();
  const auto id = request.find("id");
  if (!id) return {};
  JsonWriter json(JsonWriter::Style::compact);
  json.begin_object().key("jsonrpc").string("2.0").key("id");
  if (id->is(Kind::string)) {
    json.string(id->text());
  } else {
    json.verbatim(id->text());
  }
  write_result(json, argument(request, "method"), request);
  json.end_object();
  return std::move(json).take() + "\n";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer_to(std::move(line)) << std::flush;
  }
}
