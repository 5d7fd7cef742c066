// The options in an artifact's provenance, read again: what write_options of artifact.cc printed.
//
//   const auto options = read_options(*provenance.find("options"));   "options has an unknown key"
//
// What is accepted without enforcement and how assertions are verified does not stand there, but in
// `unenforced` and `assertions` of the artifact itself.
#pragma once

#include <expected>
#include <string>

#include "lower/artifact.h"
#include "text/document.h"

namespace capgate::lower {

// The error is in words. A key that is not known is one: it may have changed the artifact.
[[nodiscard]] std::expected<Options, std::string> read_options(text::Value value);

}  // namespace capgate::lower
