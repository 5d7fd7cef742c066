// Text in unit files, so that nothing in it is syntax: no specifier (%), no second word, no field
// after a colon, no variable ($), no second command (;). Control characters never get here: the
// grammar and the command line refuse them.
//
//   unit_word(R"(/srv/50% "off")")  ->  "/srv/50%% \"off\""     in quotes, always
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::lower {

// One word of a list, of Environment= or of a command.
[[nodiscard]] std::string unit_word(std::string_view text);

// SOURCE:DESTINATION of a bind mount, in quotes each.
[[nodiscard]] std::string unit_bind(std::string_view source, std::string_view destination);

// The value of ExecStart=. The first word is an absolute path, so that it cannot begin with one of
// the characters that change privileges; ':' before it leaves every '$' alone.
[[nodiscard]] std::string unit_command(const std::vector<std::string>& words);

// One line of prose: a specifier or a line end in it would be read, too.
[[nodiscard]] std::string unit_prose(std::string_view text);

}  // namespace capgate::lower
