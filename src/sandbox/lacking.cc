#include "sandbox/lacking.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/text.h"

namespace capgate::sandbox {

std::vector<std::string> of_kind(const Lacking& lacking, std::string_view kind) {
  std::vector<std::string> out;
  std::ranges::copy_if(lacking.capabilities, std::back_inserter(out),
                       [&](const std::string& each) { return each.starts_with(kind); });
  return out;
}

std::string as_in_entry(const Lacking& lacking, std::string capability) {
  for (const std::string& known : lacking.capabilities) {
    if (known.starts_with(capability + "?")) return known;
    constexpr std::string_view below = "**";
    const bool is_directory = known.starts_with("fs:") && known.ends_with("/**");
    if (is_directory && capability.starts_with(known.substr(0, known.size() - below.size()))) {
      return known;
    }
  }
  return capability;
}

std::string explain_status(const Lacking& lacking, int status) {
  if (lacking.capabilities.empty()) return {};
  std::string out = format(
      "capgate: the server ended with status {}, and its policy lacks what {} of the catalog "
      "has:\n",
      status, lacking.entry);
  for (const std::string& capability : lacking.capabilities) {
    out += format("  {}\n", escape_for_terminal(capability));
  }
  return out;
}

}  // namespace capgate::sandbox
