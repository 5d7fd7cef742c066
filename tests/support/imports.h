// What an importer makes of a text, in one line each: what tables of cases compare.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/codes.h"
#include "base/format.h"
#include "base/text.h"
#include "import/imported.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::support {

inline imports::ImportPlace import_place(std::string server = {}) {
  return {.file = "sample.json",
          .directory = "/srv/project",
          .home = "/home/me",
          .server = std::move(server)};
}

// "CODE 'what it points at': message" for each mistake, or the capabilities.
inline std::string outcome(const Checked<imports::Imported>& read, std::string_view source) {
  std::string out;
  if (!read) {
    for (const Diagnostic& mistake : read.error()) {
      const Span where = mistake.where;
      const bool is_inside = where.begin <= where.end && where.end <= source.size();
      out += format("{}{} '{}': {}", out.empty() ? "" : "; ", code_name(mistake.code),
                    is_inside ? source.substr(where.begin, where.end - where.begin) : "?outside?",
                    mistake.message);
    }
    return out;
  }
  return join(read->capabilities, " ");
}

inline bool has_loss(const Checked<imports::Imported>& read, imports::Loss::Kind kind,
                     std::string_view subject) {
  if (!read) return false;
  for (const imports::Loss& loss : read->losses) {
    if (loss.kind == kind && loss.subject == subject) return true;
  }
  return false;
}

// A reader and what it reads, JSON with comments or YAML.
using Read = Checked<imports::Imported> (*)(const text::Document&, const imports::ImportPlace&);

inline Checked<imports::Imported> read_json(Read read, std::string_view text,
                                            const std::string& server = {}) {
  const auto document = text::parse_jsonc(std::string(text));
  if (!document) return std::unexpected(document.error());
  return read(*document, import_place(server));
}

inline Checked<imports::Imported> read_yaml(Read read, std::string_view text,
                                            const std::string& server = {}) {
  const auto document = text::parse_yaml(std::string(text));
  if (!document) return std::unexpected(document.error());
  return read(*document, import_place(server));
}

struct ImportCase {
  std::string_view text;
  std::string_view outcome;
};

}  // namespace capgate::support
