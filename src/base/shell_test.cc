#include "base/shell.h"

#include <gtest/gtest.h>

namespace capgate {
namespace {

TEST(ShellWord, StandsForItself) {
  EXPECT_EQ(shell_word("/srv/notes-1.txt"), "/srv/notes-1.txt");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my notes"), "'my notes'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(ShellWord, ShowsWhatATerminalWouldNot) {
  EXPECT_EQ(shell_word("a\x1b[2J'\\"), "$'a\\x1b[2J\\'\\\\'");
}

}  // namespace
}  // namespace capgate
