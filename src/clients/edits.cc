#include "clients/edits.h"

#include <algorithm>

namespace capgate::clients {

Result<std::string> apply_edits(std::string_view text, std::vector<Edit> edits) {
  std::ranges::sort(edits, {}, [](const Edit& edit) { return edit.where.begin; });
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.where.begin < at || edit.where.end > text.size()) {
      return fail(Code::doc_syntax, edit.where, "two changes touch the same place",
                  "make them one after the other");
    }
    out += text.substr(at, edit.where.begin - at);
    out += edit.text;
    at = edit.where.end;
  }
  out += text.substr(at);
  return out;
}

}  // namespace capgate::clients
