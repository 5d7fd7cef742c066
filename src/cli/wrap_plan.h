// What `wrap` would do with each server of a client's file, before anything is done.
//
//   Planner planner(options);
//   std::vector<ServerPlan> plans = planner.plan(document, documents);
//   changes_of(plans)   for clients::apply
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/wrap_files.h"
#include "cli/wrap_policy.h"
#include "clients/config_files.h"
#include "clients/profile_file.h"
#include "clients/store.h"

namespace capgate::cli {

struct ServerPlan {
  enum class Kind : unsigned char {
    wrap,
    unwrap,
    wrapped,
    not_wrapped,
    http,
    disabled,
    not_named,
    problem
  };
  Kind kind = Kind::wrap;
  std::size_t server = 0;  // index in ClientFile::servers
  std::string reason;      // why it is left alone
  clients::Profile profile;
  std::string profile_file;       // where its policy stands, or will
  bool writes_profile = false;    // it is not there yet, or nobody has changed it since `wrap` did
  bool replaces_profile = false;  // of these two the second
  std::optional<clients::Package> package;
  bool is_installed = false;
  bool installs = true;     // it will be, with the wrapping
  bool is_failure = false;  // a problem that is to be mended, not a reason to leave it alone
  std::vector<std::string> policy;         // one capability a line
  std::vector<std::string> plain_secrets;  // names whose values stand in the file
  std::vector<std::string> sealed;         // of these what goes to the store
  std::vector<std::string> unsealable;     // and what does not, with the reason
};

struct PlanOptions {
  clients::Surroundings surroundings;
  clients::Places places;
  clients::Store store;
  bool seals = false;
  bool installs = true;
  std::string self;  // capgate, as the client is to start it
};

// Knows the profiles that were given out so far: two clients share one where they say the same.
class Planner {
 public:
  explicit Planner(PlanOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::vector<ServerPlan> plan(const ClientDocument& document,
                                             const ClientDocuments& all);

 private:
  struct Given {
    ServerPlan plan;
    std::vector<std::string> values;  // of its sealed secrets: the store has one of each
  };

  void add_used(const ClientDocument& document);
  [[nodiscard]] ServerPlan plan_server(const ClientDocument& document, std::size_t index);
  void find_policy(const clients::ServerEntry& server, const ClientDocument& document,
                   ServerPlan& plan);
  void seal(const clients::ServerEntry& server, const PolicyView& view, ServerPlan& plan);
  void name_profile(const clients::ServerEntry& server, const ClientDocument& document,
                    ServerPlan& plan);
  [[nodiscard]] bool try_name(const std::string& name, const clients::ServerEntry& server,
                              ServerPlan& plan);
  [[nodiscard]] bool take_printed(const clients::FoundServer& found, ServerPlan& plan);
  [[nodiscard]] bool take_found(const clients::FoundServer& found,
                                const clients::ServerEntry& server, ServerPlan& plan);

  PlanOptions options_;
  std::vector<Given> given_;
  std::vector<std::string> used_;  // profiles of servers that are wrapped already
};

[[nodiscard]] std::vector<clients::Change> changes_of(const std::vector<ServerPlan>& plans,
                                                      std::string_view self);
// Only what takes the sealed values out: the backup holds none of them.
[[nodiscard]] std::vector<clients::Change> seals_of(const std::vector<ServerPlan>& plans);

// A value that the client fills in.
[[nodiscard]] bool is_reference(std::string_view value);

}  // namespace capgate::cli
