#include "unpack/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"

namespace capgate::unpack {
namespace {

template <typename T>
using Words = std::expected<T, std::string>;  // the error is a sentence's end: "the bundle ..."

std::unexpected<std::string> refuse(std::string why) { return std::unexpected(std::move(why)); }

constexpr std::string_view local_mark = "PK\3\4";
constexpr std::string_view entry_mark = "PK\1\2";
constexpr std::string_view end_mark = "PK\5\6";
constexpr std::string_view zip64_mark = "PK\6\7";
constexpr std::string_view descriptor_mark = "PK\7\10";  // often left out
constexpr std::uint64_t local_size = 30;
constexpr std::uint64_t entry_size = 46;
constexpr std::uint64_t end_size = 22;
constexpr std::uint64_t zip64_locator_size = 20;
constexpr std::uint64_t descriptor_size = 12;  // without its mark
constexpr std::uint64_t longest_comment = 0xffff;

constexpr std::string_view manifest_name = "manifest.json";
constexpr std::string_view signature_begin = "MCPB_SIG_V1";
constexpr std::string_view signature_end = "MCPB_SIG_END";
constexpr std::uint64_t longest_signature = 64 << 10;

constexpr unsigned flag_encrypted = 1U << 0;
constexpr unsigned flag_descriptor = 1U << 3;  // sizes and checksum follow the data
constexpr unsigned flag_strong_encryption = 1U << 6;
constexpr unsigned flag_masked = 1U << 13;
constexpr unsigned method_stored = 0;
constexpr unsigned method_deflated = 8;
constexpr unsigned extra_zip64 = 0x0001;
constexpr unsigned extra_unicode_path = 0x7075;
constexpr std::size_t chunk = std::size_t{64} << 10;
constexpr std::uint32_t mode_type = 0170000;  // in the upper half of the external attributes
constexpr std::uint32_t mode_link = 0120000;

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return out;
}
unsigned u16(std::string_view bytes, std::size_t at) { return number(bytes, at, 2); }
std::uint32_t u32(std::string_view bytes, std::size_t at) { return number(bytes, at, 4); }

struct Entry {
  std::string_view name;
  unsigned flags = 0;
  unsigned method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  std::uint64_t offset = 0;  // of its local header
  bool is_link = false;      // where files have a mode, as on Unix
};

// Names that some file systems take for manifest.json: another case, dots or spaces at the end.
bool is_like_manifest(std::string_view name) {
  const std::size_t slash = name.find('/');
  std::string first = to_lower(name.substr(0, slash));
  while (!first.empty() && (first.back() == '.' || first.back() == ' ')) first.pop_back();
  return first == manifest_name;
}

std::string_view bad_name(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.contains('\0') || name.contains('\\')) return "has a name that systems read differently";
  if (name.starts_with('/') || (name.size() > 1 && name[1] == ':')) return "has an absolute name";
  if (name.ends_with('/')) name.remove_suffix(1);  // a directory
  for (const std::string_view part : EachPart(name, '/')) {
    if (part == "..") return "leads out of the bundle";
    if (part.empty() || part == ".") return "has a name that is spelled in a roundabout way";
  }
  return "";
}

class Archive {
 public:
  Archive(std::uint64_t size, const ReadAt& read_at) : size_(size), read_at_(read_at) {}

  Words<Found> read() {
    TRY(find_end());
    TRY(read_directory());
    const Entry wanted = *TRY(find_manifest());
    TRY(check_links());
    TRY(check_places());
    return Found{.manifest = TRY(unpack(wanted)), .is_signed = is_signed_};
  }

 private:
  Words<std::string> bytes(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > size_ - offset) return refuse("ends too early");
    std::string out(count, '\0');
    if (!read_at_(offset, out)) return refuse("cannot be read");
    return out;
  }

  // ---- the end, which says where the directory is ---------------------------------------------

  Words<void> find_end() {
    const std::uint64_t most = end_size + longest_comment + longest_signature;
    const std::uint64_t start = size_ - std::min(size_, most);
    const std::string tail = TRY(bytes(start, size_ - start));
    const std::uint64_t unsigned_end = start + TRY(find_signature(tail));
    std::optional<std::size_t> found;
    for (std::size_t at = tail.find(end_mark); at != std::string::npos;
         at = tail.find(end_mark, at + 1)) {
      // One that another reader could take, as it is nearer to the end of the file.
      if (found) return refuse("has two ends: programs disagree about what it holds");
      if (tail.size() - at < end_size) continue;
      const std::uint64_t end = start + at + end_size + u16(tail, at + 20);
      if (end == size_ || end == unsigned_end) found = at;
    }
    if (!found) return refuse("is no zip archive, or something follows its end");
    return read_end(tail, *found, start + *found);
  }

  // Where a signature of MCPB begins, or the end of `tail`.
  Words<std::size_t> find_signature(std::string_view tail) {
    if (!tail.ends_with(signature_end)) return tail.size();
    const std::size_t around = signature_begin.size() + 4 + signature_end.size();
    for (std::size_t at = tail.find(signature_begin); at != std::string_view::npos;
         at = tail.find(signature_begin, at + 1)) {
      if (tail.size() - at < around) break;
      if (u32(tail, at + signature_begin.size()) != tail.size() - at - around) continue;
      is_signed_ = true;
      return at;
    }
    return refuse("ends with a signature that is not whole");
  }

  Words<void> read_end(std::string_view tail, std::size_t at, std::uint64_t place) {
    if (at >= zip64_locator_size && tail.substr(at - zip64_locator_size).starts_with(zip64_mark)) {
      return refuse("is a zip64 archive, which bundles are not");
    }
    const unsigned entries = u16(tail, at + 10);
    if (u16(tail, at + 4) != 0 || u16(tail, at + 6) != 0 || u16(tail, at + 8) != entries) {
      return refuse("is one of several parts");
    }
    const std::uint64_t directory_size = u32(tail, at + 12);
    directory_at_ = u32(tail, at + 16);
    if (entries == 0xffff || directory_size == UINT32_MAX || directory_at_ == UINT32_MAX) {
      return refuse("is a zip64 archive, which bundles are not");
    }
    if (directory_at_ + directory_size != place) {
      return refuse("has a directory that is not where its end says");
    }
    if (directory_size > largest_directory) return refuse("has a directory of more than 32 MiB");
    directory_ = TRY(bytes(directory_at_, directory_size));
    entries_.reserve(entries);
    count_ = entries;
    return {};
  }

  // ---- the directory --------------------------------------------------------------------------

  Words<void> read_directory() {
    std::string_view rest = directory_;
    for (std::size_t i = 0; i < count_; ++i) {
      if (rest.size() < entry_size || !rest.starts_with(entry_mark)) {
        return refuse("has a directory that is broken");
      }
      const std::size_t name = u16(rest, 28);
      const std::size_t extra = u16(rest, 30);
      const std::size_t whole = entry_size + name + extra + u16(rest, 32);
      if (rest.size() < whole) return refuse("has a directory that is broken");
      const Entry entry{.name = rest.substr(entry_size, name),
                        .flags = u16(rest, 8),
                        .method = u16(rest, 10),
                        .crc = u32(rest, 16),
                        .packed = u32(rest, 20),
                        .unpacked = u32(rest, 24),
                        .offset = u32(rest, 42),
                        .is_link = ((u32(rest, 38) >> 16U) & mode_type) == mode_link};
      TRY(check(entry, u16(rest, 34)));
      TRY(check_extra(entry, rest.substr(entry_size + name, extra)));
      entries_.push_back(entry);
      rest.remove_prefix(whole);
    }
    if (!rest.empty()) return refuse("has a directory that is broken");
    return {};
  }

  // Programs differ in which of several fields they heed, so none may say anything else.
  static Words<void> check_extra(const Entry& entry, std::string_view extra) {
    constexpr std::size_t before = 5;  // a version and a checksum
    while (!extra.empty()) {
      const std::size_t size = extra.size() < 4 ? 0 : u16(extra, 2);
      if (extra.size() < 4 + size) {
        return refuse(format("has an entry with broken extra fields: {}", quoted(entry.name)));
      }
      const unsigned kind = u16(extra, 0);
      if (kind == extra_zip64) return refuse("is a zip64 archive, which bundles are not");
      if (kind == extra_unicode_path &&
          (size < before || extra.substr(4 + before, size - before) != entry.name)) {
        return refuse(format("has an entry with a second name: {}", quoted(entry.name)));
      }
      extra.remove_prefix(4 + size);
    }
    return {};
  }

  static Words<void> check(const Entry& entry, unsigned disk) {
    const bool is_sized_later = (entry.flags & flag_descriptor) != 0;
    if (const auto bad = bad_name(entry.name); !bad.empty()) {
      return refuse(format("has an entry that {}: {}", bad, quoted(entry.name)));
    }
    if ((entry.flags & (flag_encrypted | flag_strong_encryption | flag_masked)) != 0) {
      return refuse(format("has an entry that is encrypted: {}", quoted(entry.name)));
    }
    if (disk != 0) return refuse("is one of several parts");
    if (entry.packed == UINT32_MAX || entry.unpacked == UINT32_MAX || entry.offset == UINT32_MAX) {
      return refuse("is a zip64 archive, which bundles are not");
    }
    if (entry.method == method_stored && entry.packed != entry.unpacked) {
      return refuse(format("says two things about {}", quoted(entry.name)));
    }
    // Only a deflated stream says itself where it ends.
    if (is_sized_later && entry.method != method_deflated && entry.packed != 0) {
      return refuse(
          format("has an entry whose end does not show from its start: {}", quoted(entry.name)));
    }
    return {};
  }

  Words<const Entry*> find_manifest() const {
    const Entry* found = nullptr;
    for (const Entry& entry : entries_) {
      const bool is_it = entry.name == manifest_name;
      if (!is_it && is_like_manifest(entry.name)) {
        return refuse(format("has an entry that some systems take for manifest.json: {}",
                             quoted(entry.name)));
      }
      if (!is_it) continue;
      if (found != nullptr) return refuse("has two entries of the name manifest.json");
      if (entry.is_link) return refuse("has a manifest.json that is a link");
      found = &entry;
    }
    if (found == nullptr) return refuse("has no manifest.json at its root");
    return found;
  }

  // What lies below a link is written wherever that leads: `x -> .` and x/manifest.json are the
  // manifest. Names are compared as systems do that know no case.
  Words<void> check_links() const {
    std::vector<std::string> names;
    names.reserve(entries_.size());
    for (const Entry& entry : entries_) names.push_back(to_lower(entry.name));
    std::ranges::sort(names);
    for (const Entry& entry : entries_) {
      if (!entry.is_link) continue;
      std::string below = to_lower(entry.name);
      if (!below.ends_with('/')) below += '/';
      const auto first = std::ranges::lower_bound(names, below);
      if (first == names.end() || !first->starts_with(below)) continue;
      return refuse(format("has entries below a link: {}", quoted(entry.name)));
    }
    return {};
  }

  // ---- the entries in the file ----------------------------------------------------------------

  // One after the other from the first byte to the directory, and each local header as the
  // directory says: who reads the file from its start sees the same entries.
  Words<void> check_places() {
    std::ranges::sort(entries_, {}, &Entry::offset);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (entry.offset != expected) return refuse(misplaced(entry, expected));
      const std::uint64_t data = TRY(data_of(entry));
      const std::uint64_t end = data + entry.packed;
      expected = i + 1 < entries_.size() ? entries_[i + 1].offset : directory_at_;
      if (end > expected || expected > directory_at_)
        return refuse(format("has entries that overlap: {}", quoted(entry.name)));
      const std::uint64_t gap = expected - end;
      if ((entry.flags & flag_descriptor) != 0) {
        TRY(check_descriptor(entry, end, gap));
        if (entry.method == method_deflated) TRY(check_stream(entry, data));
      } else if (gap != 0) {
        return refuse(format("has something between its entries, after {}", quoted(entry.name)));
      }
    }
    if (expected != directory_at_) return refuse("has something before its directory");
    return {};
  }

  static std::string misplaced(const Entry& entry, std::uint64_t expected) {
    return entry.offset < expected ? format("has entries that overlap: {}", quoted(entry.name))
                                   : "has something before its first entry";
  }

  // Where the bytes of an entry begin.
  Words<std::uint64_t> data_of(const Entry& entry) const {
    const std::string local = TRY(bytes(entry.offset, local_size + entry.name.size()));
    const auto disagrees = [&] {
      return refuse(format("says two things about {}", quoted(entry.name)));
    };
    const std::string_view header = local;
    if (!header.starts_with(local_mark) || u16(header, 26) != entry.name.size() ||
        header.substr(local_size) != entry.name || u16(header, 6) != entry.flags ||
        u16(header, 8) != entry.method) {
      return disagrees();
    }
    const bool is_later = (entry.flags & flag_descriptor) != 0;
    const bool is_same = u32(header, 14) == entry.crc && u32(header, 18) == entry.packed &&
                         u32(header, 22) == entry.unpacked;
    const bool is_empty = u32(header, 14) == 0 && u32(header, 18) == 0 && u32(header, 22) == 0;
    if (!is_same && !(is_later && is_empty)) return disagrees();
    const std::uint64_t extra = entry.offset + local_size + entry.name.size();
    const std::string fields = TRY(bytes(extra, u16(header, 28)));
    TRY(check_extra(entry, fields));
    return extra + u16(header, 28);
  }

  // What follows the data of an entry whose local header does not have the sizes.
  Words<void> check_descriptor(const Entry& entry, std::uint64_t at, std::uint64_t size) const {
    const auto wrong = [&] {
      return refuse(format("has something between its entries, after {}", quoted(entry.name)));
    };
    const bool is_marked = size == descriptor_mark.size() + descriptor_size;
    if (!is_marked && size != descriptor_size) return wrong();
    const std::string whole = TRY(bytes(at, size));
    std::string_view fields = whole;
    // Without a mark it must not look as if it had one.
    if (fields.starts_with(descriptor_mark) != is_marked) return wrong();
    if (is_marked) fields.remove_prefix(descriptor_mark.size());
    const bool is_same = u32(fields, 0) == entry.crc && u32(fields, 4) == entry.packed &&
                         u32(fields, 8) == entry.unpacked;
    if (!is_same) return refuse(format("says two things about {}", quoted(entry.name)));
    return {};
  }

  // Who reads from the start takes the end of the stream for the end of the entry, and goes on
  // there: it must be where the directory says. What comes out is thrown away.
  Words<void> check_stream(const Entry& entry, std::uint64_t data) {
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return refuse("cannot be unpacked");
    auto is_whole = follow(stream, entry, data);
    (void)::inflateEnd(&stream);
    if (!TRY(std::move(is_whole))) {
      return refuse(format("has an entry that is not packed as it says: {}", quoted(entry.name)));
    }
    return {};
  }

  // False: not exactly all of the packed bytes become exactly the unpacked ones.
  Words<bool> follow(z_stream& stream, const Entry& entry, std::uint64_t data) {
    in_.resize(chunk);
    out_.resize(chunk);
    std::uint64_t left = entry.packed;
    std::uint64_t came = 0;
    uLong crc = 0;
    while (true) {
      if (stream.avail_in == 0 && left > 0) {
        const std::uint64_t size = std::min<std::uint64_t>(left, chunk);
        if (!read_at_(data, std::span(in_).first(size))) return refuse("cannot be read");
        stream.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream.avail_in = static_cast<uInt>(size);
        data += size;
        left -= size;
      }
      stream.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream.avail_out = static_cast<uInt>(chunk);
      const int state = ::inflate(&stream, Z_NO_FLUSH);
      const uInt got = static_cast<uInt>(chunk) - stream.avail_out;
      came += got;
      crc = ::crc32(crc, reinterpret_cast<const Bytef*>(out_.data()), got);
      if (state == Z_STREAM_END) {
        return left == 0 && stream.avail_in == 0 && came == entry.unpacked && crc == entry.crc;
      }
      // Without any progress it is Z_BUF_ERROR, so this ends.
      if (state != Z_OK || came > entry.unpacked) return false;
    }
  }

  Words<std::string> unpack(const Entry& entry) const {
    // What is larger than so much when packed is larger when unpacked, too.
    constexpr std::uint64_t largest_packed = largest_manifest + 4096;
    if (entry.unpacked > largest_manifest || entry.packed > largest_packed) {
      return refuse("has a manifest.json of more than 1 MiB");
    }
    const std::uint64_t data = TRY(data_of(entry));
    std::string packed = TRY(bytes(data, entry.packed));
    std::string out;
    if (entry.method == method_stored) {
      out = std::move(packed);
    } else if (entry.method == method_deflated) {
      out = TRY(inflated(packed, entry.unpacked));
    } else {
      return refuse("has a manifest.json that is packed in an unusual way");
    }
    const uLong crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(out.size()));
    if (crc != entry.crc) return refuse("has a manifest.json with a wrong checksum");
    return out;
  }

  // Exactly `size` bytes, of all of `packed`.
  static Words<std::string> inflated(std::string& packed, std::uint64_t size) {
    // One byte more, so that a text of more bytes than it says is seen.
    std::string out(size + 1, '\0');
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return refuse("cannot be unpacked");
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int ended = ::inflate(&stream, Z_FINISH);
    const bool is_whole = ended == Z_STREAM_END && stream.avail_in == 0 && stream.total_out == size;
    (void)::inflateEnd(&stream);
    if (!is_whole) return refuse("has a manifest.json that is not packed as it says");
    out.resize(size);
    return out;
  }

  std::uint64_t size_;
  const ReadAt& read_at_;
  bool is_signed_ = false;
  std::uint64_t directory_at_ = 0;
  std::string directory_;
  std::size_t count_ = 0;
  std::vector<Entry> entries_;
  std::vector<char> in_;
  std::vector<char> out_;
};

}  // namespace

std::expected<Found, std::string> read_bundle_manifest(std::uint64_t size, const ReadAt& read_at) {
  return Archive(size, read_at).read();
}

}  // namespace capgate::unpack
