// Whole files in, whole texts out.
//
//   const Sys<std::string> text = read_file("manifest.json", most_bytes);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sys/error.h"
#include "sys/fd.h"

namespace capgate::sys {

// The file, or standard input for "-". Reads at most `most` + 1 bytes, so that the caller sees an
// oversized file without this program reading an endless one.
[[nodiscard]] Sys<std::string> read_file(const std::string& path, std::size_t most);

// Everything, or an error: a full disk or a closed pipe is not success.
[[nodiscard]] Sys<void> write_all(int fd, std::string_view text);

[[nodiscard]] bool is_terminal(int fd);

// Makes a directory with its parents, for this user alone (0700), and returns its path.
[[nodiscard]] Sys<std::string> make_directories(const std::string& path);

}  // namespace capgate::sys
