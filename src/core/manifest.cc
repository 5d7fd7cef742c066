#include "core/manifest.h"

#include <algorithm>
#include <span>

#include "base/format.h"
#include "base/render.h"
#include "base/text.h"
#include "core/provenance.h"
#include "core/scope.h"
#include "core/symbolic.h"

namespace capgate::core {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::string_view manifest_keys[] = {"$schema", "_meta", "description",        "grammar",
                                              "name",    "seal",  "serverCapabilities", "tools",
                                              "version"};
constexpr std::string_view tool_keys[] = {"_meta",       "annotations",  "capabilities",
                                          "description", "icons",        "inputSchema",
                                          "name",        "outputSchema", "title"};

class Reader {
 public:
  enum class Unbound : bool { is_a_mistake, is_left_out };
  Reader(const text::Document& document, const Bindings& bindings, Unbound unbound)
      : root_(document.root()),
        bindings_(bindings),
        home_(first_value(bindings, "HOME")),
        unbound_(unbound) {}
  Reader(const text::Document& document, const Bindings& bindings, Symbols& symbols)
      : Reader(document, bindings, Unbound::is_a_mistake) {
    symbols_ = &symbols;
    if (home_.empty()) home_ = symbols.directory("HOME");
  }

  Checked<Manifest> read() {
    if (!root_.is(Kind::object)) {
      complain(Code::manifest_shape, root_.span(), "a manifest is an object",
               "write { \"name\": ..., \"version\": ..., \"tools\": [...] }");
      return std::unexpected(std::move(mistakes_));
    }
    manifest_.home = home_;
    check_keys(root_, manifest_keys);
    read_grammar();
    manifest_.name = read_text(root_, "name");
    manifest_.version = read_text(root_, "version");
    read_seal();
    if (const auto server = root_.find("serverCapabilities"); server && !server->is(Kind::null)) {
      read_capabilities(*server, Declared::whole_server);
    }
    read_tools();
    if (!mistakes_.empty()) {
      sort_diagnostics(mistakes_);
      return std::unexpected(std::move(mistakes_));
    }
    manifest_.hash = manifest_hash(root_);
    return std::move(manifest_);
  }

 private:
  void complain(Code code, Span where, std::string message, std::string help) {
    mistakes_.push_back(
        {.code = code, .where = where, .message = std::move(message), .help = std::move(help)});
  }

  void check_keys(Value object, std::span<const std::string_view> known) {
    for (const Member member : object.members()) {
      const std::string_view key = member.key.text();
      if (std::ranges::find(known, key) != known.end()) continue;
      if (const auto meant = closest(key, known)) {
        complain(Code::manifest_unknown_key, member.key.span(),
                 format("unknown key {}", quoted(key)), format("did you mean {}?", *meant));
      } else {
        manifest_.notes.push_back(format("manifest: unknown key {} is not used", quoted(key)));
      }
    }
  }

  void read_grammar() {
    const auto grammar = root_.find("grammar");
    if (!grammar) return;
    const std::string help = format("write \"grammar\": \"{}\", or leave it out", current_grammar);
    if (!grammar->is(Kind::string)) {
      complain(Code::manifest_shape, grammar->span(), "grammar is a string", help);
    } else if (grammar->text() != current_grammar && grammar->text() != earlier_grammar) {
      complain(Code::grammar_version_mismatch, grammar->span(),
               format("grammar {} is not known", quoted(grammar->text())), help);
    } else {
      manifest_.grammar = grammar->text();
    }
  }

  void read_seal() {
    const auto seal = root_.find("seal");
    if (!seal) return;
    if (!seal->is(Kind::boolean)) {
      complain(Code::manifest_shape, seal->span(), "seal is true or false",
               "write \"seal\": true to seal every env:inject, or leave it out");
      return;
    }
    manifest_.seal = seal->text() == "true";
    if (manifest_.seal && manifest_.grammar == earlier_grammar) {
      complain(Code::grammar_feature, seal->span(),
               format("seal is not part of grammar {}", earlier_grammar),
               format("write \"grammar\": \"{}\"", current_grammar));
    }
  }

  // A required text that is not empty.
  std::string read_text(Value object, std::string_view key) {
    const auto value = object.find(key);
    if (value && value->is(Kind::string) && !value->text().empty()) {
      if (std::ranges::none_of(value->text(), is_control)) return std::string(value->text());
      complain(Code::manifest_shape, value->span(), format("control character in {}", key),
               "write it without");
      return {};
    }
    const Span where =
        value ? value->span() : Span::at(object.span().begin, object.span().begin + 1);
    const bool unquoted = value && (value->is(Kind::number) || value->is(Kind::boolean));
    complain(Code::manifest_shape, where,
             value ? format("{} is a string that is not empty", key) : format("{} is missing", key),
             unquoted ? format("put it into quotes: \"{}\"", escape_for_terminal(value->text()))
                      : format("add \"{}\": \"...\"", key));
    return {};
  }

  void read_tools() {
    const auto tools = root_.find("tools");
    if (!tools || !tools->is(Kind::array)) {
      complain(Code::manifest_shape,
               tools ? tools->span() : Span::at(root_.span().begin, root_.span().begin + 1),
               tools ? "tools is an array" : "tools is missing",
               "write \"tools\": [ { \"name\": ..., \"capabilities\": [...] } ]");
      return;
    }
    manifest_.tools.reserve(tools->count());
    manifest_.declared.reserve(manifest_.declared.size() +
                               std::size_t{3} * tools->count());  // a guess
    for (const Value tool : tools->elements()) {
      read_tool(tool);
    }
    check_tool_names();
  }

  void read_tool(Value tool) {
    if (!tool.is(Kind::object)) {
      complain(Code::manifest_shape, tool.span(), "a tool is an object",
               "write { \"name\": ..., \"capabilities\": [...] }");
      return;
    }
    check_keys(tool, tool_keys);
    const auto index = static_cast<std::uint32_t>(manifest_.tools.size());
    const auto name = tool.find("name");
    manifest_.tools.push_back(
        {.name = read_text(tool, "name"), .where = name ? name->span() : tool.span()});
    if (const auto capabilities = tool.find("capabilities")) {
      read_capabilities(*capabilities, index);
    } else {
      complain(Code::manifest_shape, Span::at(tool.span().begin, tool.span().begin + 1),
               "capabilities is missing", "add \"capabilities\": [], if the tool needs none");
    }
  }

  // Sorted, so that a manifest with many tools costs n log n.
  void check_tool_names() {
    std::vector<const Tool*> tools;
    for (const Tool& tool : manifest_.tools) {
      if (!tool.name.empty()) tools.push_back(&tool);
    }
    std::ranges::sort(tools, {}, [](const Tool* tool) {
      return std::pair(std::string_view(tool->name), tool->where.begin);
    });
    for (std::size_t i = 1; i < tools.size(); ++i) {
      if (tools[i - 1]->name != tools[i]->name) continue;
      complain(Code::manifest_duplicate_tool, tools[i]->where,
               format("tool {} is given twice", quoted(tools[i]->name)),
               "give each tool a name of its own");
    }
  }

  void read_capabilities(Value list, std::uint32_t tool) {
    if (!list.is(Kind::array)) {
      complain(Code::manifest_shape, list.span(), "capabilities are an array of strings",
               "write [\"fs:read:/workspace/**\"], or [] for none");
      return;
    }
    for (const Value item : list.elements()) {
      if (item.is(Kind::string)) {
        read_capability(item, tool);
      } else {
        complain(Code::manifest_shape, item.span(), "a capability is a string",
                 "write \"fs:read:/workspace/**\"");
      }
    }
  }

  void read_capability(Value item, std::uint32_t tool) {
    const auto names = variables_in(item.text());
    for (const std::string_view name : names) manifest_.used_variables.emplace_back(name);
    if (unbound_ == Unbound::is_left_out && !names.empty()) return;
    auto parsed = symbols_ != nullptr ? symbols_->parse(item.text(), bindings_)
                                      : parse_capability(item.text(), bindings_);
    if (!parsed) {
      Diagnostic mistake = std::move(parsed).error();
      mistake.where = item.locate(mistake.where.begin, mistake.where.end);
      mistakes_.push_back(std::move(mistake));
      return;
    }
    for (Capability& capability : *parsed) {
      const Span where = item.locate(0, item.text().size());
      if (auto allowed = check_scope(capability, home_); !allowed) {
        allowed.error().where = where;
        mistakes_.push_back(std::move(allowed).error());
        continue;
      }
      check_grammar_version(item, capability);
      manifest_.declared.push_back(
          {.capability = std::move(capability), .where = where, .tool = tool});
    }
  }

  void check_grammar_version(Value item, const Capability& capability) {
    if (manifest_.grammar != earlier_grammar) return;
    if (const auto feature = feature_beyond_0_0(item.text(), capability)) {
      complain(Code::grammar_feature, item.span(),
               format("{} is not part of grammar {}", *feature, earlier_grammar),
               format("write \"grammar\": \"{}\"", current_grammar));
    }
  }

  Value root_;
  const Bindings& bindings_;
  std::string home_;
  Unbound unbound_;
  Symbols* symbols_ = nullptr;
  Manifest manifest_;
  Diagnostics mistakes_;
};

}  // namespace

std::optional<std::uint32_t> Manifest::find_tool(std::string_view tool) const {
  const auto it = std::ranges::find(tools, tool, &Tool::name);
  if (it == tools.end()) return {};
  return static_cast<std::uint32_t>(it - tools.begin());
}

std::string_view Manifest::owner(const Declared& capability) const {
  return capability.tool == Declared::whole_server ? std::string_view("serverCapabilities")
                                                   : tools[capability.tool].name;
}

Checked<Manifest> parse_manifest(const text::Document& document, const Bindings& bindings) {
  return Reader(document, bindings, Reader::Unbound::is_a_mistake).read();
}

Checked<Manifest> parse_manifest(const text::Document& document, const Bindings& bindings,
                                 Symbols& symbols) {
  return Reader(document, bindings, symbols).read();
}

Checked<Manifest> outline_manifest(const text::Document& document) {
  return Reader(document, {}, Reader::Unbound::is_left_out).read();
}

}  // namespace capgate::core
