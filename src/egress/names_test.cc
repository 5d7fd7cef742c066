#include "egress/names.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capgate::egress {
namespace {

using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

std::string numbered(std::size_t i) { return "n" + std::to_string(i) + ".test"; }

TEST(NameBook, GivesOneNumberInBothFamilies) {
  NameBook book;
  const Synthetic first = book.address_of("api.github.com");
  EXPECT_EQ(first.ipv4, (Ipv4{28, 18, 0, 1}));
  EXPECT_EQ(first.ipv6, (Ipv6{0x2d, 0x00, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(book.name_of(first.ipv4), "api.github.com");
  EXPECT_EQ(book.name_of(first.ipv6), "api.github.com");
  EXPECT_EQ(book.address_of("b.test").ipv4, (Ipv4{28, 18, 0, 2}));
  EXPECT_EQ(book.address_of("api.github.com").ipv4, first.ipv4);
  EXPECT_EQ(book.size(), 2U);
}

TEST(NameBook, KnowsNoNameForOtherAddresses) {
  NameBook book;
  (void)book.address_of("a.test");
  for (const Ipv4& address : {Ipv4{28, 18, 0, 0}, Ipv4{28, 18, 0, 2}, Ipv4{28, 17, 0, 1},
                              Ipv4{28, 20, 0, 1}, Ipv4{0, 0, 0, 1}, Ipv4{255, 255, 255, 255}}) {
    EXPECT_EQ(book.name_of(address), "");
  }
  const Ipv6 known = book.address_of("a.test").ipv6;
  for (std::size_t i = 0; i < known.size(); ++i) {
    Ipv6 other = known;
    other[i] ^= 0x80;
    EXPECT_EQ(book.name_of(other), "") << i;
  }
}

TEST(NameBook, ForgetsTheLongestUnused) {
  NameBook book(3);
  const Synthetic a = book.address_of("a.test");
  const Synthetic b = book.address_of("b.test");
  const Synthetic c = book.address_of("c.test");
  EXPECT_EQ(book.name_of(a.ipv4), "a.test");  // a connection uses the name
  EXPECT_EQ(book.address_of("b.test").ipv4, b.ipv4);
  (void)book.address_of("d.test");
  EXPECT_EQ(book.size(), 3U);
  EXPECT_EQ(book.name_of(c.ipv4), "");
  EXPECT_EQ(book.name_of(c.ipv6), "");
  EXPECT_EQ(book.name_of(a.ipv6), "a.test");
  EXPECT_NE(book.address_of("c.test").ipv4, c.ipv4);
}

TEST(NameBook, GoesRoundTheRangeAndPassesOverNamesInUse) {
  NameBook book(2);
  const Synthetic kept = book.address_of("kept.test");
  std::set<Ipv4> given = {kept.ipv4};
  for (std::size_t i = 1; i < NameBook::most_numbers; ++i) {
    ASSERT_TRUE(given.insert(book.address_of(numbered(i)).ipv4).second) << i;
    ASSERT_EQ(book.name_of(kept.ipv4), "kept.test");
  }
  EXPECT_EQ(*given.begin(), (Ipv4{28, 18, 0, 1}));
  EXPECT_EQ(*given.rbegin(), (Ipv4{28, 19, 255, 254}));
  EXPECT_EQ(book.address_of("again.test").ipv4, (Ipv4{28, 18, 0, 2}));
}

TEST(NameBook, HoldsBetweenOneNameAndAllNumbers) {
  NameBook least(0);
  (void)least.address_of("a.test");
  EXPECT_EQ(least.name_of(least.address_of("b.test").ipv4), "b.test");
  EXPECT_EQ(least.size(), 1U);

  NameBook most(std::size_t{1} << 40U);
  for (std::size_t i = 0; i < NameBook::most_numbers + 10; ++i) (void)most.address_of(numbered(i));
  EXPECT_EQ(most.size(), NameBook::most_numbers);
}

TEST(NameBook, KeepsItsNamesWhenMoved) {
  NameBook book(2);
  const Synthetic a = book.address_of("a");
  (void)book.address_of("b");
  NameBook moved(std::move(book));
  EXPECT_EQ(moved.address_of("a").ipv4, a.ipv4);
  (void)moved.address_of("c");
  EXPECT_EQ(moved.name_of(a.ipv4), "a");
  EXPECT_EQ(moved.size(), 2U);
}

// A list, searched from end to end, that says the same.
class SlowBook {
 public:
  explicit SlowBook(std::size_t most) : most_(most) {}

  std::uint32_t number_of(const std::string& name) {
    const auto known = std::ranges::find(entries_, name, [](const auto& e) { return e.first; });
    if (known != entries_.end()) {
      use(known->second);
      return entries_.back().second;
    }
    if (entries_.size() == most_) entries_.erase(entries_.begin());
    entries_.emplace_back(name, ++last_);
    return last_;
  }
  std::string name_of(std::uint32_t number) {
    use(number);
    return !entries_.empty() && entries_.back().second == number ? entries_.back().first : "";
  }

 private:
  void use(std::uint32_t number) {
    const auto found = std::ranges::find(entries_, number, [](const auto& e) { return e.second; });
    if (found != entries_.end()) std::rotate(found, found + 1, entries_.end());
  }
  std::size_t most_;
  std::uint32_t last_ = 0;
  std::vector<std::pair<std::string, std::uint32_t>> entries_;
};

RC_GTEST_PROP(NameBook, SaysWhatASlowBookSays, ()) {
  const auto most = *rc::gen::inRange<std::size_t>(1, 6);
  NameBook book(most);
  SlowBook slow(most);
  const auto steps =
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 24));
  for (const std::uint8_t step : steps) {
    const auto number = static_cast<std::uint8_t>(step % 12);
    if (step < 12) {
      const auto expected = slow.number_of(numbered(number));
      RC_ASSERT(book.address_of(numbered(number)).ipv6[15] == expected);
    } else {
      RC_ASSERT(book.name_of(Ipv4{28, 18, 0, number}) == slow.name_of(number));
    }
    RC_ASSERT(book.size() <= most);
  }
}

}  // namespace
}  // namespace capgate::egress
