#include "import/rampart.h"

#include <array>

#include "import/block_file.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::array<std::string_view, 6> file_keys = {
    "mcp", "version", "policies", "default_action", "notify", "name"};
constexpr std::array<std::string_view, 3> mcp_keys = {"server", "servers", "sandbox"};
constexpr std::array<std::string_view, 4> server_keys = {"server", "command", "env", "sandbox"};

// Only this dialect: a block of Gatekit has switches, one of VS Code has objects.
bool is_block(Value value) {
  if (!value.is(Kind::object)) return false;
  return has_member(value, "network", Kind::array) || has_member(value, "read", Kind::array) ||
         has_member(value, "write", Kind::array) || value.find("exec");
}

void read_server(Rules& in, Value server) {
  read_command_of(in, server, server.find("server") ? "server" : "command");
  if (const auto env = in.member(server, "env", Kind::object)) {
    for (const Member member : env->members()) {
      read_variable(in, member);
    }
  }
  read_block_of(in, server);
}

}  // namespace

bool is_rampart(const text::Document& document) {
  const Value root = document.root();
  if (!has_member(root, "mcp", Kind::object)) return false;
  const Value mcp = *root.find("mcp");
  if (has_member(mcp, "server", Kind::string)) {
    return has_member(mcp, "sandbox", Kind::object) && is_block(*mcp.find("sandbox"));
  }
  if (!has_member(mcp, "servers", Kind::object)) return false;
  for (const Member member : mcp.find("servers")->members()) {
    const auto sandbox =
        member.value.is(Kind::object) ? member.value.find("sandbox") : std::nullopt;
    if (sandbox && is_block(*sandbox)) return true;
  }
  return false;
}

Checked<Imported> read_rampart(const text::Document& document, const ImportPlace& place) {
  Rules in("rampart", place);
  const Value root = document.root();
  const auto mcp = root.is(Kind::object) ? in.member(root, "mcp", Kind::object) : std::nullopt;
  if (!mcp) {
    in.complain(Span::at(root.span().begin, root.span().begin), "mcp is missing",
                "write mcp: {server: COMMAND, sandbox: {...}}");
    return std::move(in).finish();
  }
  in.check_keys(root, file_keys, "the configuration");
  in.check_keys(*mcp, mcp_keys, "mcp");
  if (const auto servers = in.member(*mcp, "servers", Kind::object)) {
    for (const std::string_view key : {"server", "sandbox"}) {
      const auto other = mcp->find(key);
      if (!other || other->is(Kind::null)) continue;
      in.complain(other->span(), "it stands beside servers, and may hold for each of them",
                  "keep one of the two: the sandbox of each server below servers");
    }
    const auto chosen = in.choose(*servers, "server");
    if (chosen && chosen->value.is(Kind::object)) {
      in.out().name(chosen->key.text());
      in.check_keys(chosen->value, server_keys, "a server");
      read_server(in, chosen->value);
    } else if (chosen) {
      in.complain(chosen->value.span(), "a server is a mapping", "write {command: [...]}");
    }
  } else {
    read_server(in, *mcp);
  }
  for (const std::string_view key : {"policies", "default_action"}) {
    if (root.find(key)) {
      in.out().dropped(key,
                       "they judge the calls of tools, which a manifest does not: keep them in "
                       "front of the server");
    }
  }
  in.out().unsaid("tools", "a sandbox is for the whole server: no tool is named");
  return std::move(in).finish();
}

}  // namespace capgate::imports
