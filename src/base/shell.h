// A word to be pasted into a shell: what a person sees is what the shell gets.
//
//   shell_word("/srv/my notes")     -> '/srv/my notes'
//   shell_word("a\x1b[2J")          -> $'a\x1b[2J', which bash and zsh read
#pragma once

#include <string>
#include <string_view>

namespace capgate {

[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace capgate
