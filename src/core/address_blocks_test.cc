#include "core/address_blocks.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/host.h"
#include "core/ipv6.h"

namespace capgate::core {
namespace {

AddressBlock block_of(const HostPattern& host) {
  const bool ipv6 = host.kind == HostPattern::Kind::ipv6;
  return {.ipv6 = ipv6, .prefix = host.address, .bits = ipv6 ? 128U : 32U};
}

bool is_in(const std::vector<AddressBlock>& blocks, const HostPattern& address) {
  return std::ranges::any_of(
      blocks, [&](const AddressBlock& block) { return covers(block, block_of(address)); });
}

HostPattern address_of(const AddressBlock& block) {
  using Kind = HostPattern::Kind;
  HostPattern out{.kind = block.ipv6 ? Kind::ipv6 : Kind::ipv4, .address = block.prefix};
  const AddressBlock whole{
      .ipv6 = block.ipv6, .prefix = block.prefix, .bits = block.ipv6 ? 128U : 32U};
  out.text = print(whole).substr(0, print(whole).find('/'));
  return out;
}

void expect_the_same_answers(const HostPattern& address) {
  EXPECT_EQ(is_in(private_blocks(), address), is_private_address(address)) << address.text;
  EXPECT_EQ(is_in(closed_blocks(), address),
            is_private_address(address) && !is_private_network_address(address))
      << address.text;
}

// The first and the last address of each block, and their neighbours.
std::vector<HostPattern> edges(const AddressBlock& block) {
  std::vector<HostPattern> out;
  const auto step = [](AddressBlock at, int by) {
    for (std::size_t i = at.ipv6 ? 16 : 4; i-- > 0;) {
      at.prefix[i] = static_cast<std::uint8_t>(at.prefix[i] + by);
      if (at.prefix[i] != (by > 0 ? 0 : 255)) break;
    }
    return at;
  };
  AddressBlock last = block;
  for (unsigned bit = block.bits; bit < (block.ipv6 ? 128U : 32U); ++bit) {
    last.prefix[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  for (const AddressBlock& at : {block, step(block, -1), last, step(last, 1)}) {
    out.push_back(address_of(at));
  }
  return out;
}

TEST(AddressBlocks, AnswerAsTheFunctionsDoAtEveryEdge) {
  std::vector<AddressBlock> all = closed_blocks();
  for (const AddressBlock& block : private_blocks()) all.push_back(block);
  EXPECT_GT(all.size(), 40U);
  for (const AddressBlock& block : all) {
    for (const HostPattern& address : edges(block)) expect_the_same_answers(address);
  }
}

RC_GTEST_PROP(AddressBlocks, AnswerAsTheFunctionsDo, ()) {
  AddressBlock any = *rc::gen::elementOf(private_blocks());
  for (unsigned bit = *rc::gen::inRange(0U, any.bits + 1); bit < 128; ++bit) {
    if (*rc::gen::arbitrary<bool>()) {
      any.prefix[bit / 8] ^= static_cast<std::uint8_t>(0x80U >> (bit % 8));
    }
  }
  if (!any.ipv6) std::fill(any.prefix.begin() + 4, any.prefix.end(), 0);
  const HostPattern address = address_of(any);
  RC_ASSERT(is_in(private_blocks(), address) == is_private_address(address));
  RC_ASSERT(is_in(closed_blocks(), address) ==
            (is_private_address(address) && !is_private_network_address(address)));
}

TEST(AddressBlocks, NoneCoversAnother) {
  for (const auto& blocks : {private_blocks(), closed_blocks()}) {
    EXPECT_TRUE(std::ranges::is_sorted(blocks));
    for (const AddressBlock& a : blocks) {
      for (const AddressBlock& b : blocks) EXPECT_EQ(covers(a, b), a == b) << print(a) << print(b);
    }
  }
}

TEST(AddressBlocks, SubtractLeavesTheFewestBlocks) {
  const AddressBlock ten = block_of(*parse_host("10.0.0.0"));
  AddressBlock eight = ten;
  eight.bits = 8;
  AddressBlock half = ten;
  half.bits = 9;
  const auto left = subtract(eight, half);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(print(left[0]), "10.128.0.0/9");
  EXPECT_EQ(subtract(eight, ten).size(), 24U);
  EXPECT_TRUE(subtract(half, eight).empty());
  EXPECT_EQ(subtract(eight, block_of(*parse_host("11.0.0.0"))), std::vector{eight});
}

TEST(AddressBlocks, Print) {
  EXPECT_EQ(print(private_blocks().front()), "0.0.0.0/8");
  EXPECT_EQ(print(private_blocks().back()), "ff00::/8");
}

}  // namespace
}  // namespace capgate::core
