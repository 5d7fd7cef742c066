// Any bytes at all: a config becomes entries whose capabilities stand in the text, or gives
// mistakes that stand there and can be printed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "clients/config.h"
#include "clients/entry_manifest.h"
#include "core/manifest.h"
#include "fuzz/mistakes.h"
#include "text/yaml.h"

namespace {

using namespace capgate;

// A mistake about a variable's value has no place in the text.
void check_mistakes(const Diagnostics& mistakes, std::string_view source) {
  CAPGATE_ASSERT(!mistakes.empty());
  for (Diagnostic mistake : mistakes) {
    if (mistake.where == Span::nowhere()) mistake.where = {};
    fuzz::check_mistake(mistake, source);
  }
}

void check_server(const clients::ServerConfig& server, const text::SharedText& text) {
  CAPGATE_ASSERT(clients::is_server_name(server.name));
  CAPGATE_ASSERT(server.capabilities.size() == server.capability_spans.size());
  for (const Span span : server.capability_spans) {
    CAPGATE_ASSERT(fuzz::is_inside(span, Span::at(0, text->size())));
  }
  CAPGATE_ASSERT(server.manifest.empty() || server.capabilities.empty());
  CAPGATE_ASSERT(server.url.empty() || server.capabilities.empty());
  const text::Document made = clients::entry_manifest(server, text);
  const auto manifest = core::parse_manifest(made, server.variables);
  if (!manifest) check_mistakes(manifest.error(), *text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const text::SharedText text = text::share(std::string(reinterpret_cast<const char*>(data), size));
  const auto document = text::parse_yaml(text);
  if (!document) return 0;
  const auto config =
      clients::parse_config(*document, {.directory = "/srv/project", .home = "/home/me"});
  if (!config) {
    check_mistakes(config.error(), *text);
    return 0;
  }
  for (const clients::ServerConfig& server : config->servers) check_server(server, text);
  return 0;
}
