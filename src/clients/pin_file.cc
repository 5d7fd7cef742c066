// Pins as text.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/config.h"
#include "clients/names.h"
#include "clients/pin.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

template <typename T>
using Read = std::expected<T, PinProblem>;

std::unexpected<PinProblem> wrong(std::string message) {
  return std::unexpected(std::move(message));
}

bool is_hash(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  return text.starts_with(prefix) && text.size() == prefix.size() + 64 &&
         std::ranges::all_of(text.substr(prefix.size()),
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

// Reads the members of one object; the first mistake is kept.
class Members {
 public:
  Members(Value object, std::string_view what, std::span<const std::string_view> keys)
      : object_(object), what_(what) {
    if (!object.is(Kind::object)) {
      fail("is no object");
      return;
    }
    for (const text::Member member : object.members()) {
      if (!contains(keys, member.key.text())) {
        fail(format("has {}, which is not known", quoted(member.key.text())));
      }
    }
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }

  void fail(std::string_view message) {
    if (problem_.empty()) problem_ = format("{} {}", what_, message);
  }

  std::optional<Value> find(std::string_view key) {
    return object_.is(Kind::object) ? object_.find(key) : std::nullopt;
  }

  std::string text(std::string_view key) {
    const auto value = find(key);
    if (!value || !value->is(Kind::string)) {
      fail(format("has no text {}", key));
      return "";
    }
    return std::string(value->text());
  }

  std::string hash(std::string_view key) {
    std::string out = text(key);
    if (!is_hash(out)) fail(format("has no proper {}", key));
    return out;
  }

  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    const auto value = find(key);
    if (!value || !value->is(Kind::array)) {
      fail(format("has no list {}", key));
      return out;
    }
    for (const Value each : value->elements()) {
      if (!each.is(Kind::string)) fail(format("has something else than texts in {}", key));
      out.emplace_back(each.text());
    }
    return out;
  }

  // In its canonical form; empty if it is not there.
  std::string json(std::string_view key) {
    const auto value = find(key);
    if (!value) return "";
    JsonWriter json(JsonWriter::Style::compact);
    write_canonical(*value, json);
    return std::move(json).take();
  }

 private:
  Value object_;
  std::string_view what_;
  std::string problem_;
};

Read<PinnedPackage> read_package(Value value) {
  static constexpr std::string_view keys[] = {"registry",  "name", "version",
                                              "integrity", "tree", "runtime"};
  Members members(value, "a package", keys);
  PinnedPackage out{.registry = members.text("registry"),
                    .name = members.text("name"),
                    .version = members.text("version"),
                    .integrity = members.text("integrity"),
                    .tree = members.hash("tree"),
                    .runtime = members.find("runtime") ? members.text("runtime") : ""};
  const Package package{
      .registry = out.registry == "pypi" ? Package::Registry::pypi : Package::Registry::npm,
      .name = out.name,
      .range = ""};
  if (out.registry != "npm" && out.registry != "pypi") members.fail("has no known registry");
  if (members.find("runtime") && out.runtime.empty()) members.fail("has an empty runtime");
  if (!is_name(package) || !is_version(out.version)) members.fail("has no name or version");
  if (!members.problem().empty()) return wrong(members.problem());
  return out;
}

Read<PinnedTool> read_tool(Value value) {
  static constexpr std::string_view keys[] = {"name",        "hash",        "title",
                                              "description", "inputSchema", "outputSchema",
                                              "annotations", "other"};
  Members members(value, "a tool", keys);
  PinnedTool out{.name = members.text("name"),
                 .title = members.text("title"),
                 .description = members.text("description"),
                 .input_schema = members.json("inputSchema"),
                 .output_schema = members.json("outputSchema"),
                 .annotations = members.json("annotations"),
                 .other = members.json("other")};
  const std::string hash = members.hash("hash");
  if (out.name.empty()) members.fail("has no name");
  if (hash != tool_hash(out)) members.fail("has a hash that is not that of its words");
  if (!members.problem().empty()) return wrong(members.problem());
  return out;
}

Read<PinnedGrants> read_grants(Value value) {
  static constexpr std::string_view keys[] = {"tool", "capabilities"};
  Members members(value, "an entry of grants", keys);
  PinnedGrants out{.tool = members.text("tool"), .capabilities = members.texts("capabilities")};
  if (!members.problem().empty()) return wrong(members.problem());
  return out;
}

// A list of objects, sorted strictly by a name.
template <typename T, typename Reader>
Read<std::vector<T>> read_list(Value list, std::string_view key, Reader read,
                               std::string T::* name) {
  if (!list.is(Kind::array)) return wrong(format("{} is no list", key));
  std::vector<T> out;
  for (const Value each : list.elements()) {
    auto item = read(each);
    if (!item) return std::unexpected(std::move(item).error());
    if (!out.empty() && !(out.back().*name < (*item).*name)) {
      return wrong(format("{} is not sorted, or one is there twice", key));
    }
    out.push_back(*std::move(item));
  }
  return out;
}

Read<void> read_lists(Members& members, Pin& out) {
  if (const auto value = members.find("grants")) {
    auto grants = read_list<PinnedGrants>(*value, "grants", read_grants, &PinnedGrants::tool);
    if (!grants) return std::unexpected(std::move(grants).error());
    out.grants = *std::move(grants);
  } else {
    members.fail("has no grants");
  }
  if (const auto value = members.find("package")) {
    auto package = read_package(*value);
    if (!package) return std::unexpected(std::move(package).error());
    out.package = *std::move(package);
  }
  if (const auto value = members.find("tools")) {
    auto tools = read_list<PinnedTool>(*value, "tools", read_tool, &PinnedTool::name);
    if (!tools) return std::unexpected(std::move(tools).error());
    out.tools = *std::move(tools);
  }
  return {};
}

void write_strings(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

void write_json(std::string_view key, const std::string& canonical, JsonWriter& json) {
  if (canonical.empty()) return;
  const auto document = text::parse_json(canonical);
  if (!document) return;
  write_canonical(document->root(), json.key(key));
}

void write_tool(const PinnedTool& tool, JsonWriter& json) {
  json.begin_object().key("name").string(tool.name).key("hash").string(tool_hash(tool));
  json.key("title").string(tool.title).key("description").string(tool.description);
  write_json("inputSchema", tool.input_schema, json);
  write_json("outputSchema", tool.output_schema, json);
  write_json("annotations", tool.annotations, json);
  write_json("other", tool.other, json);
  json.end_object();
}

}  // namespace

Read<Pin> read_pin(Value value) {
  static constexpr std::string_view keys[] = {
      "server",     "command", "manifestHash", "policyHash", "policy",       "serverCapabilities",
      "grants",     "package", "protocol",     "tools",      "instructions", "declares",
      "interpreter"};
  Members members(value, "an entry", keys);
  Pin out{.server = members.text("server"),
          .manifest_hash = members.hash("manifestHash"),
          .policy = members.texts("policy"),
          .shared = members.texts("serverCapabilities"),
          .grants = {},
          .command = members.texts("command"),
          .package = {},
          .protocol = members.text("protocol"),
          .tools = {}};
  if (members.find("instructions")) out.instructions = members.text("instructions");
  if (members.find("declares")) out.declares = members.texts("declares");
  if (members.find("interpreter")) {
    out.interpreter = members.text("interpreter");
    if (out.interpreter.empty()) members.fail("has an empty interpreter");
  }
  const std::string hash = members.hash("policyHash");
  if (!is_server_name(out.server)) members.fail("has no proper server");
  if (hash != policy_hash(out.policy)) members.fail("has a policyHash that is not of its policy");
  if (!members.problem().empty()) return wrong(members.problem());
  if (auto done = read_lists(members, out); !done) return std::unexpected(std::move(done).error());
  if (!members.problem().empty()) return wrong(members.problem());
  return out;
}

void write_pin(const Pin& pin, JsonWriter& json) {
  json.begin_object().key("server").string(pin.server);
  write_strings(json.key("command"), pin.command);
  json.key("manifestHash").string(pin.manifest_hash);
  json.key("policyHash").string(policy_hash(pin.policy));
  write_strings(json.key("policy"), pin.policy);
  write_strings(json.key("serverCapabilities"), pin.shared);
  json.key("grants").begin_array();
  for (const PinnedGrants& grants : pin.grants) {
    json.begin_object().key("tool").string(grants.tool);
    write_strings(json.key("capabilities"), grants.capabilities);
    json.end_object();
  }
  json.end_array();
  if (pin.package) {
    const PinnedPackage& package = *pin.package;
    json.key("package").begin_object().key("registry").string(package.registry);
    json.key("name").string(package.name).key("version").string(package.version);
    json.key("integrity").string(package.integrity).key("tree").string(package.tree);
    if (!package.runtime.empty()) json.key("runtime").string(package.runtime);
    json.end_object();
  }
  if (!pin.interpreter.empty()) json.key("interpreter").string(pin.interpreter);
  json.key("protocol").string(pin.protocol);
  if (pin.instructions) json.key("instructions").string(*pin.instructions);
  if (pin.declares) write_strings(json.key("declares"), *pin.declares);
  if (pin.tools) {
    json.key("tools").begin_array();
    for (const PinnedTool& tool : *pin.tools) write_tool(tool, json);
    json.end_array();
  }
  json.end_object();
}

Read<std::vector<Pin>> parse_pins(std::string text) {
  const auto document = text::parse_json(std::move(text));
  if (!document) return wrong(document.error().front().message);
  const Value root = document->root();
  static constexpr std::string_view keys[] = {"schemaVersion", "servers"};
  if (root.is(Kind::object) && root.find("packages")) {
    return wrong("it is the lock of the package store, not that of a project");
  }
  Members members(root, "it", keys);
  const auto version = members.find("schemaVersion");
  const auto servers = members.find("servers");
  if (!version || !version->is(Kind::number) || version->text() != "1") {
    members.fail("has another schemaVersion than 1");
  }
  if (!servers) members.fail("has no servers");
  if (!members.problem().empty()) return wrong(members.problem());
  auto pins = read_list<Pin>(*servers, "servers", read_pin, &Pin::server);
  const auto is_of_one_machine = [](const Pin& pin) {
    return !pin.interpreter.empty() || (pin.package && !pin.package->runtime.empty());
  };
  if (pins && std::ranges::any_of(*pins, is_of_one_machine)) {
    return wrong(
        "a package has a runtime, or a server an interpreter, which is that of one machine");
  }
  return pins;
}

std::string print_pins(std::vector<Pin> pins) {
  std::ranges::sort(pins, {}, &Pin::server);
  for (Pin& pin : pins) {
    pin.interpreter.clear();
    if (pin.package) pin.package->runtime.clear();
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("servers").begin_array();
  for (const Pin& pin : pins) write_pin(pin, json);
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::clients
