#include "import/own_meta.h"

#include <string>

#include "base/format.h"
#include "base/text.h"
#include "core/manifest.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Value;

constexpr std::string_view known_version = "1";

// Mistakes of the manifest stand at their place in the whole file.
Diagnostics moved(Diagnostics mistakes, std::size_t by) {
  for (Diagnostic& mistake : mistakes) {
    mistake.where = Span::at(mistake.where.begin + by, mistake.where.end + by);
  }
  return mistakes;
}

void grant_all(Value owner, std::string_view key, Collector& out) {
  const auto list = owner.find(key);
  if (!list || !list->is(Kind::array)) return;
  for (const Value capability : list->elements()) out.grant(capability.text(), own_meta_key);
}

void take(const text::Document& document, const core::Manifest& manifest, Collector& out) {
  out.name(manifest.name);
  out.version(manifest.version);
  if (manifest.seal) out.seal();
  const auto about = document.root().find("description");
  if (about && about->is(Kind::string)) out.description(about->text());
  out.whole_server();
  grant_all(document.root(), "serverCapabilities", out);
  for (const Value tool : document.root().find("tools")->elements()) {
    const auto description = tool.find("description");
    out.tool(tool.find("name")->text(),
             description && description->is(Kind::string) ? description->text() : "");
    grant_all(tool, "capabilities", out);
  }
  out.whole_server();
  out.assumed(own_meta_key,
              "the permissions are those that the author of the source wrote down: read them, as "
              "nobody else has checked them");
}

}  // namespace

OwnMeta take_own_meta(Value meta, Reading& in, Collector& out) {
  if (!meta.is(Kind::object)) return OwnMeta::absent;
  const auto own = meta.find(own_meta_key);
  if (!own) return OwnMeta::absent;
  const auto version = own->is(Kind::object) ? own->find("schemaVersion") : std::nullopt;
  if (!version || !version->is(Kind::number) || version->text() != known_version) {
    in.complain(Code::import_version, version ? version->span() : own->span(),
                format("this form of {} is not known", own_meta_key),
                "\"schemaVersion\": 1 is; a newer one needs a newer capgate");
    return OwnMeta::taken;
  }
  const auto held = in.object(*own, "manifest", Need::required);
  if (!held) return OwnMeta::taken;
  const Span where = held->span();
  const std::string_view source = held->document().source();
  auto document =
      text::parse_json(std::string(source.substr(where.begin, where.end - where.begin)));
  if (!document) {
    in.add(moved(std::move(document).error(), where.begin));
    return OwnMeta::taken;
  }
  auto manifest = core::outline_manifest(*document);
  if (!manifest) {
    in.add(moved(std::move(manifest).error(), where.begin));
    return OwnMeta::taken;
  }
  take(*document, *manifest, out);
  return OwnMeta::taken;
}

}  // namespace capgate::imports
