// Policies of Wassette, version 1.0.
//
//   version: "1.0"
//   permissions:
//     storage: {allow: [{uri: "fs:///srv/data/**", access: [read, write]}]}
//     network: {allow: [{host: api.example.com}]}
//     environment: {allow: [{key: API_KEY}]}
//     resources: {limits: {cpu: 500m, memory: 512Mi}}
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_wassette(const text::Document& document);
[[nodiscard]] Checked<Imported> read_wassette(const text::Document& document,
                                              const ImportPlace& place);

}  // namespace capgate::imports
