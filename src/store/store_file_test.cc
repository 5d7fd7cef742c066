#include "store/store_file.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/digest.h"
#include "base/format.h"

namespace capgate::store {
namespace {

StoreFile example() {
  return {.key = {.id = "0123456789abcdef",
                  .source = {.kind = KeySource::Kind::passphrase, .reference = {}},
                  .cost = 32768,
                  .salt = std::string(16, 's'),
                  .sealed = {.nonce = std::string(12, 'n'), .bytes = std::string(48, 'k')}},
          .entries = {{.server = "*",
                       .name = "TOKEN",
                       .created = "2026-11-15T12:00:00Z",
                       .changed = "2026-11-15T12:00:00Z",
                       .sealed = {.nonce = std::string(12, 'm'), .bytes = std::string(20, 'v')}}},
          .whole = {.nonce = std::string(12, 'w'), .bytes = std::string(16, 't')}};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(StoreFile, IsWrittenAsDocumented) {
  EXPECT_EQ(write_store(example()), R"({
  "format": "capgate-secrets",
  "version": 1,
  "key": {
    "id": "0123456789abcdef",
    "source": "passphrase",
    "scryptN": 32768,
    "salt": "c3Nzc3Nzc3Nzc3Nzc3Nzcw==",
    "nonce": "bm5ubm5ubm5ubm5u",
    "sealed": "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr"
  },
  "entries": [
    {
      "server": "*",
      "name": "TOKEN",
      "created": "2026-11-15T12:00:00Z",
      "changed": "2026-11-15T12:00:00Z",
      "nonce": "bW1tbW1tbW1tbW1t",
      "sealed": "dnZ2dnZ2dnZ2dnZ2dnZ2dnZ2dnY="
    }
  ],
  "whole": {
    "nonce": "d3d3d3d3d3d3d3d3",
    "sealed": "dHR0dHR0dHR0dHR0dHR0dA=="
  }
}
)");
  const auto read = read_store(write_store(example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(StoreFile, OfAnotherVersionIsLeftToItsOwnProgram) {
  const auto read =
      read_store(replaced(write_store(example()), "\"version\": 1", "\"version\": 2"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Problem::Kind::unavailable);
  EXPECT_EQ(read.error().message, "the store has format \"2\", this capgate knows 1");
}

struct Wrong {
  std::string_view from;
  std::string_view to;
  std::string_view why;
};
class WrongFile : public testing::TestWithParam<Wrong> {};

TEST_P(WrongFile, IsRefused) {
  const auto read = read_store(replaced(write_store(example()), GetParam().from, GetParam().to));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Problem::Kind::damaged);
  EXPECT_EQ(read.error().message, GetParam().why);
}

constexpr std::string_view other_spelling =
    "the store is damaged: it was not written by capgate as it is";
INSTANTIATE_TEST_SUITE_P(
    Store, WrongFile,
    testing::Values(
        Wrong{"capgate-secrets", "something", "the file is no store of secrets"},
        Wrong{"  \"version\": 1,\n", "", "the file is no store of secrets"},
        Wrong{"\"id\": \"0123", "\"id\": \"012",
              "the store is damaged: \"id\" is not what it must be"},
        Wrong{"\"id\": \"0", "\"id\": \"A", "the store is damaged: \"id\" is not what it must be"},
        Wrong{"passphrase", "fingers", "the store is damaged: \"source\" is not what it must be"},
        Wrong{"32768", "16384", "the store is damaged: \"scryptN\" is not what it must be"},
        Wrong{"32768", "32769", "the store is damaged: \"scryptN\" is not what it must be"},
        Wrong{"32768", "524288", "the store is damaged: \"scryptN\" is not what it must be"},
        Wrong{"32768", "3.2e4", "the store is damaged: \"scryptN\" is no whole number"},
        Wrong{"c3Nzc3Nzc3Nzc3Nzc3Nzcw==", "c3Nz",
              "the store is damaged: \"salt\" is not what it must be"},
        Wrong{"bm5ubm5ubm5ubm5u", "bm5ubm5ubm5ubm5",
              "the store is damaged: \"nonce\" is not what it must be"},
        Wrong{"\"server\": \"*\"", "\"server\": 7",
              "the store is damaged: \"server\" is missing, or is something else"},
        Wrong{"\"TOKEN\"", "\"TO KEN\"", "the store is damaged: \"name\" is not what it must be"},
        Wrong{"12:00:00Z", "12:00:00", "the store is damaged: \"created\" is not what it must be"},
        Wrong{"\"entries\": [", "\"entries\": [ ", other_spelling},
        Wrong{"\"TOKEN\"", "\"\\u0054OKEN\"", other_spelling},
        Wrong{"\"version\": 1,", "\"version\": 1, \"more\": 1,", other_spelling},
        Wrong{"\"name\":", "\"value\": \"x\", \"name\":", other_spelling},
        Wrong{"cw==", "cx==", "the store is damaged: \"salt\" is not what it must be"}));

TEST(StoreFile, KeepsEntriesInOneOrder) {
  StoreFile file = example();
  file.entries.push_back(file.entries.front());
  EXPECT_FALSE(read_store(write_store(file))) << "twice the same";
  file.entries.back().server = "github";
  EXPECT_TRUE(read_store(write_store(file)));
  std::swap(file.entries.front(), file.entries.back());
  EXPECT_FALSE(read_store(write_store(file)));
}

TEST(StoreFile, DoesNotTakeValuesThatAreTooLarge) {
  StoreFile file = example();
  file.entries.front().sealed.bytes = std::string(largest_value + tag_size, 'v');
  EXPECT_TRUE(read_store(write_store(file)));
  file.entries.front().sealed.bytes += 'v';
  EXPECT_FALSE(read_store(write_store(file)));
  EXPECT_FALSE(read_store(std::string(largest_store + 1, ' ')));
}

TEST(KeySource, IsReadAsItIsWritten) {
  for (const std::string_view text : {"passphrase", "file:/a b/ü", "keyring:a/b.c"}) {
    const auto source = parse_key_source(text);
    ASSERT_TRUE(source) << text;
    EXPECT_EQ(to_text(*source), text);
  }
  for (const std::string_view text :
       {"", "Passphrase", "file:", "file:a", "file:/a\n", "keyring:", "keyring:a b", "keyring:-a",
        "keyring", "env:X", "file:/\xff"}) {
    EXPECT_FALSE(parse_key_source(text)) << text;
  }
}

TEST(Names, HaveOnlyCharactersThatNothingSplits) {
  EXPECT_TRUE(is_valid_name("GITHUB_TOKEN"));
  EXPECT_TRUE(is_valid_name("team/github.com:443@me"));
  EXPECT_TRUE(is_valid_name(std::string(256, 'a')));
  for (const std::string& name : {std::string(), std::string("-a"), std::string("a b"),
                                  std::string("a=b"), std::string("ü"), std::string(257, 'a')}) {
    EXPECT_FALSE(is_valid_name(name)) << name;
  }
  EXPECT_TRUE(is_valid_server("@scope/serveur é"));
  EXPECT_FALSE(is_valid_server(""));
  EXPECT_FALSE(is_valid_server("a\x1b[31m"));
}

TEST(Base64, HasOneSpelling) {
  for (const std::string_view bytes : {"", "a", "ab", "abc", "\xff\x00x"}) {
    EXPECT_EQ(decode_base64(base64(bytes)), bytes);
  }
  for (const std::string_view text :
       {"Y", "YQ", "YQ=", "YR==", "YQ===", "YQ==YQ==", "Y Q=", "=", "YQ==\n"}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace capgate::store
