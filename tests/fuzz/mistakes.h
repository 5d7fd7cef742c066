// What must hold for every diagnostic about any text: it points into the text, it says what is
// wrong and what to write instead, and a terminal shows it as it is.
#pragma once

#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/render.h"
#include "base/text.h"
#include "fuzz/walk.h"

namespace capgate::fuzz {

// No byte of any line controls the terminal.
inline void check_terminal_text(std::string_view text) {
  for (const std::string_view line : EachPart(text, '\n')) {
    CAPGATE_ASSERT(escape_for_terminal(line) == line);
  }
}

inline void check_mistake(const Diagnostic& mistake, std::string_view source) {
  CAPGATE_ASSERT(is_inside(mistake.where, Span::at(0, source.size())));
  CAPGATE_ASSERT(!mistake.message.empty() && !mistake.help.empty());
  check_terminal_text(render(mistake, Source("fuzz", source), Colour::off));
}

inline void check_mistakes(const Diagnostics& mistakes, std::string_view source) {
  CAPGATE_ASSERT(!mistakes.empty());
  for (const Diagnostic& mistake : mistakes) check_mistake(mistake, source);
}

}  // namespace capgate::fuzz
