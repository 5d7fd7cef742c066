// Whether a capability may be granted at all, beyond being well-formed: refused scopes, and what
// needs the author's explicit `?unsafe=true`. The tables are in core/sensitive.h.
#pragma once

#include <string_view>

#include "base/result.h"
#include "core/capability.h"

namespace capgate::core {

// `home` is the caller's home directory, or empty. A diagnostic concerns the whole capability: its
// position is left empty for the caller to fill.
[[nodiscard]] Result<void> check_scope(const Capability& capability, std::string_view home);

// True if the grant changes files, not only reads them.
[[nodiscard]] bool is_writing(FsActions actions);

}  // namespace capgate::core
