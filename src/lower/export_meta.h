// Exporting to the `_meta` object of an MCPB manifest.json or a registry server.json: the one place
// of both that others may extend.
//
//   {"dev.capgate/permissions": {"schemaVersion": 1, "manifest": {"name": ..., "tools": [...]}}}
//
// It carries the manifest and enforces nothing: whoever reads it does. Nothing is lost, and the
// manifest in it has the hash of the one that it was made of.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"
#include "text/document.h"

namespace capgate::lower {

inline constexpr std::string_view meta_key = "dev.capgate/permissions";

[[nodiscard]] Checked<Artifact> export_to_meta(const Input& input, text::Value manifest);

inline constexpr Coverage meta_coverage{
    .fs = enforced("carried as it is"),
    .connect = enforced("carried as it is"),
    .listen = enforced("carried as it is"),
    .exec = enforced("carried as it is"),
    .env = enforced("carried as it is"),
    .sealed = enforced("carried as it is"),
    .ipc = enforced("carried as it is"),
    .clock = enforced("carried as it is"),
    .limit = enforced("carried as it is"),
    .assertion = enforced("carried as it is"),
};

}  // namespace capgate::lower
