#include "core/ipv6.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace capgate::core {
namespace {

struct Spelling {
  std::string_view text;
  std::string_view canonical;
};

TEST(Ipv6, PrintsAsRfc5952Demands) {
  constexpr Spelling table[] = {
      {"::", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"0:0:0:0:0:0:0:0", "::"},
      {"2001:DB8::0001", "2001:db8::1"},
      // Only the longest run, the first of equals, and never a single group.
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
      {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
      {"1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"},
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"1:2:3:4:5:6::", "1:2:3:4:5:6::"},
      {"fe80:0000::00aB", "fe80::ab"},
  };
  for (const Spelling& row : table) {
    const auto address = parse_ipv6(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(print_ipv6(*address), row.canonical) << row.text;
  }
}

TEST(Ipv6, RefusesEverythingElse) {
  for (const std::string_view text : {"",
                                      ":",
                                      ":::",
                                      "::1::",
                                      "1::2::3",
                                      "1:2:3:4:5:6:7",
                                      "1:2:3:4:5:6:7:8:9",
                                      ":1:2:3:4:5:6:7:8",
                                      "1:2:3:4:5:6:7:8:",
                                      "1:2:3:4::5:6:7:8",
                                      "12345::",
                                      "g::",
                                      "::1%eth0",
                                      "::1/64",
                                      "[::1]",
                                      "::127.0.0.1",
                                      "::ffff:1.2.3.4",
                                      " ::1",
                                      "::1 ",
                                      "1",
                                      "::-1",
                                      "::+1",
                                      "::0x1"}) {
    EXPECT_FALSE(parse_ipv6(text)) << text;
  }
}

TEST(Ipv6, KnowsMappedAddresses) {
  EXPECT_TRUE(is_ipv4_mapped(*parse_ipv6("::ffff:7f00:1")));
  EXPECT_TRUE(is_ipv4_mapped(*parse_ipv6("::ffff:0:0")));
  EXPECT_FALSE(is_ipv4_mapped(*parse_ipv6("::fffe:7f00:1")));
  EXPECT_FALSE(is_ipv4_mapped(*parse_ipv6("::1:ffff:7f00:1")));
  EXPECT_FALSE(is_ipv4_mapped(*parse_ipv6("::7f00:1")));
}

// Many zero groups, so that runs of every length and place occur.
rc::Gen<Ipv6Bytes> ipv6_bytes() {
  const auto byte = rc::gen::weightedOneOf<std::uint8_t>(
      {{3, rc::gen::just(std::uint8_t{0})}, {1, rc::gen::arbitrary<std::uint8_t>()}});
  return rc::gen::map(rc::gen::container<std::vector<std::uint8_t>>(16, byte),
                      [](const auto& bytes) {
                        Ipv6Bytes out{};
                        std::ranges::copy(bytes, out.begin());
                        return out;
                      });
}

RC_GTEST_PROP(Ipv6, PrintsAndParsesBack, ()) {
  const Ipv6Bytes address = *ipv6_bytes();
  RC_ASSERT(parse_ipv6(print_ipv6(address)) == address);
}

RC_GTEST_PROP(Ipv6, PrintsNoSpellingThatIsLongerThanAnother, ()) {
  const Ipv6Bytes address = *ipv6_bytes();
  std::string full;
  for (std::size_t i = 0; i < address.size(); i += 2) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (i > 0) full += ':';
    for (const std::uint8_t byte : {address[i], address[i + 1]}) {
      full += digits[byte >> 4];
      full += digits[byte & 15];
    }
  }
  RC_ASSERT(parse_ipv6(full) == address);
  RC_ASSERT(print_ipv6(address).size() <= full.size());
}

}  // namespace
}  // namespace capgate::core
