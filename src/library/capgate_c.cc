// The public C interface: a request is read, carried out and answered, with nothing thrown across.
#include <capgate/capgate_c.h>

#include <cstdlib>
#include <cstring>

#include "core/version.h"
#include "library/request.h"
#include "library/state.h"
#include "text/json_write.h"

namespace capgate::v0 {
namespace {

using text::JsonWriter;

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key).begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

void write_failure(JsonWriter& json, const Errors& errors) {
  json.begin_object().key("ok").boolean(false).key("diagnostics").begin_array();
  for (const Diagnostic& error : errors) {
    json.begin_object().key("code").string(error.code).key("message").string(error.message);
    json.key("help").string(error.help).key("file").string(error.file);
    if (error.line != 0) json.key("line").number(error.line).key("column").number(error.column);
    json.end_object();
  }
  json.end_array().end_object();
}

JsonWriter& begin_success(JsonWriter& json, std::string_view key) {
  return json.begin_object().key("ok").boolean(true).key(key);
}

// A document with each line as deep as a member of the answer; strings hold no raw line breaks.
std::string as_member(std::string_view json, bool pretty) {
  std::string out;
  out.reserve(json.size() * 2);
  while (json.ends_with('\n')) json.remove_suffix(1);
  for (const char c : json) {
    out += c;
    if (pretty && c == '\n') out += "  ";
  }
  return out;
}

Errors write_policy(JsonWriter& json, const Request& request, NamedDocument text) {
  const auto policy = compile_document(std::move(text), request.compile);
  if (!policy) return policy.error();
  if (request.operation == Operation::check) {
    begin_success(json, "policy").begin_object().key("hash").string(policy->hash());
    write_strings(json, "capabilities", policy->capabilities());
    json.end_object().end_object();
    return {};
  }
  const std::string_view target =
      request.target.empty() ? targets().at(0).name : std::string_view(request.target);
  const auto artifact = lower_policy(*policy, target, request.lower);
  if (!artifact) return artifact.error();
  begin_success(json, "artifact").verbatim(as_member(artifact->json(), request.pretty));
  json.end_object();
  return {};
}

Errors write_outline(JsonWriter& json, NamedDocument text) {
  const auto manifest = outline(std::move(text));
  if (!manifest) return manifest.error();
  begin_success(json, "manifest").begin_object().key("name").string(manifest->name());
  json.key("version").string(manifest->version());
  write_strings(json, "tools", manifest->tools());
  write_strings(json, "variables", manifest->variables());
  json.end_object().end_object();
  return {};
}

void write_targets(JsonWriter& json) {
  begin_success(json, "targets").begin_array();
  for (const Target& target : targets()) {
    json.begin_object().key("name").string(target.name);
    json.key("summary").string(target.summary).end_object();
  }
  json.end_array().end_object();
}

// Writes the answer, or nothing if there are errors.
Errors carry_out(JsonWriter& json, const Request& request) {
  if (request.operation == Operation::targets) {
    write_targets(json);
    return {};
  }
  auto text = read_document(request.manifest, request.name);
  if (!text) return text.error();
  return request.operation == Operation::parse ? write_outline(json, *std::move(text))
                                               : write_policy(json, request, *std::move(text));
}

std::string answer(std::string_view json) {
  const auto request = read_request(json);
  const bool pretty = request && request->pretty;
  JsonWriter writer(pretty ? JsonWriter::Style::pretty : JsonWriter::Style::compact);
  const Errors errors = request ? carry_out(writer, *request) : request.error();
  if (!errors.empty()) write_failure(writer, errors);
  return std::move(writer).take();
}

// For the caller to free; null when there is no memory.
char* hand_over(std::string_view text, std::size_t* length) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): across a C interface there is no other owner.
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  if (length != nullptr) *length = text.size();
  return copy;
}

constexpr std::string_view no_memory =
    R"({"ok":false,"diagnostics":[{"code":"OUT_OF_MEMORY","message":"there is no memory left",)"
    R"("help":"give the process more memory, or a smaller manifest","file":""}]})";

}  // namespace
}  // namespace capgate::v0

const char* capgate_version() { return capgate::core::version.data(); }

char* capgate_call(const char* request, std::size_t length, std::size_t* answer_length) {
  using namespace capgate::v0;
  if (answer_length != nullptr) *answer_length = 0;
  try {
    const std::string_view json = request == nullptr ? "" : std::string_view(request, length);
    return hand_over(answer(json), answer_length);
  } catch (...) {
    return hand_over(no_memory, answer_length);
  }
}

// NOLINTNEXTLINE(cppcoreguidelines-owning-memory): it comes from hand_over.
void capgate_free(char* answer) { std::free(answer); }
