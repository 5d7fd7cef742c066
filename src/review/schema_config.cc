#include "review/schema_config.h"

#include "base/format.h"
#include "review/schema_capability.h"
#include "review/schema_patterns.h"

namespace capgate::review {
namespace {

using Object = SchemaValue::Object;

SchemaValue list_of(SchemaValue items) {
  return object({{"type", "array"}, {"items", std::move(items)}});
}

SchemaValue named(std::string_view description, std::string_view definition) {
  return object({{"description", description}, {"$ref", format("#/$defs/{}", definition)}});
}

SchemaValue boolean(std::string_view description) {
  return object({{"description", description}, {"type", "boolean"}});
}

SchemaValue command() {
  return object({{"description", "The program and its arguments; no shell reads them."},
                 {"type", "array"},
                 {"minItems", 1},
                 {"items", object({{"type", "string"}})},
                 {"prefixItems", list({object({{"type", "string"}, {"minLength", 1}})})}});
}

SchemaValue variables() {
  return object(
      {{"description", "Values of ${NAME} in capabilities."},
       {"type", "object"},
       {"propertyNames", object({{"pattern", pattern::variable_name()},
                                 {"not", object({{"enum", list({"HOME", "XDG_RUNTIME_DIR"})}})},
                                 {"errorMessage",
                                  "Upper-case letters, digits and underscores; HOME and "
                                  "XDG_RUNTIME_DIR are the caller's own."}})},
       {"additionalProperties", object({{"anyOf", list({refer("text"), refer("texts")})}})}});
}

SchemaValue secrets() {
  // env, file and keyring take any text; the name of a credential or of a stored value is no path.
  constexpr std::string_view source =
      R"(^(?:(?:env|file|keyring):|(?:systemd-credential|store):[^./-]|)"
      R"(cmd(?:\?(?:json|ttl=[1-9][0-9]{0,9}))?:)[^\x00-\x1f\x7f])";
  return object({{"description",
                  "Where the value of each env:inject:NAME comes from, as run --secret takes it."},
                 {"type", "object"},
                 {"propertyNames", object({{"pattern", pattern::variable_name()}})},
                 {"additionalProperties",
                  object({{"type", "string"},
                          {"pattern", source},
                          {"errorMessage",
                           "A secret is named by its provider, never by its value: env:NAME, "
                           "file:PATH, cmd:PROGRAM ARGUMENTS, systemd-credential:NAME, "
                           "keyring:NAME or store:NAME."},
                          {"examples", list({"env:GITHUB_TOKEN", "cmd:pass show github/token",
                                             "store:github"})}})}});
}

// At most one way to say what the server may do, and none for a server that runs elsewhere.
SchemaValue choices() {
  const auto not_both = [](std::string_view one, std::string_view other) {
    return object({{"not", object({{"type", "object"}, {"required", list({one, other})}})},
                   {"errorMessage", "Keep one of manifest, capabilities and sandbox."}});
  };
  Object refused;
  for (const char* key : {"command", "manifest", "capabilities", "sandbox", "secrets", "seal"}) {
    refused.push_back({key, false});
  }
  return list({not_both("manifest", "capabilities"), not_both("manifest", "sandbox"),
               not_both("capabilities", "sandbox"),
               object({{"if", object({{"type", "object"}, {"required", list({"url"})}})},
                       {"then", object({{"properties", std::move(refused)}})}})});
}

SchemaValue server() {
  return object(
      {{"type", "object"},
       {"additionalProperties", false},
       {"properties",
        object({{"description", object({{"type", "string"}})},
                {"command", command()},
                {"url", named("An HTTP server: it does not run here, and nothing here confines it.",
                              "text")},
                {"manifest",
                 named("A manifest's path, from this file's directory, or catalog:NAME.", "text")},
                {"capabilities", object({{"description", "Capability strings, docs/language.md."},
                                         {"type", "array"},
                                         {"items", refer("capability")}})},
                {"sandbox", refer("sandbox")},
                {"variables", variables()},
                {"secrets", secrets()},
                {"seal", boolean("Seal every env:inject.")}})},
       {"allOf", choices()}});
}

SchemaValue path() {
  return object(
      {{"description", "From the root, from ~ or from this file's directory; no globs."},
       {"type", "string"},
       {"pattern", R"(^(?:~|(?:~/|[^~*?\[\]{}\x00-\x1f\x7f])[^*?\[\]{}\x00-\x1f\x7f]*)$)"},
       {"errorMessage",
        "A path from the root, from ~ or from this file's directory, without globs "
        "and variables."},
       {"allOf", list({refuse(R"(^(?:[^/]*/)*\.\.(?:/|$))", "'..' cannot stand in a path.")})}});
}

SchemaValue sandbox() {
  const SchemaValue enabled = boolean("false: this server must not start.");
  const SchemaValue switches = object({{"enabled", enabled},
                                       {"paths", named("Read and write.", "paths")},
                                       {"network", boolean("true: every public address.")}});
  const SchemaValue endpoints = list_of(object({{"description", "HOST:PORT"},
                                                {"type", "string"},
                                                {"pattern", pattern::endpoint()},
                                                {"errorMessage", "Write HOST:PORT."},
                                                {"examples", list({"api.example.com:443"})}}));
  const SchemaValue programs = list_of(object({{"type", "string"},
                                               {"pattern", pattern::program()},
                                               {"errorMessage", "Name one program: git."}}));
  const SchemaValue lists =
      object({{"enabled", enabled},
              {"read", named("Read.", "paths")},
              {"write", named("Read and write.", "paths")},
              {"network", endpoints},
              {"exec", object({{"description", "Programs by name; true is refused."},
                               {"anyOf", list({object({{"const", false}}), programs})}})}});
  const auto form = [](SchemaValue properties) {
    return object({{"type", "object"},
                   {"additionalProperties", false},
                   {"properties", std::move(properties)}});
  };
  return object({{"description", "Shorthand for capabilities, in one of two forms."},
                 {"anyOf", list({form(switches), form(lists)})}});
}

}  // namespace

SchemaValue config_schema() {
  Object definitions = {{"text", object({{"type", "string"},
                                         {"pattern", pattern::text()},
                                         {"errorMessage", "One line of text that is not empty."}})},
                        {"texts", list_of(refer("text"))},
                        {"server", server()},
                        {"path", path()},
                        {"paths", list_of(refer("path"))},
                        {"sandbox", sandbox()}};
  for (SchemaMember& member : capability_definitions()) {
    if (member.key != "capability-0.0") definitions.push_back(std::move(member));
  }
  const SchemaValue names = object({{"pattern", "^[A-Za-z0-9._-]{1,64}$"},
                                    {"not", object({{"enum", list({".", ".."})}})},
                                    {"errorMessage", "Up to 64 letters, digits, '-', '_', '.'."}});
  return object(
      {{"title", "capgate.yaml"},
       {"description",
        "Which server may do what. docs/config.md is the page for people; "
        "capgate checks more than a schema can say."},
       {"type", "object"},
       {"required", list({"servers"})},
       {"additionalProperties", false},
       {"properties", object({{"$schema", object({{"type", "string"}})},
                              {"servers", object({{"type", "object"},
                                                  {"propertyNames", names},
                                                  {"additionalProperties", refer("server")}})}})},
       {"$defs", std::move(definitions)}});
}

}  // namespace capgate::review
