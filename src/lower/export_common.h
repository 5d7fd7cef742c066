// What the formats of other tools have in common: what none of them can say, and lists in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/common.h"
#include "text/json_write.h"

namespace capgate::lower {

using ConnectGrant = core::Granted<core::NetConnect>;
using FileGrant = core::Granted<core::FsCapability>;

// "denyRead": ["...", ...]
void write_list(text::JsonWriter& json, std::string_view key, const std::vector<std::string>& list);

// Refuses each grant of these kinds, for one reason.
struct Reasons {
  std::string_view listen;
  std::string_view exec;
  std::string_view limit;
};
void refuse_kinds(const Input& input, const Reasons& reasons, Support& support);

// Variables that the server would hold itself, although the policy keeps their values from it.
void refuse_sealed(const Input& input, Support& support);

// What a list of hosts does not look at: requests, protocols, the name inside TLS.
void refuse_requests(const ConnectGrant& grant, Support& support);

// Adding without removing, or removing without adding.
void refuse_split_writes(const FileGrant& grant, Support& support);

[[nodiscard]] bool writes(const core::FsCapability& fs);

// What the native engine keeps from being written inside a writable grant: what a host program runs
// later. Without what the policy grants by name.
[[nodiscard]] std::vector<std::string> kept_from_writing(const Input& input, std::string_view base);

// sandbox-runtime, which VS Code uses too, takes no name without a dot, no *.tld and no `*`.
[[nodiscard]] bool is_srt_domain(const core::HostPattern& host);

}  // namespace capgate::lower
