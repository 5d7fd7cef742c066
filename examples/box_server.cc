// A small MCP server for `./dev run`: three honest tools on a checkout and its issue tracker, and
// four that try to leave the sandbox. It speaks newline-delimited JSON-RPC over stdin and stdout.
//
//   capgate run -m examples/box.json --set WORKSPACE=/srv/checkout --set TRACKER_PORT=8080
//       -- capgate-example-server
//
// Nothing in it knows that it is sandboxed: it does what it is asked and tells what the system
// said.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <expected>
#include <fstream>
#include <iostream>
#include <memory>
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

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 1024> part{};
  for (ssize_t size = 0; (size = ::read(fd, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
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

// Asks for a page as HTTP clients do: the name is looked up, its first address connected to. It
// knows of no proxy.
Answer fetch(Value arguments) {
  const std::string host = argument(arguments, "host");
  const std::string port = argument(arguments, "port");
  const std::string where = host + ":" + port;
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); error != 0) {
    return std::unexpected("cannot find " + host + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return failed("cannot make a socket", errno);
  const std::string request = "GET / HTTP/1.1\r\nHost: " + where + "\r\nConnection: close\r\n\r\n";
  std::string answer;
  int error = 0;
  if (::connect(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    error = errno;
  } else {
    answer = read_to_end(fd);
  }
  ::close(fd);
  if (error != 0) return failed("cannot connect to " + where, error);
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos) return std::unexpected(where + " gave no answer");
  return answer.substr(head + 4);
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
  const std::string said = shell > 0 ? read_to_end(output[0]) : "";
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
    {"fetch_issues", "Get the page of an issue tracker", {"host", "port"}, fetch},
    {"read_file", "Read any file", {"path"}, read_file},
    {"write_file", "Write any file", {"path", "text"}, write_file},
    {"fetch_page", "Get any page", {"host", "port"}, fetch},
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
