#include "store/crypto.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"

namespace capgate::store {
namespace {

using secrets::Secret;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Values of Python's hashlib.scrypt and of an HKDF in Python's hmac: a second author.
TEST(Crypto, DerivesWhatOthersDerive) {
  const auto stretched = stretch("correct horse", "0123456789abcdef", 1U << 15);
  ASSERT_TRUE(stretched);
  EXPECT_EQ(hex(stretched->view()),
            "a6e1c5f30b25e0fe6d47724036c0a579988e41eb3ed39298d8fa076d41293064");
  const auto extracted = extract("0123456789abcdef0123456789abcdef", "0123456789abcdef");
  ASSERT_TRUE(extracted);
  EXPECT_EQ(hex(extracted->view()),
            "9f2d1153f1da7482e9b8ead5bd139e50601774bbc56c45d5a07b106ee9b712c6");
}

RC_GTEST_PROP(Crypto, OpensOnlyWhatWasSealed, ()) {
  const auto key = random_key();
  const auto other = random_key();
  RC_ASSERT(key && other);
  const auto plain = *rc::gen::arbitrary<std::string>();
  const auto bound = *rc::gen::arbitrary<std::string>();
  const auto sealed = seal(*key, bound, plain);
  RC_ASSERT(sealed.has_value());
  const auto back = open(*key, *sealed, bound);
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->view() == plain);
  RC_ASSERT(!open(*other, *sealed, bound));
  RC_ASSERT(!open(*key, *sealed, bound + "x"));

  Sealed changed = *sealed;
  const auto bit = *rc::gen::inRange<std::size_t>(0, (nonce_size + changed.bytes.size()) * 8);
  char& byte = bit / 8 < nonce_size ? changed.nonce[bit / 8] : changed.bytes[bit / 8 - nonce_size];
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << (bit % 8)));
  const auto forged = open(*key, changed, bound);
  RC_ASSERT(!forged && forged.error() == Failure::forged);
}

TEST(Crypto, RefusesWhatIsTooShort) {
  const auto key = random_key();
  EXPECT_FALSE(open(*key, {.nonce = std::string(12, 'n'), .bytes = std::string(15, 't')}, ""));
  EXPECT_FALSE(open(*key, {.nonce = std::string(11, 'n'), .bytes = std::string(16, 't')}, ""));
}

}  // namespace
}  // namespace capgate::store
