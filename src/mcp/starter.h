// A manifest to start from: the tools that a server has, and no capability. What each one may need
// is written as comments, guessed from the server's own words; the author decides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mcp/tools.h"
#include "text/json_write.h"

namespace capgate::mcp {

struct Starter {
  const ServerTools& server;
  std::string name;     // of the manifest, not empty
  std::string version;  // the same
  std::string file;     // as the comments call it
};

[[nodiscard]] std::string starter_yaml(const Starter& starter);
[[nodiscard]] std::string starter_json(const Starter& starter);
void write_starter(const Starter& starter, text::JsonWriter& json);

struct Suggestion {
  std::string capability;  // with words in capitals to be replaced
  std::string reason;

  friend bool operator==(const Suggestion&, const Suggestion&) = default;
};

[[nodiscard]] std::vector<Suggestion> suggest(const ToolInfo& tool);

// Foreign text that cannot leave the comment that it is put into: YAML has more line breaks than
// the newline. Cut to a line.
[[nodiscard]] std::string comment_text(std::string_view text);

}  // namespace capgate::mcp
