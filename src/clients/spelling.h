// How a word is written down in a client's file. Pure.
#pragma once

#include <string>
#include <string_view>

#include "clients/client_file.h"

namespace capgate::clients {

// A token for `word`: in double quotes, or in YAML without any where that means the same.
[[nodiscard]] std::string spell(Syntax syntax, std::string_view word);
// The same in the quotes that `token` has, if they can hold the word.
[[nodiscard]] std::string spell_like(Syntax syntax, std::string_view token, std::string_view word);

// A token that means the same between the brackets of a list.
[[nodiscard]] bool fits_in_brackets(Syntax syntax, std::string_view token);

}  // namespace capgate::clients
