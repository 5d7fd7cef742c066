// The audit logs of this user, and their lines.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/audit_view.h"
#include "cli/options.h"
#include "egress/audit_read.h"
#include "sys/lines.h"

namespace capgate::cli {

// The logs in audit_directory(), the one that was written last at the end.
[[nodiscard]] std::vector<std::string> find_audit_files();

[[nodiscard]] sys::Sys<sys::LineReader> open_audit_file(const std::string& path,
                                                        std::uint64_t offset = 0);

// What the machine refused, said in `output`; the exit code.
int cannot_read(const std::string& path, const sys::SysError& error, Output& output);

// A record with the line that it was read from.
struct AuditEntry {
  egress::AuditRecord record;
  std::string line;
};

// Every record of a file in order. A line that cannot be read is said in `output` and left out; a
// file of such lines is an error, whose exit code is returned.
[[nodiscard]] std::expected<void, int> each_record(
    const std::string& path, const std::function<void(AuditEntry entry)>& visit, Output& output);

// The last records that match, in order, and where what is appended later begins.
struct LastRecords {
  std::vector<AuditEntry> entries;
  std::uint64_t end = 0;
};
[[nodiscard]] std::expected<LastRecords, int> last_records(const std::string& path,
                                                           const AuditFilter& filter,
                                                           std::uint64_t most, Output& output);

}  // namespace capgate::cli
