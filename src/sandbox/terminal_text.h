// A server's words for a terminal: no control character reaches it, and nothing in them can be
// taken for a line of capgate's.
//
//   TerminalText text;
//   text.add("\x1b[2Jcapgate: all is well\n", out)   ->  "\x1b[2Jcapgate\x3a all is well\n",
//   visibly
//
// Words may come in any pieces. A colon after "capgate" is shown as \x3a wherever it stands: a long
// line wraps, so that every place can be the beginning of a line.
#pragma once

#include <string>
#include <string_view>

namespace capgate::sandbox {

class TerminalText {
 public:
  // Appends what can be shown of all that was added so far.
  void add(std::string_view bytes, std::string& out);
  // Appends the rest: nothing follows.
  void end(std::string& out);

 private:
  std::string held_;  // how it is shown depends on what follows
};

}  // namespace capgate::sandbox
