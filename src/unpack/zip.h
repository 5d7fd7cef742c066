// manifest.json of a bundle: a zip archive, read so strictly that no two programs can disagree
// about what it holds.
//
//   const auto found = read_bundle_manifest(size, read_at);
//   found->manifest   -> the bytes of the one manifest.json at the root
//   found.error()     -> why the archive is refused, in words
//
// The central directory decides, and everything else must agree with it: the local headers, the
// order of the entries without overlap or gap, the end of the file. So nothing can be hidden from
// this reader and be seen by another. Nothing but manifest.json is unpacked.
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
