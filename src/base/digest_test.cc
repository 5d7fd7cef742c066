#include "base/digest.h"

#include <gtest/gtest.h>

namespace capgate {
namespace {

struct Case {
  std::string_view input;
  std::string_view expected;
};

TEST(Sha256, GivesTheDigestsOfNistsExamples) {
  constexpr Case cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "opqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
  };
  for (const auto& [input, expected] : cases) {
    EXPECT_EQ(sha256_hex(input), expected) << input;
  }
}

TEST(Sha256, GivesTheDigestOfAMillionLetters) {
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesBytesThatAreNotText) {
  EXPECT_EQ(sha256_hex(std::string_view("\0", 1)),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

TEST(Base64, GivesTheTextsOfRfc4648) {
  constexpr Case cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [input, expected] : cases) {
    EXPECT_EQ(base64(input), expected) << input;
  }
}

TEST(Base64, UsesTheWholeAlphabet) {
  EXPECT_EQ(base64(std::string_view("\xfb\xef\xbe\xff\xff\xff\0\0\0", 9)), "++++////AAAA");
  EXPECT_EQ(base64("\xff"), "/w==");
}

TEST(Digest, TheProcessorAndTheLibraryAgreeAtEveryLengthAroundABlock) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(sha256_hex(text), sha256_hex_portable(text)) << i;
    text += static_cast<char>(i * 7 + 1);
  }
}

}  // namespace
}  // namespace capgate
