// A mistake that the author of a manifest can fix: what is wrong, where, what to write instead.
//
//   return std::unexpected(Diagnostic{.code = Code::cap_fs_relative,
//                                     .where = span,
//                                     .message = "path is not absolute",
//                                     .help = "write fs:read:/workspace/**"});
//
// Printing it with the source line and a caret is base/render.h; the long form of a code, which
// `capgate explain CODE` prints, is base/codes.h.
#pragma once

#include <string>

#include "base/codes.h"
#include "base/span.h"

namespace capgate {

struct Diagnostic {
  Code code = Code::manifest_shape;
  Span where{};
  std::string message{};
  std::string help{};

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

}  // namespace capgate
