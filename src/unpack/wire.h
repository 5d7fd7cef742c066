// How capgate-unpack answers on its standard output: one byte, then the text that it stands for.
#pragma once

#include <cstddef>

#include "unpack/zip.h"

namespace capgate::unpack {

inline constexpr char answer_manifest = 'm';
inline constexpr char answer_signed_manifest = 's';
inline constexpr char answer_refused = 'r';     // the archive: why, in words
inline constexpr char answer_unconfined = 'u';  // this machine: what could not be given up

inline constexpr std::size_t longest_answer = largest_manifest + 1;

}  // namespace capgate::unpack
