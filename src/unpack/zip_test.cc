#include "unpack/zip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "base/format.h"

namespace capgate::unpack {
namespace {

// Archives byte by byte, so that every field can be wrong. (Real ones, made by Python's zipfile,
// are in tests/e2e/import_test.py.)
struct Item {
  std::string name;
  std::string text;
  bool deflated = false;
  unsigned flags = 0;
  std::string extra = {};
  std::string local_name = {};  // where it differs
  std::string hidden = {};      // bytes after the data
  std::string local_extra = {};
  std::uint32_t mode = 0;
};

std::string little(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

std::string deflated(std::string text) {
  std::string out(text.size() + 1024, '\0');
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  (void)::deflateEnd(&stream);
  return out;
}

struct Zip {
  std::string body;
  std::string directory;
  unsigned count = 0;

  void add(const Item& item) {
    const std::string data = item.deflated ? deflated(item.text) : item.text;
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(item.text.data()),
                             static_cast<uInt>(item.text.size()));
    const std::string fields = little(item.flags, 2) + little(item.deflated ? 8 : 0, 2) +
                               little(0, 4) + little(crc, 4) + little(data.size(), 4) +
                               little(item.text.size(), 4);
    const std::string& local = item.local_name.empty() ? item.name : item.local_name;
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + fields + little(item.name.size(), 2) +
                 little(item.extra.size(), 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(std::uint64_t{item.mode} << 16, 4) + little(body.size(), 4) + item.name +
                 item.extra;
    body += "PK\3\4" + little(20, 2) + fields + little(local.size(), 2) +
            little(item.local_extra.size(), 2) + local + item.local_extra + data + item.hidden;
    ++count;
  }

  [[nodiscard]] std::string end(std::string_view comment = "") const {
    return "PK\5\6" + little(0, 4) + little(count, 2) + little(count, 2) +
           little(directory.size(), 4) + little(body.size(), 4) + little(comment.size(), 2) +
           std::string(comment);
  }
  [[nodiscard]] std::string whole(std::string_view comment = "") const {
    return body + directory + end(comment);
  }
};

Zip zip_of(const std::vector<Item>& items) {
  Zip out;
  for (const Item& item : items) out.add(item);
  return out;
}

// The manifest, or why there is none.
std::string read(const std::string& bytes) {
  const auto found = read_bundle_manifest(bytes.size(), [&](std::uint64_t at, std::span<char> to) {
    EXPECT_LE(at + to.size(), bytes.size());
    std::ranges::copy(bytes.substr(at, to.size()), to.begin());
    return true;
  });
  if (!found) return found.error();
  return found->is_signed ? "signed " + found->manifest : found->manifest;
}
std::string read(const std::vector<Item>& items) { return read(zip_of(items).whole()); }

const Item manifest{.name = "manifest.json", .text = "{\"a\": 1}"};

TEST(Zip, TheManifestIsRead) {
  EXPECT_EQ(read({manifest}), "{\"a\": 1}");
  EXPECT_EQ(read({{.name = "server/", .text = ""},
                  {.name = "server/index.js", .text = "1;", .deflated = true},
                  {.name = "manifest.json", .text = std::string(5000, 'x'), .deflated = true},
                  {.name = "server/manifest.json", .text = "no"}}),
            std::string(5000, 'x'));
  EXPECT_EQ(read(zip_of({manifest}).whole("a comment")), "{\"a\": 1}");
  EXPECT_EQ(read({{.name = "manifest.json", .text = ""}}), "");
}

TEST(Zip, NoArchiveIsRefused) {
  EXPECT_EQ(read(""), "is no zip archive, or something follows its end");
  EXPECT_EQ(read("{}"), "is no zip archive, or something follows its end");
  EXPECT_EQ(read(std::string("PK\5\6")), "is no zip archive, or something follows its end");
  EXPECT_EQ(read(zip_of({}).whole()), "has no manifest.json at its root");
  EXPECT_EQ(read({{.name = "other.json", .text = ""}}), "has no manifest.json at its root");
}

TEST(Zip, OnlyOneEntryCanBeTheManifest) {
  EXPECT_EQ(read({manifest, manifest}), "has two entries of the name manifest.json");
  for (const char* name : {"MANIFEST.JSON", "Manifest.json", "manifest.json.", "manifest.json ",
                           "manifest.json/", "manifest.json/x", "mAnifest.json./x"}) {
    EXPECT_TRUE(read({manifest, {.name = name, .text = ""}})
                    .starts_with("has an entry that some systems take for manifest.json"))
        << name;
  }
}

std::string field(unsigned kind, const std::string& bytes) {
  return little(kind, 2) + little(bytes.size(), 2) + bytes;
}
std::string unicode_name(const std::string& name) {
  return field(0x7075, std::string(5, '\1') + name);
}

// Programs take the first of several names, or the last, or that of the local header.
TEST(Zip, NoEntryHasASecondName) {
  const std::string time = field(0x5455, std::string(5, '\0'));
  const std::string own = unicode_name("innocent");
  const std::string other = unicode_name("manifest.json");
  const auto of = [](const std::string& extra, const std::string& local) {
    return read(
        {manifest, {.name = "innocent", .text = "x", .extra = extra, .local_extra = local}});
  };
  for (const std::string& good : {std::string(), time, own, time + own + own}) {
    EXPECT_EQ(of(good, good), "{\"a\": 1}");
  }
  for (const std::string& bad : {other, own + other, time + own + other, other + own,
                                 unicode_name(""), field(0x7075, "1234"), field(0x7075, "")}) {
    EXPECT_EQ(of(bad, ""), "has an entry with a second name: \"innocent\"");
    EXPECT_EQ(of("", bad), "has an entry with a second name: \"innocent\"");
  }
  for (const std::string& bad : {std::string("x"), std::string("xyz"), time + "x",
                                 little(0x7075, 2) + little(1, 2), own + little(1, 2)}) {
    EXPECT_EQ(of(bad, ""), "has an entry with broken extra fields: \"innocent\"");
    EXPECT_EQ(of("", bad), "has an entry with broken extra fields: \"innocent\"");
  }
  // Sizes of eight bytes, which change how long a descriptor is.
  EXPECT_EQ(of(field(1, ""), ""), "is a zip64 archive, which bundles are not");
  EXPECT_EQ(of("", field(1, std::string(16, '\0'))), "is a zip64 archive, which bundles are not");
  EXPECT_EQ(read({{.name = "manifest.json", .text = "", .extra = unicode_name("x")}}),
            "has an entry with a second name: \"manifest.json\"");
}

// Who unpacks the bundle with a link to "." gets another manifest than the one that is read.
TEST(Zip, LinksLeadToNoManifest) {
  constexpr std::uint32_t link = 0120777;
  EXPECT_EQ(read({{.name = "manifest.json", .text = "other.json", .mode = link}}),
            "has a manifest.json that is a link");
  const Item inside{.name = "x/manifest.json", .text = "{}"};
  EXPECT_EQ(read({manifest, {.name = "x", .text = ".", .mode = link}, inside}),
            "has entries below a link: \"x\"");
  EXPECT_EQ(read({manifest, inside, {.name = "X", .text = ".", .mode = link}}),
            "has entries below a link: \"X\"");
  EXPECT_EQ(read({manifest, {.name = "x/", .text = ".", .mode = link}}),
            "has entries below a link: \"x/\"");
  EXPECT_EQ(
      read(
          {manifest, {.name = "a/b", .text = "..", .mode = link}, {.name = "a/b/c/d", .text = ""}}),
      "has entries below a link: \"a/b\"");
  // Links of other names, as packages have them, and files with a mode.
  EXPECT_EQ(read({{.name = "manifest.json", .text = "{}", .mode = 0100644},
                  {.name = "bin", .text = "", .mode = 040755},
                  {.name = "bin/x", .text = "../y", .mode = link},
                  {.name = "bin/xy", .text = ""},
                  {.name = "bin/x.js", .text = ""}}),
            "{}");
}

TEST(Zip, NamesThatLeadElsewhereAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"/manifest.json", "has an absolute name"},
      {"C:manifest.json", "has an absolute name"},
      {"./manifest.json", "is spelled in a roundabout way"},
      {"a//manifest.json", "is spelled in a roundabout way"},
      {"a/../manifest.json", "leads out of the bundle"},
      {"../x", "leads out of the bundle"},
      {"a\\manifest.json", "that systems read differently"},
      {std::string("x\0y", 3), "that systems read differently"},
      {"", "has no name"},
  };
  for (const auto& [name, words] : cases) {
    EXPECT_TRUE(read({manifest, {.name = name, .text = ""}}).contains(words)) << name;
  }
}

TEST(Zip, EncryptedAndUnusualEntriesAreRefused) {
  for (const unsigned flag : {1U << 0, 1U << 6, 1U << 13}) {
    EXPECT_TRUE(
        read({manifest, {.name = "x", .text = "", .flags = flag}}).contains("is encrypted"));
  }
  Zip zip = zip_of({manifest});
  for (std::string* part : {&zip.body, &zip.directory}) {
    (*part)[part == &zip.body ? 8 : 10] = 12;  // bzip2
  }
  EXPECT_EQ(read(zip.whole()), "has a manifest.json that is packed in an unusual way");
}

TEST(Zip, SizesAndChecksumsMustBeTrue) {
  EXPECT_EQ(
      read({{.name = "manifest.json", .text = std::string((1 << 20) + 1, 'x'), .deflated = true}}),
      "has a manifest.json of more than 1 MiB");
  EXPECT_EQ(
      read({{.name = "manifest.json", .text = std::string(1 << 20, 'x'), .deflated = true}}).size(),
      std::size_t{1} << 20);
  Zip zip = zip_of({{.name = "manifest.json", .text = std::string(3000, 'x'), .deflated = true}});
  const auto with = [&](std::size_t in_body, std::size_t in_directory, const std::string& bytes) {
    Zip changed = zip;
    changed.body.replace(in_body, bytes.size(), bytes);
    changed.directory.replace(in_directory, bytes.size(), bytes);
    return read(changed.whole());
  };
  EXPECT_EQ(with(14, 16, little(7, 4)), "has a manifest.json with a wrong checksum");
  // A bomb: it says that it is small.
  EXPECT_EQ(with(22, 24, little(10, 4)), "has a manifest.json that is not packed as it says");
  EXPECT_EQ(with(22, 24, little(4000, 4)), "has a manifest.json that is not packed as it says");
  EXPECT_TRUE(with(18, 20, little(9000, 4)).contains("overlap"));
  Zip only_local = zip;
  only_local.body.replace(22, 4, little(10, 4));
  EXPECT_EQ(read(only_local.whole()), "says two things about \"manifest.json\"");
}

TEST(Zip, NothingCanBeHidden) {
  EXPECT_EQ(read({manifest, {.name = "a", .text = "", .local_name = "b"}}),
            "says two things about \"a\"");
  EXPECT_TRUE(read({{.name = "a", .text = "x", .hidden = "PK\3\4 something"}, manifest})
                  .starts_with("has something between its entries, after \"a\""));
  const Zip zip = zip_of({manifest});
  EXPECT_EQ(read("#!/bin/sh\n" + zip.whole()), "has a directory that is not where its end says");
  EXPECT_EQ(read(zip.whole() + "more"), "is no zip archive, or something follows its end");
  EXPECT_EQ(read(zip.whole(zip.end())), "has two ends: programs disagree about what it holds");
  EXPECT_EQ(read(zip.body + zip.directory + zip.directory + zip.end()),
            "has a directory that is not where its end says");
  // The same bytes twice, under two names.
  Zip twice = zip_of({manifest, {.name = "other", .text = "{\"a\": 1}"}});
  twice.directory.replace(46 + 13 + 42, 4, little(0, 4));
  EXPECT_TRUE(read(twice.whole()).contains("overlap"));
}

TEST(Zip, Zip64AndPartsAreRefused) {
  const Zip zip = zip_of({manifest});
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string end = zip.end();
    end.replace(at, bytes.size(), bytes);
    return read(zip.body + zip.directory + end);
  };
  EXPECT_EQ(with(4, little(1, 2)), "is one of several parts");
  EXPECT_EQ(with(8, little(2, 2)), "is one of several parts");
  EXPECT_EQ(with(8, little(0xffff, 2) + little(0xffff, 2)),
            "is a zip64 archive, which bundles are not");
  EXPECT_EQ(with(16, little(0xffffffff, 4)), "is a zip64 archive, which bundles are not");
  EXPECT_EQ(with(8, little(2, 2) + little(2, 2)), "has a directory that is broken");
  EXPECT_EQ(with(8, little(0, 2) + little(0, 2)), "has a directory that is broken");
  EXPECT_EQ(read(zip.body + zip.directory + "PK\6\7" + std::string(16, '\0') + zip.end()),
            "is a zip64 archive, which bundles are not");
  Zip large = zip;
  large.directory.replace(20, 4, little(0xffffffff, 4));
  EXPECT_EQ(read(large.whole()), "is a zip64 archive, which bundles are not");
}

TEST(Zip, ASignatureMayFollow) {
  const std::string signature = "MCPB_SIG_V1" + little(7, 4) + "PKCS #7" + "MCPB_SIG_END";
  const Zip zip = zip_of({manifest});
  EXPECT_EQ(read(zip.whole() + signature), "signed {\"a\": 1}");
  EXPECT_EQ(read(zip.whole(signature)), "signed {\"a\": 1}");  // as the archive's comment
  EXPECT_EQ(read(zip.whole() + "x" + signature), "is no zip archive, or something follows its end");
  EXPECT_EQ(read(zip.whole() + "MCPB_SIG_V1" + little(8, 4) + "PKCS #7" + "MCPB_SIG_END"),
            "ends with a signature that is not whole");
  EXPECT_EQ(read(zip.whole() + "MCPB_SIG_END"), "ends with a signature that is not whole");
}

std::string descriptor(const std::string& text, std::size_t packed) {
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  return little(crc, 4) + little(packed, 4) + little(text.size(), 4);
}

constexpr unsigned later = 1U << 3;  // the sizes stand after the data
const std::string mark = "PK\7\10";

TEST(Zip, DescriptorsAfterTheDataAreTaken) {
  const std::string text = "{\"a\": \"" + std::string(200000, 'x') + "\"}";
  const std::string right = descriptor(text, deflated(text).size());
  for (const std::string& after : {right, mark + right}) {
    const Item item{
        .name = "manifest.json", .text = text, .deflated = true, .flags = later, .hidden = after};
    Zip zip = zip_of({item, {.name = "x", .text = "1"}});
    EXPECT_EQ(read(zip.whole()), text);
    zip.body.replace(14, 12, std::string(12, '\0'));
    EXPECT_EQ(read(zip.whole()), text);
  }
  // Directories, as some programs write them.
  const Item directory{
      .name = "a/", .text = "", .flags = later, .hidden = mark + std::string(12, '\0')};
  EXPECT_EQ(read({directory, manifest}), "{\"a\": 1}");
}

TEST(Zip, WrongDescriptorsAreRefused) {
  const auto with = [](const std::string& after) {
    return read(
        {manifest, {.name = "x", .text = "1;", .deflated = true, .flags = later, .hidden = after}});
  };
  const std::string right = descriptor("1;", deflated("1;").size());
  EXPECT_EQ(with(right), "{\"a\": 1}");
  for (const std::size_t at : {0U, 4U, 8U}) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    EXPECT_EQ(with(wrong), "says two things about \"x\"") << at;
    EXPECT_EQ(with(mark + wrong), "says two things about \"x\"") << at;
  }
  for (const std::string& wrong : {std::string(), std::string("PK\7\7") + right, right + "1234",
                                   right.substr(1), right + "x", mark + right.substr(4)}) {
    EXPECT_EQ(with(wrong), "has something between its entries, after \"x\"");
  }
}

// A whole entry inside of another one's bytes: the stream ends early, and who reads from the start
// goes on with what follows it.
TEST(Zip, NoEntryIsHiddenInTheBytesOfAnother) {
  const std::string inner = "{\"a\": \"inner\"}";
  const std::string first = deflated("x");
  const Zip hidden = zip_of({{.name = "manifest.json", .text = inner}});
  const std::string packed = first + mark + descriptor("x", first.size()) + hidden.body;
  const auto bundle = [&](bool is_deflated, std::size_t unpacked) {
    const auto crc = is_deflated ? descriptor("x", 0) : descriptor(packed, 0);
    const std::string sizes = little(packed.size(), 4) + little(unpacked, 4);
    Zip zip = zip_of({{.name = "x", .text = packed, .flags = later}});
    for (std::string* part : {&zip.body, &zip.directory}) {
      const std::size_t at = part == &zip.body ? 8 : 10;
      part->replace(at, 2, little(is_deflated ? 8 : 0, 2));
      part->replace(at + 6, 12, crc.substr(0, 4) + sizes);
    }
    zip.body += mark + crc.substr(0, 4) + sizes;
    zip.body.replace(14, 12, std::string(12, '\0'));
    zip.add(manifest);
    return read(zip.whole());
  };
  EXPECT_EQ(bundle(true, 1), "has an entry that is not packed as it says: \"x\"");
  EXPECT_EQ(bundle(true, packed.size()), "has an entry that is not packed as it says: \"x\"");
  EXPECT_EQ(bundle(false, packed.size()),
            "has an entry whose end does not show from its start: \"x\"");
  EXPECT_EQ(bundle(false, 1), "says two things about \"x\"");
}

TEST(Zip, AStreamThatNeverEndsIsRefused) {
  const std::string packed = deflated(std::string(1 << 20, 'x'));
  for (const std::size_t cut : {std::size_t{1}, packed.size() / 2, packed.size()}) {
    const std::string part = packed.substr(0, packed.size() - cut);
    const auto fields = descriptor(std::string(1 << 20, 'x'), part.size());
    Zip zip = zip_of({{.name = "x", .text = part}});
    for (std::string* where : {&zip.body, &zip.directory}) {
      const std::size_t at = where == &zip.body ? 6 : 8;
      where->replace(at, 4, little(later, 2) + little(8, 2));
      where->replace(at + 8, 12, fields);
    }
    zip.body += fields;
    zip.add(manifest);
    EXPECT_EQ(read(zip.whole()), "has an entry that is not packed as it says: \"x\"") << cut;
  }
}

TEST(Zip, AFileThatCannotBeReadIsAnError) {
  const auto found =
      read_bundle_manifest(100, [](std::uint64_t, std::span<char>) { return false; });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), "cannot be read");
}

// Whatever single bytes are changed: the manifest is the same, or there is none.
RC_GTEST_PROP(ZipProperty, AChangedArchiveNeverGivesAnotherManifest, ()) {
  std::string bytes = zip_of({{.name = "manifest.json",
                               .text = "{\"name\": \"x\"}",
                               .deflated = *rc::gen::arbitrary<bool>()},
                              {.name = "index.js", .text = "1;"}})
                          .whole();
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  bytes[at] = *rc::gen::arbitrary<char>();
  const auto found =
      read_bundle_manifest(bytes.size(), [&](std::uint64_t from, std::span<char> to) {
        std::ranges::copy(bytes.substr(from, to.size()), to.begin());
        return true;
      });
  if (found) RC_ASSERT(found->manifest == "{\"name\": \"x\"}");
}

}  // namespace
}  // namespace capgate::unpack
