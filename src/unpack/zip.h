// manifest.json of a bundle: a zip archive, read so strictly that a program that goes by its
// directory and one that reads it from the start find the same manifest.
//
//   const auto found = read_bundle_manifest(size, read_at);
//   found->manifest   -> the bytes of the one manifest.json at the root
//   found.error()     -> why the archive is refused, in words
//
// The central directory decides, and everything else must agree with it: the local headers, the
// order of the entries without overlap or gap, the extra fields of both, the end of the file. Where
// a local header leaves the sizes to what follows the data, the data itself must end where the
// directory says, so that no entry can be hidden in another one's bytes: such an entry is inflated,
// and thrown away. Nothing but manifest.json is kept.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <span>
#include <string>

namespace capgate::unpack {

inline constexpr std::uint64_t largest_manifest = std::uint64_t{1} << 20;
// 65,535 entries, which is the most without zip64, with names of some hundred bytes.
inline constexpr std::uint64_t largest_directory = std::uint64_t{32} << 20;

// Fills `into` with the bytes from `offset` on; false if it cannot.
using ReadAt = std::function<bool(std::uint64_t offset, std::span<char> into)>;

struct Found {
  std::string manifest;
  bool is_signed = false;  // a signature of MCPB follows the archive; it is not checked
};

[[nodiscard]] std::expected<Found, std::string> read_bundle_manifest(std::uint64_t size,
                                                                     const ReadAt& read_at);

}  // namespace capgate::unpack
