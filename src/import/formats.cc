#include "import/formats.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/format.h"
#include "base/text.h"
#include "import/deno.h"
#include "import/docker_catalog.h"
#include "import/egress_spec.h"
#include "import/gatekit.h"
#include "import/mcpb.h"
#include "import/rampart.h"
#include "import/server_json.h"
#include "import/srt.h"
#include "import/toolhive.h"
#include "import/vscode.h"
#include "import/wassette.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Value;

constexpr std::array all_formats = {
    Format{"mcpb", "manifest.json of an MCPB or DXT bundle, 0.1 to 0.4", is_mcpb, read_mcpb},
    Format{"server-json", "entry of the MCP registry", is_server_json, read_server_json},
    Format{"toolhive", "permission profile of ToolHive", is_toolhive, read_toolhive},
    Format{"docker-catalog", "catalog of the Docker MCP gateway, or an entry of one",
           is_docker_catalog, read_docker_catalog},
    Format{"vscode", "mcp.json or settings of VS Code with a sandbox", is_vscode, read_vscode},
    Format{"srt", "settings of the sandbox runtime srt", is_srt, read_srt},
    Format{"gatekit", "configuration of Gatekit", is_gatekit, read_gatekit},
    Format{"rampart", "configuration of Rampart", is_rampart, read_rampart},
    Format{"wassette", "policy of Wassette, 1.0", is_wassette, read_wassette},
    Format{"deno", "deno.json with permissions; or a command with its flags", is_deno, read_deno},
};

bool has(Value object, std::string_view key, Kind kind) {
  const auto value = object.find(key);
  return value && value->is(kind);
}

// Whether `key` holds servers as clients name them: objects with a command or an address.
bool has_servers(Value object, std::string_view key) {
  const auto servers = object.find(key);
  if (!servers || !servers->is(Kind::object)) return false;
  for (const text::Member member : servers->members()) {
    if (!member.value.is(Kind::object)) continue;
    if (member.value.find("command") || member.value.find("url")) return true;
  }
  return false;
}

// docs/config.md: nothing but servers, of which one has what no client's configuration has.
bool is_capgate_yaml(Value root) {
  constexpr std::string_view own[] = {"manifest",  "capabilities", "sandbox",
                                      "variables", "secrets",      "seal"};
  if (!has(root, "servers", Kind::object)) return false;
  for (const text::Member member : root.members()) {
    if (member.key.text() != "servers" && member.key.text() != "$schema") return false;
  }
  for (const text::Member server : root.find("servers")->members()) {
    if (!server.value.is(Kind::object)) continue;
    if (has(server.value, "command", Kind::array)) return true;
    if (std::ranges::any_of(own, [&](auto key) { return server.value.find(key).has_value(); })) {
      return true;
    }
  }
  return false;
}

// What is no foreign format, and where it belongs; or nothing.
std::string_view what_else(Value root) {
  if (!root.is(Kind::object)) return "";
  if (has(root, "tools", Kind::array) && has(root, "name", Kind::string)) {
    for (const Value tool : root.find("tools")->elements()) {
      if (tool.is(Kind::object) && tool.find("capabilities")) {
        return "this is a capgate manifest already: read it with capgate check or capgate compile";
      }
    }
  }
  if (root.find("serverCapabilities")) {
    return "this is a capgate manifest already: read it with capgate check or capgate compile";
  }
  if (root.find("capgateEgress")) return "this is an egress spec: serve it with capgate egress";
  if (is_capgate_yaml(root)) {
    return "this is a capgate.yaml: start its servers with capgate run --profile NAME; capgate "
           "explain says what each may do";
  }
  for (const std::string_view key : {"mcpServers", "servers", "context_servers", "mcp"}) {
    if (has_servers(root, key)) {
      return "this is a client's configuration: put its servers into sandboxes with capgate wrap";
    }
  }
  return "";
}

std::string names_of(std::span<const Format> list) {
  std::string out;
  for (const Format& format : list) {
    out += capgate::format("{}{}", out.empty() ? "" : ", ", format.name);
  }
  return out;
}

}  // namespace

std::span<const Format> formats() { return all_formats; }

const Format* find_format(std::string_view name) {
  const auto* it = std::ranges::find(all_formats, name, &Format::name);
  return it == all_formats.end() ? nullptr : it;
}

Result<const Format*> detect_format(const text::Document& document) {
  std::vector<Format> fitting;
  for (const Format& format : all_formats) {
    if (format.fits(document)) fitting.push_back(format);
  }
  if (fitting.size() == 1) return find_format(fitting.front().name);
  const Span where = Span::at(document.root().span().begin, document.root().span().begin);
  if (fitting.size() > 1) {
    return fail(Code::import_format, where,
                format("this could be several formats: {}", names_of(fitting)),
                "say which one with --from FORMAT");
  }
  if (const auto other = what_else(document.root()); !other.empty()) {
    const auto colon = other.find(": ");
    return fail(Code::import_format, where, std::string(other.substr(0, colon)),
                std::string(other.substr(colon + 2)));
  }
  return fail(Code::import_format, where, "this is none of the formats that can be told apart",
              format("say which one with --from FORMAT: {}", names_of(all_formats)));
}

}  // namespace capgate::imports
