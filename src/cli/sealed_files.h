// Which client's file `wrap --seal` took the secrets of a profile from. `unwrap` gives them back to
// that file alone: any other that says store:NAME may have been written by a server.
#pragma once

#include <expected>
#include <string>

#include "clients/replace_file.h"

namespace capgate::cli {

struct SealedFile {
  std::string target;  // without links
  std::string profile;
};

[[nodiscard]] bool was_sealed(const SealedFile& file);
[[nodiscard]] std::expected<void, clients::FileProblem> note_sealed(const SealedFile& file);
void forget_sealed(const SealedFile& file);

}  // namespace capgate::cli
