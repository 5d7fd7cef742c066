#include "review/schema.h"

#include <span>

#include "base/format.h"
#include "review/schema_capability.h"
#include "review/schema_config.h"
#include "review/schema_patterns.h"

namespace capgate::review {
namespace {

using List = SchemaValue::List;
using Object = SchemaValue::Object;

constexpr std::string_view manifest_keys[] = {"_meta", "description",        "grammar", "name",
                                              "seal",  "serverCapabilities", "tools",   "version"};
constexpr std::string_view tool_keys[] = {"_meta",       "annotations",  "capabilities",
                                          "description", "icons",        "inputSchema",
                                          "name",        "outputSchema", "title"};

// Other keys are accepted, but not those that are one letter off.
SchemaValue no_slips(std::span<const std::string_view> keys) {
  List known = {"$schema"};
  std::string slips;
  for (const std::string_view key : keys) {
    known.emplace_back(key);
    slips += format("{}{}", slips.empty() ? "" : "|", pattern::slips_of(key));
  }
  return object({{"if", object({{"enum", std::move(known)}})},
                 {"else", refuse(format("^(?:{})$", slips),
                                 "This key is one letter off from one that capgate knows.")}});
}

SchemaValue text(std::string_view description) {
  return object({{"type", "string"},
                 {"description", description},
                 {"pattern", pattern::text()},
                 {"errorMessage", "One line of text that is not empty."}});
}

SchemaValue described(std::string_view description) {
  return object({{"description", description}});
}

SchemaValue only_grammar_0_0() {
  const SchemaValue tool = object(
      {{"type", "object"},
       {"properties", object({{"capabilities", object({{"type", "array"},
                                                       {"items", refer("capability-0.0")}})}})}});
  const SchemaValue seal =
      object({{"const", false}, {"errorMessage", "seal is not part of grammar 0.0."}});
  return object(
      {{"if", object({{"type", "object"},
                      {"properties", object({{"grammar", object({{"const", "0.0"}})}})},
                      {"required", list({"grammar"})}})},
       {"then",
        object({{"properties",
                 object({{"serverCapabilities", object({{"type", list({"array", "null"})},
                                                        {"items", refer("capability-0.0")}})},
                         {"tools", object({{"type", "array"}, {"items", tool}})},
                         {"seal", seal}})}})}});
}

SchemaValue grammar() {
  return object({{"description", "The version of the capability language."},
                 {"enum", list({"0.1", "0.0"})},
                 {"enumDescriptions", list({"the current language; the same as leaving it out",
                                            "refuses what 0.1 added"})},
                 {"default", "0.1"}});
}

SchemaValue tool() {
  return object(
      {{"type", "object"},
       {"description", "One tool and what it may do."},
       {"required", list({"name", "capabilities"})},
       {"propertyNames", no_slips(tool_keys)},
       {"properties", object({{"name", text("The name of the tool, as tools/list says it.")},
                              {"capabilities", refer("capabilities")},
                              {"title", described("For people; capgate does not use it.")},
                              {"description", described("For people; capgate does not use it.")},
                              {"annotations", described("As in tools/list.")},
                              {"inputSchema", described("As in tools/list.")},
                              {"outputSchema", described("As in tools/list.")},
                              {"icons", described("As in tools/list.")},
                              {"_meta", described("Whatever else belongs to the tool.")}})},
       {"defaultSnippets",
        list({object(
            {{"label", "a tool"},
             {"description", "A tool with a capability"},
             {"body", object({{"name", "${1:name}"},
                              {"capabilities", list({"${2:fs:read:/workspace/**}"})}})}})})}});
}

SchemaValue capability_list() {
  return object({{"type", "array"},
                 {"description", "Capability strings; an empty list for none."},
                 {"items", refer("capability")}});
}

SchemaValue manifest_schema() {
  Object definitions = {{"tool", tool()}, {"capabilities", capability_list()}};
  for (SchemaMember& member : capability_definitions()) definitions.push_back(std::move(member));
  return object(
      {{"title", "capgate manifest"},
       {"description",
        "What an MCP server and its tools may do. docs/language.md is the page for "
        "people; capgate checks more than a schema can say."},
       {"type", "object"},
       {"required", list({"name", "version", "tools"})},
       {"propertyNames", no_slips(manifest_keys)},
       {"properties",
        object(
            {{"$schema", described("The address of this schema; capgate does not use it.")},
             {"name", text("The name of the server.")},
             {"version", text("The version of the server, in quotes.")},
             {"description", described("For people; capgate does not use it.")},
             {"grammar", grammar()},
             {"seal", object({{"description", "Seal every env:inject that has no to=."},
                              {"type", "boolean"}})},
             {"serverCapabilities", object({{"description", "What the server needs for all tools."},
                                            {"type", list({"array", "null"})},
                                            {"items", refer("capability")}})},
             {"tools", object({{"description", "The tools, each with what it may do."},
                               {"type", "array"},
                               {"items", refer("tool")}})},
             {"_meta", described("Whatever else belongs to the server.")}})},
       {"allOf", list({only_grammar_0_0()})},
       {"$defs", std::move(definitions)}});
}

}  // namespace

std::string print_schema(Subject subject, Draft draft) {
  return print(subject == Subject::manifest ? manifest_schema() : config_schema(), draft);
}

}  // namespace capgate::review
