#include "mcp/inquiry.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::mcp {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;
using Cause = AskProblem::Cause;

// Lines that are no message: a banner on stdout is common, and clients pass over it.
constexpr std::size_t most_strays = 100;
constexpr std::size_t most_messages = 100'000;
constexpr std::size_t most_requests = 100;
constexpr std::size_t longest_cursor = 16384;
constexpr std::size_t longest_name = 256;

constexpr std::string_view method_not_found = "-32601";
constexpr std::string_view unsupported_revision = "-32022";
// HeaderMismatch, MissingRequiredClientCapability: only a modern server says them.
constexpr std::string_view other_modern_errors[] = {"-32020", "-32021"};

// This client asks for tools and nothing else, so it has a version of its own.
constexpr std::string_view identity = R"({"name":"capgate","version":"1"})";

std::optional<Value> member(std::optional<Value> object, std::string_view key) {
  if (!object || !object->is(Kind::object)) return {};
  return object->find(key);
}

std::string text_of(std::optional<Value> value) {
  return value && value->is(Kind::string) ? std::string(value->text()) : "";
}

// A text, or nothing at all: what is neither cannot be shown as what it is.
bool is_text_or_none(std::optional<Value> value) {
  return !value || value->is(Kind::string) || value->is(Kind::null);
}

std::optional<bool> flag_of(std::optional<Value> value) {
  if (!value || !value->is(Kind::boolean)) return {};
  return value->text() == "true";
}

std::string_view source_of(Value value) {
  const Span span = value.span();
  return value.document().source().substr(span.begin, span.end - span.begin);
}

bool is_code(std::optional<Value> code, std::string_view wanted) {
  return code && code->is(Kind::number) && code->text() == wanted;
}

bool lists(Value revisions, std::string_view wanted) {
  for (const Value revision : revisions.elements()) {
    if (revision.is(Kind::string) && revision.text() == wanted) return true;
  }
  return false;
}

bool is_legacy(std::string_view revision) {
  return std::ranges::find(legacy_revisions, revision) != std::end(legacy_revisions);
}

std::string modern_meta() {
  return format(R"("_meta":{{"io.modelcontextprotocol/protocolVersion":"{}",)"
                R"("io.modelcontextprotocol/clientCapabilities":{{}},)"
                R"("io.modelcontextprotocol/clientInfo":{}}})",
                modern_revision, identity);
}

std::string json_string(std::string_view text) {
  JsonWriter json(JsonWriter::Style::compact);
  json.string(text);
  return std::move(json).take();
}

// The members of a tool that have no place of their own here, as the server sent them.
std::string other_members(Value tool) {
  constexpr std::string_view known[] = {"name",        "title",        "description",
                                        "inputSchema", "outputSchema", "annotations"};
  std::string out;
  for (const text::Member each : tool.members()) {
    if (std::ranges::find(known, each.key.text()) != std::end(known)) continue;
    out += format("{}{}:{}", out.empty() ? "{" : ",", json_string(each.key.text()),
                  source_of(each.value));
  }
  return out.empty() ? out : out + "}";
}

std::vector<std::string> names_of(std::optional<Value> capabilities) {
  std::vector<std::string> out;
  if (!capabilities || !capabilities->is(Kind::object)) return out;
  for (const text::Member each : capabilities->members()) {
    const std::string_view name = each.key.text();
    const bool has_names = name == "extensions" || name == "experimental";
    if (!has_names || !each.value.is(Kind::object)) {
      out.emplace_back(name);
      continue;
    }
    for (const text::Member one : each.value.members()) {
      out.push_back(format("{}/{}", name, one.key.text()));
    }
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

// ---- questions ----------------------------------------------------------------------------------

Inquiry::Inquiry(const AskLimits& limits) : limits_(limits) {
  if (limits.probe.count() == 0) {
    initialize();
    return;
  }
  request("server/discover", format("{{{}}}", modern_meta()));
  probe_id_ = id_;
}

void Inquiry::request(std::string_view method, std::string_view params) {
  output_ +=
      format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", ++id_, method, params) +
      "\n";
}

void Inquiry::initialize() {
  stage_ = Stage::initializing;
  tools_.era = Era::legacy;
  request("initialize", format(R"({{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}})",
                               legacy_revisions[0], identity));
}

void Inquiry::ask_for_tools(std::string_view cursor) {
  stage_ = Stage::listing;
  std::string params;
  if (!cursor.empty()) params = format(R"("cursor":{})", json_string(cursor));
  if (tools_.era == Era::modern) {
    if (!params.empty()) params += ',';
    params += modern_meta();
  }
  request("tools/list", format("{{{}}}", params));
}

void Inquiry::probe_is_over() {
  if (state_ == State::asking && is_probing()) initialize();
}

// ---- what the server writes ---------------------------------------------------------------------

void Inquiry::read(std::string_view line) {
  if (state_ != State::asking) return;
  if (++messages_ > most_messages) {
    return fail(Cause::wrong, format("it wrote more than {} lines", most_messages));
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return;
  const auto document = text::parse_json(std::string(line));
  if (!document) return stray(line);
  const Value root = document->root();
  if (!root.is(Kind::array)) return read_message(root);
  // 2025-03-26 has batches.
  for (const Value message : root.elements()) {
    if (state_ == State::asking) read_message(message);
  }
}

void Inquiry::read_message(Value message) {
  if (text_of(member(message, "jsonrpc")) != "2.0") return stray(source_of(message));
  const auto method = message.find("method");
  const auto id = message.find("id");
  if (!method) {
    if (id && (message.find("result") || message.find("error"))) return read_answer(message, *id);
    return stray(source_of(message));
  }
  if (!method->is(Kind::string)) return stray(source_of(message));
  if (id) read_request(method->text(), *id);
}

void Inquiry::stray(std::string_view line) {
  if (strays_ == 0) first_stray_ = quoted(line);
  if (++strays_ > most_strays) {
    fail(Cause::wrong,
         format("its stdout holds other text than MCP messages, first {}", first_stray_));
  }
}

// In the modern era a server has no questions and a client no answers; before `initialize` a legacy
// server has none either.
void Inquiry::read_request(std::string_view method, Value id) {
  if (++requests_ > most_requests) {
    return fail(Cause::wrong, format("it sent more than {} requests, the last one {}",
                                     most_requests, quoted(method)));
  }
  if (tools_.era == Era::modern || is_probing()) return;
  if (!id.is(Kind::number) && !id.is(Kind::string)) return;
  const std::string_view what = method == "ping"
                                    ? R"("result":{})"
                                    : R"("error":{"code":-32601,"message":"Method not found"})";
  output_ += format(R"({{"jsonrpc":"2.0","id":{},{}}})", source_of(id), what) + "\n";
}

void Inquiry::read_answer(Value message, Value id) {
  const bool is_error = message.find("error").has_value();
  const auto is = [&](unsigned wanted) {
    return id.is(Kind::number) && id.text() == format("{}", wanted);
  };
  // Who cannot read a request does not know its id either.
  if (is(id_) || (is_error && id.is(Kind::null))) {
    has_answer_ = true;
    return answer(message);
  }
  if (is(probe_id_) && stage_ == Stage::initializing && !is_error) {
    // A modern server that takes long to start. What it says to `initialize` is of no interest.
    has_answer_ = true;
    return probed(message);
  }
  const auto number = id.is(Kind::number) ? parse_decimal(id.text()) : std::nullopt;
  const bool was_asked = number && *number >= 1 && *number <= id_;
  if (!was_asked) other_id_ = quoted(source_of(id));
}

void Inquiry::answer(Value message) {
  switch (stage_) {
    case Stage::probing: return probed(message);
    case Stage::initializing: return initialized(message);
    case Stage::listing: return listed(message);
  }
}

// ---- server/discover ----------------------------------------------------------------------------

void Inquiry::probed(Value message) {
  const bool was_probing = is_probing();
  const auto error = message.find("error");
  const auto code = member(error, "code");
  const auto result = member(message, "result");
  const auto revisions =
      error ? member(member(error, "data"), "supported") : member(result, "supportedVersions");
  const bool is_modern = !error || is_code(code, unsupported_revision);
  if (is_modern && revisions && revisions->is(Kind::array)) {
    if (result) discovered(*result);
    if (state_ != State::asking) return;
    return speak_one_of(*revisions);
  }
  if (std::ranges::any_of(other_modern_errors,
                          [&](std::string_view known) { return is_code(code, known); })) {
    tools_.era = Era::modern;
    tools_.protocol = modern_revision;
    return ask_for_tools({});
  }
  // Any other answer is that of a legacy server.
  if (was_probing) initialize();
}

void Inquiry::discovered(Value result) {
  take_words(result);
  if (const auto info = member(result, "serverInfo")) take_identity(*info);
  if (const auto info = member(member(result, "_meta"), "io.modelcontextprotocol/serverInfo")) {
    take_identity(*info);
  }
}

void Inquiry::speak_one_of(Value revisions) {
  if (lists(revisions, modern_revision)) {
    tools_.era = Era::modern;
    tools_.protocol = modern_revision;
    return ask_for_tools({});
  }
  const bool has_legacy = std::ranges::any_of(
      legacy_revisions, [&](std::string_view known) { return lists(revisions, known); });
  if (!has_legacy) {
    return fail(Cause::wrong, format("it speaks none of the revisions that capgate knows, but {}",
                                     quoted(source_of(revisions))));
  }
  if (is_probing()) initialize();
}

// What both discover and initialize say.
void Inquiry::take_words(Value result) {
  const auto capabilities = member(result, "capabilities");
  declares_tools_ = member(capabilities, "tools").has_value();
  tools_.declares = names_of(capabilities);
  const auto instructions = member(result, "instructions");
  if (!is_text_or_none(instructions)) {
    return fail(Cause::wrong,
                format("its instructions are no text: {}", quoted(source_of(*instructions))));
  }
  tools_.instructions = text_of(instructions);
}

void Inquiry::take_identity(Value info) {
  tools_.server_name = text_of(member(info, "name"));
  tools_.server_version = text_of(member(info, "version"));
}

// ---- initialize ---------------------------------------------------------------------------------

void Inquiry::initialized(Value message) {
  if (const auto error = message.find("error")) {
    const auto revisions = member(member(error, "data"), "supported");
    if (is_code(member(error, "code"), unsupported_revision) && revisions &&
        revisions->is(Kind::array) && lists(*revisions, modern_revision)) {
      return speak_one_of(*revisions);
    }
    return refuse(*error);
  }
  const auto result = message.find("result");
  tools_.protocol = text_of(member(result, "protocolVersion"));
  if (!is_legacy(tools_.protocol)) {
    return fail(Cause::wrong, format("it answers initialize with the revision {}, which is none "
                                     "that capgate knows",
                                     quoted(tools_.protocol)));
  }
  take_words(*result);
  if (state_ != State::asking) return;
  if (const auto info = member(result, "serverInfo")) take_identity(*info);
  output_ += R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
             "\n";
  ask_for_tools({});
}

// ---- tools/list ---------------------------------------------------------------------------------

void Inquiry::listed(Value message) {
  const auto error = message.find("error");
  if (error && !declares_tools_ && is_code(member(error, "code"), method_not_found)) {
    return list_is_over();
  }
  if (error) return refuse(*error);
  const auto result = message.find("result");
  const auto tools = member(result, "tools");
  if (!tools || !tools->is(Kind::array)) {
    return fail(Cause::wrong, format("it answers tools/list with {}", quoted(source_of(*result))));
  }
  if (const auto info = member(member(result, "_meta"), "io.modelcontextprotocol/serverInfo");
      info && tools_.server_name.empty()) {
    take_identity(*info);
  }
  for (const Value tool : tools->elements()) {
    add_tool(tool);
    if (state_ != State::asking) return;
  }
  const auto cursor = member(result, "nextCursor");
  if (!cursor || cursor->is(Kind::null)) return list_is_over();
  if (!cursor->is(Kind::string) || cursor->text().size() > longest_cursor ||
      cursors_.size() + 1 >= limits_.pages || !cursors_.emplace(cursor->text()).second) {
    return fail(Cause::wrong, format("its list of tools does not end: page {} leads to {}",
                                     cursors_.size() + 1, quoted(source_of(*cursor))));
  }
  ask_for_tools(cursor->text());
}

// A server may show one list to whoever looks, and another one later in the same conversation.
void Inquiry::list_is_over() {
  if (limits_.twice && !first_list_) {
    first_list_ = std::exchange(tools_.tools, {});
    names_.clear();
    cursors_.clear();
    return ask_for_tools({});
  }
  state_ = State::answered;
  if (!first_list_) return;
  tools_.again = std::exchange(tools_.tools, *std::move(first_list_));
}

void Inquiry::add_tool(Value tool) {
  const std::string name = text_of(member(tool, "name"));
  if (name.empty() || name.size() > longest_name || std::ranges::any_of(name, is_control)) {
    return fail(Cause::wrong, format("a tool has no proper name: {}", quoted(source_of(tool))));
  }
  // Which of the two a client calls is not known.
  if (!names_.insert(name).second) {
    return fail(Cause::wrong, format("it lists the tool {} twice", quoted(name)));
  }
  if (tools_.tools.size() >= limits_.tools) {
    return fail(Cause::wrong, format("it has more than {} tools", limits_.tools));
  }
  for (const std::string_view key : {"title", "description"}) {
    const auto words = member(tool, key);
    if (is_text_or_none(words)) continue;
    return fail(Cause::wrong, format("the {} of the tool {} is no text: {}", key, quoted(name),
                                     quoted(source_of(*words))));
  }
  const auto notes = member(tool, "annotations");
  const auto schema = member(tool, "inputSchema");
  const auto output = member(tool, "outputSchema");
  std::string title = text_of(member(tool, "title"));
  if (title.empty()) title = text_of(member(notes, "title"));
  tools_.tools.push_back({.name = name,
                          .title = std::move(title),
                          .description = text_of(member(tool, "description")),
                          .input_schema = schema ? std::string(source_of(*schema)) : "",
                          .output_schema = output ? std::string(source_of(*output)) : "",
                          .annotations = notes ? std::string(source_of(*notes)) : "",
                          .read_only = flag_of(member(notes, "readOnlyHint")),
                          .destructive = flag_of(member(notes, "destructiveHint")),
                          .idempotent = flag_of(member(notes, "idempotentHint")),
                          .open_world = flag_of(member(notes, "openWorldHint")),
                          .other = other_members(tool)});
}

// ---- the end ------------------------------------------------------------------------------------

void Inquiry::fail(Cause cause, std::string message) {
  state_ = State::failed;
  cause_ = cause;
  problem_ = std::move(message);
}

void Inquiry::refuse(Value error) {
  const std::string words = text_of(member(error, "message"));
  constexpr std::size_t longest = 1000;
  std::size_t cut = std::min(words.size(), longest);
  while (cut < words.size() && cut > 0 && (static_cast<unsigned char>(words[cut]) & 0xc0U) == 0x80U)
    --cut;
  fail(Cause::refused, format("it answers with an error: {}",
                              words.empty() ? quoted(source_of(error))
                                            : escape_for_terminal(words.substr(0, cut))));
}

std::string Inquiry::waiting_for() const {
  std::string out = stage_ == Stage::probing        ? "server/discover"
                    : stage_ == Stage::initializing ? "initialize"
                                                    : "tools/list";
  if (!other_id_.empty()) out += format("; it answered a request {} that nobody sent", other_id_);
  if (strays_ > 0) out += format("; it wrote {}, which is no MCP message", first_stray_);
  return out;
}

ServerTools Inquiry::take_tools() {
  if (strays_ > 0) {
    tools_.notes.push_back(
        format("its stdout also holds text that is no MCP message, first {}", first_stray_));
  }
  return std::move(tools_);
}

}  // namespace capgate::mcp
