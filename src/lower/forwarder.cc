#include "lower/forwarder.h"

#include "base/format.h"
#include "base/text.h"
#include "core/path.h"
#include "lower/egress_policy.h"

namespace capgate::lower {
namespace {

// A server that can write there could replace the forwarder that its next start runs.
void refuse_shared_directory(const Input& input, Support& support) {
  const std::string& directory = input.options.egress_dir;
  for (const auto& grant : input.policy.files) {
    const std::string& base = grant.capability.path.base;
    if (is_private_tmp(grant.capability)) continue;
    if (core::is_at_or_below(base, forwarder_directory)) {
      support.impossible(grant.capability, grant.origins,
                         "inside, capgate's own files for declared egress lie there",
                         "grant another path");
    } else if (core::is_at_or_below(directory, base) || core::is_at_or_below(base, directory)) {
      support.impossible(grant.capability, grant.origins,
                         format("it would show the server {}, where capgate egress listens",
                                escape_for_terminal(directory)),
                         "choose another directory with --egress-dir");
    }
  }
  for (const auto& grant : input.policy.sockets) {
    const core::IpcCapability& ipc = grant.capability;
    if (ipc.kind != core::IpcCapability::Kind::unix_path) continue;
    if (!core::is_at_or_below(ipc.path, forwarder_directory)) continue;
    support.impossible(ipc, grant.origins,
                       "inside, capgate's own files for declared egress lie there",
                       "let the service listen elsewhere");
  }
}

}  // namespace

std::vector<std::string_view> forward_words(const SeccompNeeds& needs) {
  std::vector<std::string_view> words{"forward"};
  if (!needs.processes) words.emplace_back("--no-processes");
  if (needs.unix_sockets) words.emplace_back("--unix-sockets");
  words.emplace_back("--");
  return words;
}

void add_forwarder_notes(const Input& input, std::vector<std::string>& notes) {
  notes.push_back(
      format("net: the sandbox has no network; start this first, with this manifest: capgate "
             "egress --policy MANIFEST --listen unix:{}/egress.sock",
             escape_for_terminal(input.options.egress_dir)));
  notes.emplace_back(
      "net: only programs that use the proxy variables (HTTPS_PROXY ...) reach the declared "
      "endpoints");
}

void refuse_beyond_forwarder(const Input& input, Support& support) {
  refuse_listeners(input, support);
  if (!uses_forwarder(input.policy)) return;
  refuse_unseen_requests(input, support);
  refuse_shared_directory(input, support);
}

}  // namespace capgate::lower
