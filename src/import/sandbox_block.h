// The two earlier `sandbox:` dialects as capability strings.
//
//   {enabled: true, paths: [~/project], network: false}                    read-write paths, a
//   switch {network: [api.github.com:443], read: [~/x], write: [], exec: false}   Deno's habit:
//   lists
//
// Both deny everything that they do not name; the sensitive directories stay hidden whatever is
// named. `network: true` becomes `net:connect:*`, explicitly and with a note; private addresses
// stay blocked. What they cannot mean is an error: `exec: true` (which programs?), a glob in a
// path, an unknown key, keys of both dialects in one block.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/span.h"
#include "text/document.h"

namespace capgate::imports {

struct SandboxBlock {
  bool enabled = true;
  std::vector<std::string> capabilities;
  std::vector<Span> spans;  // where each stands
  std::vector<std::string> notes;
};

struct BlockPlace {
  std::string directory;  // relative paths start here
  std::string home;       // ~
};

[[nodiscard]] Checked<SandboxBlock> read_sandbox_block(text::Value block, const BlockPlace& place);

}  // namespace capgate::imports
