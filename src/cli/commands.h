// The commands of capgate, one file each.
#pragma once

#include <span>

#include "cli/options.h"

namespace capgate::cli {

[[nodiscard]] std::span<const Command> commands();

[[nodiscard]] Command compile_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command why_command();
[[nodiscard]] Command diff_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command schema_command();
[[nodiscard]] Command import_command();
[[nodiscard]] Command export_command();
[[nodiscard]] Command run_command();
[[nodiscard]] Command init_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command audit_command();
[[nodiscard]] Command secret_command();
[[nodiscard]] Command approve_command();
[[nodiscard]] Command install_command();
[[nodiscard]] Command catalog_command();
[[nodiscard]] Command wrap_command();
[[nodiscard]] Command unwrap_command();
[[nodiscard]] Command egress_command();
[[nodiscard]] Command targets_command();
[[nodiscard]] Command version_command();
[[nodiscard]] Command completion_command();

// The whole program but for process start and end: words in, texts and exit code out.
[[nodiscard]] int run_cli(std::span<const std::string> words, Output& output);

}  // namespace capgate::cli
