// Carries a plan of `wrap` out: packages, secrets, policies, and last the client's file, so that a
// client never finds a command that lacks one of them.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "cli/secret_store.h"
#include "cli/wrap_work.h"

namespace capgate::cli {

class WrapWriter {
 public:
  explicit WrapWriter(const PlanOptions& options) : options_(options) {}

  // What fails for one server leaves that server alone, and is the exit code.
  [[nodiscard]] int write(FileWork& work, Output& output);

 private:
  [[nodiscard]] bool install(ServerPlan& plan, const clients::ServerEntry& server, Output& output);
  [[nodiscard]] std::expected<void, int> store_secrets(const FileWork& work, Output& output);
  [[nodiscard]] std::expected<std::optional<std::string>, int> key_for_new_store(Output& output);
  [[nodiscard]] std::expected<std::vector<std::string>, int> write_profiles(const FileWork& work,
                                                                            Output& output);
  [[nodiscard]] int replace(FileWork& work, Output& output);

  const PlanOptions& options_;
  std::vector<std::string> written_;  // names of profiles
};

}  // namespace capgate::cli
