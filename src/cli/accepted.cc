#include "cli/accepted.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/load.h"
#include "core/grammar.h"

namespace capgate::cli {

std::expected<void, int> read_accepted(const Arguments& arguments, lower::Options& out,
                                       Output& output) {
  for (const std::string& text : arguments.values("--accept-unenforced")) {
    const auto parsed = core::parse_capability(text, {});
    if (!parsed) {
      return std::unexpected(
          usage_error(format("--accept-unenforced {}: {}", quoted(text), parsed.error().message),
                      "name the capability as the diagnostic prints it", output));
    }
    out.accepted.push_back(print(parsed->front()));
  }
  return {};
}

}  // namespace capgate::cli
