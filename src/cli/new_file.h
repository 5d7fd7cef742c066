// --output FILE and --force: a file that a command makes, whole or not at all.
//
//   const auto place = read_new_file(arguments, {.example = "report.html"}, output);
//   if (!place) return place.error();                       // told already
//   if (place->is_stdout()) ...
//   if (const auto written = write_new_file(*place, text, output); !written) return
//   written.error();
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace capgate::cli {

enum class Existing : bool { kept, replaced };  // without and with --force

struct NewFile {
  std::string file;  // empty: stdout
  Existing existing = Existing::kept;

  [[nodiscard]] bool is_stdout() const { return file.empty(); }
};

// What the command reads: it is never replaced, not with --force either. "-" is stdin.
struct NewFileUse {
  std::string_view example;
  std::vector<std::string> inputs;
};

// What is put in the place of a link, a device or a pipe would take that away: --force is for
// files.
[[nodiscard]] std::expected<NewFile, int> read_new_file(const Arguments& arguments,
                                                        const NewFileUse& use, Output& output);

// Never a half of it under its name: it is written beside, and then put in its place.
[[nodiscard]] std::expected<void, int> write_new_file(const NewFile& place, std::string_view text,
                                                      Output& output);

}  // namespace capgate::cli
