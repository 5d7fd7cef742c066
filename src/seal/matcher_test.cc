#include "seal/matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace capgate::seal {
namespace {

using Match = Matcher::Match;
using Patterns = std::vector<std::string>;

std::vector<std::string_view> views(const Patterns& patterns) {
  return {patterns.begin(), patterns.end()};
}

std::optional<Match> find_slowly(const Patterns& patterns, std::string_view text,
                                 std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    std::optional<Match> longest;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!text.substr(at).starts_with(patterns[i])) continue;
      if (longest && longest->size >= patterns[i].size()) continue;
      longest = Match{.at = at, .size = patterns[i].size(), .pattern = i};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::size_t tail_slowly(const Patterns& patterns, std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    for (const std::string& pattern : patterns) {
      const std::string_view rest = text.substr(at);
      if (rest.size() < pattern.size() && pattern.starts_with(rest)) return at;
    }
  }
  return text.size();
}

TEST(Matcher, FindsTheFirst) {
  const Matcher matcher({.patterns = {"token-one", "token-two-longer", "two-"}});
  EXPECT_EQ(matcher.find("a token-two-longer token-one", 0), (Match{2, 16, 1}));
  EXPECT_EQ(matcher.find("a token-two-longer token-one", 3), (Match{8, 4, 2}));
  EXPECT_EQ(matcher.find("a token-two-longer token-one", 9), (Match{19, 9, 0}));
  EXPECT_EQ(matcher.find("a token-two-longer token-one", 20), std::nullopt);
  EXPECT_EQ(matcher.find("", 0), std::nullopt);
}

TEST(Matcher, OfNothingFindsNothing) {
  const Matcher matcher({.patterns = {}});
  EXPECT_EQ(matcher.find("abcdef", 0), std::nullopt);
  EXPECT_EQ(matcher.tail("abcdef", 0), 6U);
}

TEST(Matcher, DoesNotSearchWhatIsTooShort) {
  const Matcher matcher({.patterns = {"short", "long enough"}, .shortest = 8});
  EXPECT_EQ(matcher.find("short long enough", 0), (Match{6, 11, 1}));
  EXPECT_EQ(matcher.tail("shor", 0), 4U);
  EXPECT_EQ(matcher.pattern(0), "short");
  EXPECT_EQ(matcher.pattern(1), "long enough");
}

TEST(Matcher, IsTheSameInLockedMemory) {
  const Matcher matcher({.patterns = {"12345678"}, .memory = Matcher::Memory::locked});
  EXPECT_EQ(matcher.find("x12345678", 0), (Match{1, 8, 0}));
}

TEST(Matcher, HoldsAProperPrefixOnly) {
  const Matcher matcher({.patterns = {"abcabd", "cabx"}});
  EXPECT_EQ(matcher.tail("xxabcab", 0), 2U);
  EXPECT_EQ(matcher.tail("xxabcab", 3), 4U);
  EXPECT_EQ(matcher.tail("xxabcabd", 0), 8U);
  EXPECT_EQ(matcher.tail("abcabda", 0), 6U);
}

// Few letters, so that patterns contain and overlap each other.
RC_GTEST_PROP(MatcherProperty, AgreesWithASlowSearch, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
  auto patterns = *rc::gen::container<Patterns>(
      rc::gen::map(letters, [](const std::string& more) { return "ab" + more + "ba"; }));
  if (*rc::gen::arbitrary<bool>()) patterns.push_back(std::string(40, 'a') + "b");
  std::string text = *letters;
  for (const std::string& pattern : patterns) text += pattern + *letters;
  const auto from = *rc::gen::inRange<std::size_t>(0, text.size() + 1);

  const Matcher matcher({.patterns = views(patterns)});
  RC_ASSERT(matcher.find(text, from) == find_slowly(patterns, text, from));
  RC_ASSERT(matcher.tail(text, from) == tail_slowly(patterns, text, from));
}

RC_GTEST_PROP(MatcherProperty, FindsInAnyBytes, ()) {
  const auto bytes = rc::gen::arbitrary<std::string>();
  const std::string pattern = *rc::gen::resize(80, bytes) + std::string("\xff\0\x80z", 4);
  const std::string before = *bytes;
  const std::string text = before + pattern + *bytes;
  const Matcher matcher({.patterns = {pattern}});
  const auto found = matcher.find(text, 0);
  RC_ASSERT(found == find_slowly({pattern}, text, 0));
  RC_ASSERT(found && found->at <= before.size());
}

}  // namespace
}  // namespace capgate::seal
