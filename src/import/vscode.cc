#include "import/vscode.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "import/rules.h"
#include "import/srt.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 3> file_keys = {"servers", "inputs", "sandbox"};
constexpr std::array<std::string_view, 2> sandbox_keys = {"filesystem", "network"};
constexpr std::array<std::string_view, 12> server_keys = {
    "type", "command", "args",           "env",     "envFile", "cwd",
    "url",  "headers", "sandboxEnabled", "gallery", "version", "dev"};

// The variables of the editor: ${workspaceFolder}, ${workspaceFolder:NAME}, ${userHome},
// ${env:NAME}, ${input:ID}. One of them may start a path.
std::optional<Rules::Item> translate(Rules& in, Value value, std::string_view text,
                                     std::string_view subject) {
  Rules::Item item{.text = std::string(text), .where = whole(value), .subject = subject};
  const std::size_t at = text.find("${");
  if (at == std::string_view::npos) return item;
  const std::size_t end = text.find('}');
  const auto refuse = [&](std::string message) -> std::optional<Rules::Item> {
    in.complain(item.where, std::move(message), "write the path out");
    return {};
  };
  if (at != 0 || end == std::string_view::npos || text.find("${", 1) != std::string_view::npos) {
    return refuse("a variable stands at the start of a path only");
  }
  const std::string_view name = text.substr(2, end - 2);
  const std::string_view rest = text.substr(end + 1);
  if (!rest.empty() && !rest.starts_with('/')) {
    return refuse("a variable is a whole part of a path");
  }
  if (name == "userHome") {
    item.text = format("~{}", rest);
    return item;
  }
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const std::string_view key = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  if (name == "workspaceFolder") {
    item.text = format("${{{}}}{}", in.out().variable(name, "workspace-folder"), rest);
  } else if ((kind == "workspaceFolder" || kind == "env" || kind == "input") && !key.empty()) {
    item.text = format("${{{}}}{}", in.out().variable(name, key), rest);
  } else {
    return refuse(format("the variable {} is not known", quoted(name)));
  }
  return item;
}

class Reader {
 public:
  Reader(Value root, const ImportPlace& place) : in_("vscode", place), root_(root) {}

  Checked<Imported> read() {
    if (!root_.is(Kind::object)) {
      in_.complain(root_.span(), "the configuration is a mapping", "write {\"servers\": {...}}");
      return std::move(in_).finish();
    }
    // Settings hold everything else of the editor as well.
    const bool is_settings = has_member(root_, "mcp", Kind::object) && !root_.find("servers");
    const Value file = is_settings ? *root_.find("mcp") : root_;
    in_.check_keys(file, file_keys, "the configuration");
    in_.start_is_unknown("the server");  // srt is started in its cwd
    read_inputs(file);
    const auto servers = in_.member(file, "servers", Kind::object);
    const auto chosen = servers ? in_.choose(*servers, "server") : std::nullopt;
    if (!servers) {
      in_.complain(Span::at(file.span().begin, file.span().begin), "servers is missing",
                   "import a file that names its servers");
    }
    if (chosen && chosen->value.is(Kind::object)) {
      in_.out().name(chosen->key.text());
      read_server(chosen->value);
    } else if (chosen) {
      in_.complain(chosen->value.span(), "a server is a mapping", "write {\"command\": ...}");
    }
    if (const auto sandbox = in_.member(file, "sandbox", Kind::object)) {
      in_.check_keys(*sandbox, sandbox_keys, "sandbox");
      read_sandbox_object(in_, *sandbox, translate);
    }
    in_.out().dropped("sandboxEnabled",
                      "VS Code approves every tool call of a sandboxed server by "
                      "itself; a manifest approves none");
    in_.out().unsaid("tools", "the sandbox is one for all servers of the file: no tool is named");
    return std::move(in_).finish();
  }

 private:
  // Which inputs are secrets.
  void read_inputs(Value file) {
    const auto inputs = in_.member(file, "inputs", Kind::array);
    if (!inputs) return;
    for (const Value input : inputs->elements()) {
      if (!input.is(Kind::object)) {
        in_.complain(input.span(), "an input is a mapping", "write {\"id\": ..., \"type\": ...}");
        continue;
      }
      if (in_.flag(input, "password")) secrets_.emplace(in_.text(input, "id"));
    }
  }

  void read_server(Value server) {
    in_.check_keys(server, server_keys, "a server");
    const std::string_view type = in_.text(server, "type");
    if (server.find("url") || type == "http" || type == "sse") {
      return in_.refuse(server.find("url") ? server.find("url")->span() : server.span(),
                        "the server runs elsewhere, and no sandbox is around it",
                        "choose a server with a command");
    }
    if (!in_.flag(server, "sandboxEnabled")) {
      in_.out().assumed("sandboxEnabled",
                        "the server is not sandboxed there, and may do whatever its "
                        "user may; the manifest grants what the file's sandbox "
                        "names");
    }
    read_command(server);
    if (const auto env = in_.member(server, "env", Kind::object)) read_env(*env);
    if (!in_.text(server, "envFile").empty()) {
      in_.out().dropped("envFile",
                        "the variables of that file are not known: none is granted; add "
                        "env:read:NAME and env:inject:NAME");
    }
    if (!in_.text(server, "cwd").empty()) {
      in_.out().dropped("cwd",
                        "where the server starts is not in a manifest: see capgate run --help");
    }
  }

  void read_command(Value server) {
    std::vector<std::string> words;
    if (const auto command = in_.text(server, "command"); !command.empty()) {
      words.emplace_back(command);
    }
    for (const Value word : in_.texts(server, "args")) words.emplace_back(word.text());
    if (std::ranges::any_of(words, [](const std::string& word) { return word.contains("${"); })) {
      in_.out().dropped("command",
                        "it holds variables of the editor: write it out for capgate run");
      return;
    }
    in_.out().command(std::move(words));
  }

  [[nodiscard]] bool has_secret(std::string_view value) const {
    constexpr std::string_view begin = "${input:";
    for (std::size_t at = value.find(begin); at != std::string_view::npos;
         at = value.find(begin, at + 1)) {
      const std::string_view rest = value.substr(at + begin.size());
      if (secrets_.contains(rest.substr(0, rest.find('}')))) return true;
    }
    return false;
  }

  void read_env(Value env) {
    for (const Member member : env.members()) {
      const Rules::Item item{
          .text = std::string(member.key.text()), .where = member.key.span(), .subject = "env"};
      if (item.text.empty() || member.value.is(Kind::null)) continue;
      const bool is_scalar = !member.value.is(Kind::object) && !member.value.is(Kind::array);
      const std::string_view value = is_scalar ? member.value.text() : "";
      if (has_secret(value)) {
        in_.allow_variable(core::EnvCapability::Action::inject, item);
      } else if (value.contains("${input:") || value == format("${{env:{}}}", item.text)) {
        in_.allow_variable(core::EnvCapability::Action::read, item);
        in_.out().dropped("env", format("a manifest holds no values: set {} where capgate runs",
                                        quoted(item.text)));
      } else {
        in_.allow_fixed_variable(item);
      }
    }
  }

  Rules in_;
  Value root_;
  std::set<std::string, std::less<>> secrets_;  // ids of inputs
};

}  // namespace

bool is_vscode(const text::Document& document) {
  Value file = document.root();
  if (has_member(file, "mcp", Kind::object) && !file.find("servers")) file = *file.find("mcp");
  if (!has_member(file, "servers", Kind::object)) return false;
  const auto sandbox = file.find("sandbox");
  if (sandbox && sandbox->is(Kind::object)) {
    return has_member(*sandbox, "filesystem", Kind::object) ||
           has_member(*sandbox, "network", Kind::object);
  }
  for (const Member server : file.find("servers")->members()) {
    if (has_member(server.value, "sandboxEnabled", Kind::boolean)) return true;
  }
  return false;
}

Checked<Imported> read_vscode(const text::Document& document, const ImportPlace& place) {
  return Reader(document.root(), place).read();
}

}  // namespace capgate::imports
