#include "sys/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/temp_directory.h"
#include "sys/file.h"

namespace capgate::sys {
namespace {

using Lines = std::vector<std::string>;

class LinesTest : public testing::Test {
 protected:
  [[nodiscard]] LineReader reader(std::string_view text, std::size_t longest = 100) const {
    return {Fd(::open(directory_.file("lines", text).c_str(), O_RDONLY | O_CLOEXEC)), longest};
  }
  test::TempDirectory directory_;
};

// A line that is not ended has a '~' behind it, one that is too long a '+'.
Lines all(LineReader& reader) {
  Lines found;
  for (auto line = reader.next(); line && *line; line = reader.next()) {
    found.push_back(std::string((*line)->text) + ((*line)->is_ended ? "" : "~") +
                    ((*line)->is_whole ? "" : "+"));
    if (!(*line)->is_ended) break;
  }
  return found;
}

TEST_F(LinesTest, AreGivenOneByOne) {
  auto none = reader("");
  EXPECT_EQ(all(none), Lines{});
  auto two = reader("a\n\nb\n");
  EXPECT_EQ(all(two), (Lines{"a", "", "b"}));
  auto open = reader("a\nb");
  EXPECT_EQ(all(open), (Lines{"a", "b~"}));
}

TEST_F(LinesTest, AreBounded) {
  for (const std::size_t size : {101U, 65535U, 65536U, 200'000U}) {
    auto lines = reader("a\n" + std::string(size, 'x') + "\nb\n");
    EXPECT_EQ(all(lines), (Lines{"a", std::string(100, 'x') + "+", "b"})) << size;
  }
  auto exact = reader(std::string(100, 'x') + "\n");
  EXPECT_EQ(all(exact), Lines{std::string(100, 'x')});
}

TEST_F(LinesTest, GoOnWithWhatIsAppended) {
  auto lines = reader("a\nb");
  EXPECT_EQ(all(lines), (Lines{"a", "b~"}));
  directory_.file("lines", "a\nc\nd\n");  // what was not ended was taken back
  EXPECT_EQ(all(lines), (Lines{"c", "d"}));
  EXPECT_EQ(all(lines), Lines{});
}

TEST_F(LinesTest, CrossBlocks) {
  std::string text;
  Lines expected;
  for (int i = 0; i < 30'000; ++i) {
    expected.push_back(std::to_string(i));
    text += expected.back() + "\n";
  }
  auto lines = reader(text);
  EXPECT_EQ(all(lines), expected);

  Lines backwards;
  const auto done =
      each_line_backwards(lines.file().get(), text.size() - 1, 100, [&](std::string_view line) {
        backwards.emplace_back(line);
        return true;
      });
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(backwards, Lines(expected.rbegin(), expected.rend()));
}

TEST_F(LinesTest, BackwardsEndsWhenToldAndAtLongLines) {
  auto lines = reader("a\n" + std::string(101, 'x') + "\nb\nc");
  int seen = 0;
  const auto stopped = each_line_backwards(lines.file().get(), 107, 100,
                                           [&](std::string_view) { return ++seen < 1; });
  EXPECT_TRUE(stopped && *stopped);
  EXPECT_EQ(seen, 1);
  const auto refused = each_line_backwards(lines.file().get(), 107, 100, [&](std::string_view) {
    ++seen;
    return true;
  });
  EXPECT_TRUE(refused && !*refused);
  EXPECT_EQ(seen, 3);
}

TEST_F(LinesTest, ComeFromAPipeToo) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  {
    const Fd in(ends[1]);
    ASSERT_TRUE(write_all(in.get(), "a\nb\nc"));
  }
  LineReader lines(Fd(ends[0]), 100);
  EXPECT_EQ(all(lines), (Lines{"a", "b", "c~"}));
}

}  // namespace
}  // namespace capgate::sys
