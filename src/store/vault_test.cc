#include "store/vault.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace capgate::store {
namespace {

using secrets::Secret;

constexpr std::string_view earlier = "2026-11-15T12:00:00Z";
constexpr std::string_view later = "2026-11-16T12:00:00Z";
const KeySource key_file{.kind = KeySource::Kind::file, .reference = "/keys/a"};

Secret secret(std::string_view text) { return *Secret::make(text); }
Secret material() { return secret("0123456789abcdef0123456789abcdef"); }

Vault opened(const std::string& text) {
  auto file = read_store(text);
  EXPECT_TRUE(file) << file.error().message;
  auto vault = Vault::open(*std::move(file), material());
  EXPECT_TRUE(vault) << vault.error().message;
  return *std::move(vault);
}

Vault vault_of(const std::vector<std::pair<Place, std::string>>& values) {
  auto vault = Vault::make(key_file, material());
  EXPECT_TRUE(vault);
  for (const auto& [place, value] : values) EXPECT_TRUE(vault->set(place, value, earlier));
  return *std::move(vault);
}

std::string value_of(const Vault& vault, const Place& place) {
  const auto value = vault.get(place);
  return value ? std::string(value->view()) : "refused: " + value.error().message;
}

const std::vector<std::pair<Place, std::string>> four = {{{"*", "A"}, "any-a"},
                                                         {{"*", "B"}, "any-b"},
                                                         {{"github", "A"}, "github-a"},
                                                         {{"gitlab", "A"}, "gitlab-a"}};

TEST(Vault, GivesTheServersOwnBeforeThatOfAnyServer) {
  const Vault vault = vault_of(four);
  EXPECT_EQ(value_of(vault, {"github", "A"}), "github-a");
  EXPECT_EQ(value_of(vault, {"github", "B"}), "any-b");
  EXPECT_EQ(value_of(vault, {"other", "A"}), "any-a");
  EXPECT_EQ(value_of(vault, {"*", "A"}), "any-a");
  EXPECT_EQ(value_of(vault, {"github", "C"}), R"(refused: the store has no "C" for "github")");
}

TEST(Vault, RemovesExactlyOneEntry) {
  Vault vault = vault_of(four);
  EXPECT_TRUE(vault.remove({"github", "A"}));
  EXPECT_EQ(value_of(vault, {"github", "A"}), "any-a");
  EXPECT_FALSE(vault.remove({"github", "A"}));
  EXPECT_FALSE(vault.remove({"github", "B"}));
  EXPECT_EQ(vault.file().entries.size(), 3U);
}

TEST(Vault, KeepsWhenAnEntryWasMade) {
  Vault vault = vault_of(four);
  ASSERT_TRUE(vault.set({"*", "B"}, "newer", later));
  const Entry* entry = find_entry(vault.file(), {"*", "B"});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->created, earlier);
  EXPECT_EQ(entry->changed, later);
  EXPECT_EQ(value_of(vault, {"*", "B"}), "newer");
}

TEST(Vault, IsNotOpenedByAnotherKey) {
  const std::string text = *vault_of(four).text();
  const auto vault = Vault::open(*read_store(text), secret("0123456789abcdef0123456789abcdeF"));
  ASSERT_FALSE(vault);
  EXPECT_EQ(vault.error().kind, Problem::Kind::unavailable);
  EXPECT_EQ(vault.error().message,
            "this key does not open the store (file:/keys/a): it is another one, or the file was "
            "changed");
}

TEST(Vault, OpensWithThePassphraseItWasMadeWith) {
  auto vault = Vault::make({}, secret("correct horse"));
  ASSERT_TRUE(vault);
  ASSERT_TRUE(vault->set({"*", "A"}, "value", earlier));
  const std::string text = *vault->text();
  EXPECT_TRUE(text.contains("\"scryptN\": 131072"));
  const auto again = Vault::open(*read_store(text), secret("correct horse"));
  ASSERT_TRUE(again);
  EXPECT_EQ(value_of(*again, {"*", "A"}), "value");
  EXPECT_FALSE(Vault::open(*read_store(text), secret("correct horsf")));
}

TEST(Vault, RotatesToANewDataKeyAndAnotherSource) {
  Vault vault = vault_of(four);
  const StoreFile old = vault.file();
  const KeySource ring{.kind = KeySource::Kind::keyring, .reference = "b"};
  const Secret next = secret("another key of more than 32 bytes in it");
  ASSERT_TRUE(vault.rotate(ring, next));
  const auto file = read_store(*vault.text());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->key.source, ring);
  EXPECT_NE(file->key.id, old.key.id);
  for (std::size_t i = 0; i < old.entries.size(); ++i) {
    EXPECT_NE(file->entries[i].sealed.bytes, old.entries[i].sealed.bytes);
    EXPECT_EQ(file->entries[i].created, old.entries[i].created);
  }
  EXPECT_FALSE(Vault::open(*file, material()));
  const auto again = Vault::open(*file, next);
  ASSERT_TRUE(again);
  for (const auto& [place, value] : four) EXPECT_EQ(value_of(*again, place), value);
}

// Two seals of the same are different: equal values cannot be told from the file.
TEST(Vault, NeverUsesANonceTwice) {
  Vault vault = vault_of({{{"*", "A"}, "same"}, {{"*", "B"}, "same"}});
  const auto& entries = vault.file().entries;
  EXPECT_NE(entries[0].sealed.nonce, entries[1].sealed.nonce);
  EXPECT_NE(entries[0].sealed.bytes, entries[1].sealed.bytes);
  EXPECT_NE(*vault.text(), *vault.text());
}

TEST(Vault, RefusesAFileWithAnyBitFlipped) {
  const std::string text = *vault_of(four).text();
  (void)opened(text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] =
        static_cast<char>(static_cast<unsigned char>(changed[bit / 8]) ^ (1U << (bit % 8)));
    auto file = read_store(changed);
    if (!file) continue;
    ASSERT_FALSE(Vault::open(*std::move(file), material())) << "byte " << bit / 8 << "\n"
                                                            << changed;
  }
}

TEST(Vault, RefusesAFileThatIsCutShort) {
  const std::string text = *vault_of(four).text();
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(read_store(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(read_store(text + "\n"));
}

// Without the seal of the whole, which a second look at each entry must not need.
class Entries : public testing::Test {
 protected:
  std::string get_after(const std::function<void(std::vector<Entry>&)>& change,
                        const Place& place) {
    StoreFile file = vault_.file();
    change(file.entries);
    // The same data key again, through the text: only a holder of the key can do this.
    Vault forged = opened(*vault_.text());
    const_cast<StoreFile&>(forged.file()) = file;
    return value_of(forged, place);
  }
  Vault vault_ = vault_of(four);
};

TEST_F(Entries, AreBoundToTheirName) {
  const auto swap = [](std::vector<Entry>& entries) {
    std::swap(entries[0].sealed, entries[1].sealed);
  };
  EXPECT_EQ(get_after(swap, {"*", "A"}),
            R"(refused: the store is damaged: "A" is not what was sealed)");
}

TEST_F(Entries, AreBoundToTheirServer) {
  const auto swap = [](std::vector<Entry>& entries) {
    std::swap(entries[2].sealed, entries[3].sealed);
  };
  EXPECT_EQ(get_after(swap, {"github", "A"}),
            R"(refused: the store is damaged: "A" is not what was sealed)");
  const auto widen = [](std::vector<Entry>& entries) { entries[0].sealed = entries[2].sealed; };
  EXPECT_EQ(get_after(widen, {"*", "A"}),
            R"(refused: the store is damaged: "A" is not what was sealed)");
}

TEST_F(Entries, AreBoundToTheirDates) {
  const auto date = [](std::vector<Entry>& entries) { entries[0].changed = std::string(later); };
  EXPECT_EQ(get_after(date, {"*", "A"}),
            R"(refused: the store is damaged: "A" is not what was sealed)");
}

TEST(Vault, RefusesAFileWhoseEntriesWereSwappedTakenOutOrTakenFromBefore) {
  Vault vault = vault_of(four);
  const StoreFile old = *read_store(*vault.text());
  ASSERT_TRUE(vault.set({"*", "A"}, "newer", later));
  const StoreFile file = *read_store(*vault.text());
  const auto is_opened = [](const StoreFile& changed) {
    auto read = read_store(write_store(changed));
    return read && Vault::open(*std::move(read), material());
  };
  EXPECT_TRUE(is_opened(file));
  StoreFile without = file;
  without.entries.pop_back();
  EXPECT_FALSE(is_opened(without));
  StoreFile swapped = file;
  std::swap(swapped.entries[2].sealed, swapped.entries[3].sealed);
  EXPECT_FALSE(is_opened(swapped));
  StoreFile partly_old = file;
  partly_old.entries[0] = old.entries[0];
  EXPECT_FALSE(is_opened(partly_old));
  StoreFile other_key = file;
  other_key.key = vault_of({}).file().key;
  EXPECT_FALSE(is_opened(other_key));
}

// ---- any values, any order ----------------------------------------------------------------------

rc::Gen<std::string> any_name() {
  return rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab_./:@Z9"))));
}
rc::Gen<std::string> any_server_name() {
  return rc::gen::oneOf(rc::gen::just(std::string("*")), rc::gen::just(std::string("gi\"t\\ü")),
                        any_name());
}

RC_GTEST_PROP(VaultProperty, EverythingComesBackFromTheFile, ()) {
  std::map<std::pair<std::string, std::string>, std::string> model;
  Vault vault = vault_of({});
  const auto count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    const Place place{*any_server_name(), *any_name()};
    RC_PRE(is_valid_name(place.name) && is_valid_server(place.server));
    if (*rc::gen::inRange(0, 4) == 0) {
      RC_ASSERT(vault.remove(place).has_value() == (model.erase({place.server, place.name}) == 1));
      continue;
    }
    const auto value = *rc::gen::nonEmpty(rc::gen::arbitrary<std::string>());
    RC_ASSERT(vault.set(place, value, earlier).has_value());
    model[{place.server, place.name}] = value;
  }
  if (*rc::gen::arbitrary<bool>()) RC_ASSERT(vault.rotate(key_file, material()).has_value());
  const std::string text = *vault.text();
  const auto file = read_store(text);
  RC_ASSERT(file.has_value());
  RC_ASSERT(write_store(*file) == text);
  const auto again = Vault::open(*file, material());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->file().entries.size() == model.size());
  for (const auto& [place, value] : model) {
    RC_ASSERT(value_of(*again, {place.first, place.second}) == value);
  }
}

// Among these are the same name of two servers, and fields that would run into each other.
TEST(Vault, BindsNoTwoEntriesToTheSameBytes) {
  const std::string_view few[] = {"a", "b", "ab", "bc", "c", "abc"};
  std::set<std::string> bound;
  for (const std::string_view server : few) {
    for (const std::string_view name : few) {
      for (const std::string_view created : few) {
        const Entry entry{.server = std::string(server),
                          .name = std::string(name),
                          .created = std::string(created)};
        EXPECT_TRUE(bound.insert(bound_to(WrappedKey{}, entry)).second) << server << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace capgate::store
