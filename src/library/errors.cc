#include "base/codes.h"
#include "library/state.h"

namespace capgate::v0 {

Errors errors_of(const Diagnostics& mistakes, const Source& source) {
  Errors errors;
  errors.reserve(mistakes.size());
  for (const capgate::Diagnostic& mistake : mistakes) {
    Source::Position at{.line = 0, .column = 0};
    if (mistake.where != Span::nowhere()) at = source.position(mistake.where.begin);
    errors.push_back({.code = std::string(code_name(mistake.code)),
                      .message = mistake.message,
                      .help = mistake.help,
                      .line = at.line,
                      .column = at.column,
                      .file = source.name()});
  }
  return errors;
}

Errors option_error(std::string message, std::string help) {
  return {{.code = "OPTION_INVALID",
           .message = std::move(message),
           .help = std::move(help),
           .file = {}}};
}

Errors out_of_memory() noexcept {
  try {
    return {{.code = "OUT_OF_MEMORY",
             .message = "there is no memory left",
             .help = "give the process more memory, or a smaller manifest",
             .file = {}}};
  } catch (...) {
    return {};
  }
}

}  // namespace capgate::v0
