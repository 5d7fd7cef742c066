// "user" keys of the kernel: in memory, of this user, gone with the next boot.
#pragma once

#include <optional>
#include <string>

#include "secrets/secret.h"
#include "store/problem.h"

namespace capgate::store {

// Of the session's keyring, else of the user's. None: there is no such key.
[[nodiscard]] Outcome<std::optional<secrets::Secret>> find_kernel_key(const std::string& name);

// Into the user's keyring, where every session of this user finds it.
[[nodiscard]] Outcome<void> add_kernel_key(const std::string& name, const secrets::Secret& bytes);

}  // namespace capgate::store
