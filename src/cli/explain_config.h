// capgate explain FILE for a capgate.yaml: what each entry stands for.
#pragma once

#include "cli/options.h"
#include "text/document.h"

namespace capgate::cli {

// A mapping with `servers` and without `tools` is one.
[[nodiscard]] bool is_config(const text::Document& document);

[[nodiscard]] int explain_config(const Arguments& arguments, const text::SharedText& text,
                                 Output& output);

}  // namespace capgate::cli
