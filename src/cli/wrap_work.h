// One client's file on its way through wrap or unwrap, and how that is shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/wrap_files.h"
#include "cli/wrap_plan.h"
#include "clients/edits.h"
#include "text/json_write.h"

namespace capgate::cli {

struct FileWork {
  ClientDocument document;
  std::vector<ServerPlan> plans;
  std::vector<clients::Edit> edits;  // what would be changed
  bool is_written = false;
  std::string backup;  // where it is
};

// For people, on stdout: the file, its servers, and the changes.
[[nodiscard]] std::string show_work(const FileWork& work, Colour colour);

struct WorkSummary {
  std::string_view command;  // "wrap"
  bool is_dry = false;
  int code = 0;
};
// For programs.
[[nodiscard]] std::string work_json(const std::vector<FileWork>& works, const WorkSummary& summary);

}  // namespace capgate::cli
