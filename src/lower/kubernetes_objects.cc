#include "lower/kubernetes_objects.h"

#include "base/text.h"
#include "lower/safe_name.h"

namespace capgate::lower {

// Services and their variables must begin with a letter, and have at most 63 characters. Server
// and broker differ in how they begin: with a suffix, a server could be named like the broker of
// another one, and have its policies.
ObjectNames object_names(std::string_view server) {
  const std::string plain = safe_name(server, 48);
  const std::string name = "mcp-" + plain;
  const std::string broker = "egress-" + plain;
  std::string variable;
  for (const char c : broker) {
    variable += is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c == '-' ? '_' : c;
  }
  return {.server = name,
          .broker = broker,
          .environment = name + "-env",
          .token = name + "-token",
          .seccomp_file = "capgate-" + name + ".json",
          .broker_address = variable + "_SERVICE_HOST"};
}

void write_labels(text::YamlWriter& yaml, std::string_view name) {
  yaml.begin_map().key("app.kubernetes.io/name").string(name);
  yaml.key("app.kubernetes.io/managed-by").string("capgate").end_map();
}

void begin_object(text::YamlWriter& yaml, std::string_view api, std::string_view kind,
                  std::string_view name) {
  yaml.begin_map().key("apiVersion").string(api).key("kind").string(kind);
  yaml.key("metadata").begin_map().key("name").string(name).key("labels");
  write_labels(yaml, name);
  yaml.end_map();
}

std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '$') out += '$';
    out += c;
  }
  return out;
}

}  // namespace capgate::lower
