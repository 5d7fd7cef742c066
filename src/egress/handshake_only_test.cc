#include "egress/handshake_only.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace capgate::egress {
namespace {

std::string record(char type, std::size_t size) {
  std::string out{type, 3, 3, static_cast<char>(size >> 8), static_cast<char>(size & 255)};
  return out.append(size, 'x');
}

const std::string handshake = record(22, 300) + record(20, 1) + record(22, 0) + record(21, 2);

TEST(HandshakeOnly, PassesAllOfAHandshake) {
  HandshakeOnly filter;
  EXPECT_EQ(filter.pass(handshake), handshake);
  EXPECT_FALSE(filter.is_over());
}

TEST(HandshakeOnly, NothingAfterTheFirstRecordWithDataPasses) {
  for (const char type : {'\x17', '\x18', '\x00', '\x7f', '\xff'}) {
    HandshakeOnly filter;
    EXPECT_EQ(filter.pass(handshake + record(type, 5) + handshake), handshake);
    EXPECT_TRUE(filter.is_over());
    EXPECT_EQ(filter.pass(handshake), "");
  }
}

RC_GTEST_PROP(HandshakeOnly, PiecesChangeNothing, ()) {
  const std::string all = handshake + record(23, 9) + handshake;
  HandshakeOnly filter;
  std::string passed;
  for (std::size_t at = 0; at < all.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 400);
    passed += filter.pass(std::string_view(all).substr(at, size));
    at += size;
  }
  RC_ASSERT(passed == handshake);
}

}  // namespace
}  // namespace capgate::egress
