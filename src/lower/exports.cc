#include "lower/exports.h"

#include <algorithm>

#include "lower/export_meta.h"
#include "lower/export_srt.h"
#include "lower/export_toolhive.h"
#include "lower/export_vscode.h"

namespace capgate::lower {
namespace {

constexpr Exporter table[] = {
    {.name = "mcpb-meta",
     .summary = "the _meta object of an MCPB manifest.json or a registry server.json",
     .write = export_to_meta,
     .coverage = &meta_coverage},
    {.name = "srt",
     .summary = "settings of sandbox-runtime (srt --settings FILE)",
     .write = export_to_srt,
     .coverage = &srt_coverage},
    {.name = "toolhive",
     .summary = "a permission profile of ToolHive (thv run --permission-profile FILE)",
     .write = export_to_toolhive,
     .coverage = &toolhive_coverage},
    {.name = "vscode",
     .summary = "an mcp.json of VS Code with its sandbox",
     .write = export_to_vscode,
     .coverage = &vscode_coverage,
     .open = vscode_open,
     .holds = Exporter::Holds::command},
};

static_assert(std::ranges::equal(table, exporter_names, {}, &Exporter::name));

}  // namespace

std::span<const Exporter> exporters() { return table; }

const Exporter* find_exporter(std::string_view name) {
  const auto* exporter = std::ranges::find(table, name, &Exporter::name);
  return exporter == std::end(table) ? nullptr : exporter;
}

Checked<Artifact> export_to(const Exporter& exporter, const Input& input, text::Value manifest) {
  Artifact artifact = TRY(exporter.write(input, manifest));
  artifact.target = exporter.name;
  artifact.not_covered.assign(exporter.open.begin(), exporter.open.end());
  const auto covers = columns_of(*exporter.coverage);
  for (std::size_t i = 0; i < covers.size(); ++i) {
    if (covers[i].level == Cover::Level::no) {
      artifact.not_covered.emplace_back(coverage_columns[i]);
    }
  }
  return artifact;
}

}  // namespace capgate::lower
