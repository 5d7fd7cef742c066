// --output FILE: a file that a command makes, whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "sys/error.h"

namespace capgate::cli {

enum class Existing : bool { kept, replaced };  // without and with --force

// Why nothing can be written there, or empty. What is put in the place of a link, a device or a
// pipe would take that away: --force is for files.
[[nodiscard]] std::string_view refuse_new_file(const std::string& file, Existing existing);

// Never a half of it under its name: it is written beside, and then put in its place.
[[nodiscard]] sys::Sys<void> write_new_file(const std::string& file, std::string_view text,
                                            Existing existing);

}  // namespace capgate::cli
