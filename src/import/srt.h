// Settings of the sandbox runtime `srt`, and the `sandbox` object of VS Code, which has the same
// keys.
//
//   {"filesystem": {"denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": []},
//    "network": {"allowedDomains": ["api.github.com:443", "*.npmjs.org"], "deniedDomains": []}}
//
// Everything is readable there that no rule denies. A manifest has no such thing: what may be
// written may be read, and what allowRead names; the rest is for the author to add. "*.name" does
// not match the name itself, there as here.
#pragma once

#include "base/result.h"
#include "import/imported.h"
#include "import/rules.h"
#include "text/document.h"

namespace capgate::imports {

[[nodiscard]] bool is_srt(const text::Document& document);
[[nodiscard]] Checked<Imported> read_srt(const text::Document& document, const ImportPlace& place);

// Puts the variables of a client into a path; nothing (and a mistake) where it cannot.
using TranslatePath = std::optional<Rules::Item> (*)(Rules& in, text::Value value,
                                                     std::string_view text,
                                                     std::string_view subject);

// The members `filesystem` and `network` of `object`, whatever it is called.
void read_sandbox_object(Rules& in, text::Value object, TranslatePath translate);

}  // namespace capgate::imports
