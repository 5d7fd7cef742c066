// One client's file on its way through wrap or unwrap, and how that is shown.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/wrap_files.h"
#include "cli/wrap_plan.h"
#include "clients/edits.h"

namespace capgate::cli {

struct FileWork {
  ClientDocument document;
  std::vector<ServerPlan> plans;
  std::vector<clients::Edit> edits;  // what would be changed
  bool is_written = false;
  std::string backup;  // where it is
};

// What the two commands do differently.
struct WorkSteps {
  std::string_view command;  // "wrap"
  std::string_view nothing;  // to say where there is nothing to do
  std::function<std::vector<ServerPlan>(const ClientDocument&, const ClientDocuments&)> plan;
  std::function<std::vector<clients::Change>(const FileWork&)> changes;
  std::function<int(FileWork&, Output&)> write;  // and says what was done
};

// Reads, plans, shows, asks and writes, file by file. The exit code.
[[nodiscard]] int work_through(const Arguments& arguments, const WorkSteps& steps, Output& output);

}  // namespace capgate::cli
