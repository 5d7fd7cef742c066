// The file that a run's network decisions are written to, opened and locked.
//
//   const AuditFile audit = TRY(open_audit_file("", directory, name, bound));
//
// One run writes one file at a time, and the server cannot write it: not by a grant that contains
// it, not by another name of it.
#pragma once

#include <expected>
#include <string>

#include "sandbox/bind.h"
#include "sys/fd.h"

namespace capgate::sandbox {

struct AuditFile {
  sys::Fd fd;
  std::string path;
};

struct AuditPlace {
  std::string file;       // --audit, or empty: a new file in
  std::string directory;  // which is made for the user alone
  std::string name;       // of that file
};
[[nodiscard]] std::expected<AuditFile, Refusal> open_audit_file(const AuditPlace& place,
                                                                const Bound& bound);

// "20261115T120000Z-github-5f2c9a11.jsonl"
[[nodiscard]] std::string audit_name(std::string_view server, std::string_view sandbox);

}  // namespace capgate::sandbox
