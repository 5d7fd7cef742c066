// -o FILE: a whole text under a new name, or in the place of a file with --force.
#pragma once

#include <string>
#include <string_view>

#include "sys/error.h"

namespace capgate::cli {

enum class Replace : unsigned char { never, files };

// Why a text cannot go there; empty if it can. What is put in the place of a link, a device or a
// pipe would take that away: --force is for files.
[[nodiscard]] std::string_view refuse_file(const std::string& file, Replace replace);

// Never a half of it under its name: it is written beside, and then put in its place.
[[nodiscard]] sys::Sys<void> write_new_file(const std::string& file, std::string_view text,
                                            Replace replace);

}  // namespace capgate::cli
