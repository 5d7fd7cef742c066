// What a key source gives: typed, read from a file, or taken from the kernel.
#pragma once

#include "secrets/secret.h"
#include "store/store_file.h"

namespace capgate::store {

// A new one is asked for twice and not too short.
enum class Passphrase : unsigned char { known, fresh };
[[nodiscard]] Outcome<secrets::Secret> ask_passphrase(Passphrase kind);

[[nodiscard]] Outcome<secrets::Secret> read_key_file(const std::string& path);

// May a key of the kernel be made if there is none? Only under the store's lock: the kernel would
// give another value to a key that someone made meanwhile.
enum class Absent : unsigned char { is_refused, is_made };
struct KernelKey {
  secrets::Secret bytes;
  bool is_made = false;
};
[[nodiscard]] Outcome<KernelKey> kernel_key(const std::string& name, Absent absent);

}  // namespace capgate::store
