// What a change of a client's file looks like, without what is nobody's business: values of
// variables and the entries of HTTP servers (which hold headers) are shown as ***. Pure.
//
//   @@ -7,2 +7,2 @@ github
//   -      "command": "npx",
//   -      "args": ["-y", "@modelcontextprotocol/server-github"],
//   +      "command": "/usr/bin/capgate",
//   +      "args": ["run", "--profile", "github", "--", "npx", "-y", ...],
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "clients/client_file.h"

namespace capgate::cli {

[[nodiscard]] std::string show_diff(const clients::ClientFile& file,
                                    const std::vector<clients::Edit>& edits, std::string_view path,
                                    Colour colour);

}  // namespace capgate::cli
