#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "base/format.h"
#include "base/text.h"
#include "clients/package.h"
#include "clients/pep440.h"
#include "clients/semver.h"
#include "support/files.h"

namespace capgate::clients {
namespace {

using Numbers = std::array<unsigned, 3>;

void expect_vectors(const char* file, bool (*in)(std::string_view, std::string_view)) {
  std::size_t seen = 0;
  for (const std::string& line : support::read_lines(file)) {
    const auto columns = split(line, '\t');
    ASSERT_EQ(columns.size(), 3U) << line;
    EXPECT_EQ(in(columns[0], columns[1]), columns[2] == "yes") << line;
    ++seen;
  }
  EXPECT_GE(seen, 1000U);
}

std::string text_of(const Numbers& numbers) {
  return format("{}.{}.{}", numbers[0], numbers[1], numbers[2]);
}

rc::Gen<Numbers> numbers() { return rc::gen::container<Numbers>(rc::gen::inRange(0U, 4U)); }

TEST(Semver, SaysWhatNpmSays) {
  expect_vectors("tests/vectors/semver_ranges.tsv", in_semver_range);
}

TEST(Pep440, SaysWhatPythonSays) {
  expect_vectors("tests/vectors/pep440_ranges.tsv", in_pep440_range);
}

RC_GTEST_PROP(Semver, CaretKeepsTheFirstNumberThatIsNotZero, ()) {
  const Numbers least = *numbers();
  const Numbers version = *numbers();
  std::size_t place = 0;
  while (place < 2 && least[place] == 0) ++place;
  const bool same = std::equal(least.begin(), least.begin() + place + 1, version.begin());
  RC_ASSERT(in_semver_range("^" + text_of(least), text_of(version)) == (same && version >= least));
}

RC_GTEST_PROP(Semver, TildeKeepsTwoNumbers, ()) {
  const Numbers least = *numbers();
  const Numbers version = *numbers();
  const bool same = std::equal(least.begin(), least.begin() + 2, version.begin());
  RC_ASSERT(in_semver_range("~" + text_of(least), text_of(version)) == (same && version >= least));
}

RC_GTEST_PROP(Semver, OneOfTheAlternativesIsEnoughAndAllOfTheirPartsAreNeeded, ()) {
  const Numbers a = *numbers();
  const Numbers b = *numbers();
  const Numbers version = *numbers();
  const std::string text = text_of(version);
  RC_ASSERT(in_semver_range(format("<{} || >={}", text_of(a), text_of(b)), text) ==
            (version < a || version >= b));
  RC_ASSERT(in_semver_range(format(">{} <={}", text_of(a), text_of(b)), text) ==
            (version > a && version <= b));
}

RC_GTEST_PROP(Pep440, TheClausesHoldTogether, ()) {
  const Numbers a = *numbers();
  const Numbers b = *numbers();
  const Numbers version = *numbers();
  const std::string text = text_of(version);
  RC_ASSERT(in_pep440_range(format(">={},<{}", text_of(a), text_of(b)), text) ==
            (version >= a && version < b));
  RC_ASSERT(in_pep440_range(format("=={}.{}.*", a[0], a[1]), text) ==
            (version[0] == a[0] && version[1] == a[1]));
}

RC_GTEST_PROP(Ranges, AnyBytesAreReadWithoutHarm,
              (const std::string& range, const std::string& version)) {
  (void)in_range(Package::Registry::npm, range, version);
  (void)in_range(Package::Registry::pypi, range, version);
}

TEST(Ranges, AnEmptyRangeHoldsEveryVersionThatCanBeRead) {
  EXPECT_TRUE(in_range(Package::Registry::npm, "", "1.2.3-beta"));
  EXPECT_FALSE(in_range(Package::Registry::npm, "", "beta"));
  EXPECT_TRUE(in_range(Package::Registry::pypi, "", "1.2a1"));
  EXPECT_FALSE(in_range(Package::Registry::pypi, "", "beta"));
}

}  // namespace
}  // namespace capgate::clients
