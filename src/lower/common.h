// What all lowerings share: the base of every sandbox, defaults, notes, and the refusal of what a
// target cannot enforce.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lower/artifact.h"

namespace capgate::lower {

class Support;

// Inside every sandbox the server is this user, whoever started it.
inline constexpr std::string_view sandbox_id = "1000";
inline constexpr std::string_view sandbox_hostname = "capgate";
inline constexpr std::string_view sandbox_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// HOME inside, when the caller's is not known.
inline constexpr std::string_view default_home = "/home/user";

// Files of the host's /etc that programs need and that hold no secret. Not every host has them all.
[[nodiscard]] std::span<const std::string_view> base_etc_paths();

struct GeneratedFile {
  std::string_view path;
  std::string_view contents;
  std::string_view base64;  // of the contents
};
// passwd, group, hosts, resolv.conf ...: made for the sandbox instead of shown from the host.
// machine-id is derived from the policy, so that it is stable and not the host's. `texts` keeps
// what is not the same for everyone.
using GeneratedFiles = std::array<GeneratedFile, 7>;
[[nodiscard]] GeneratedFiles generated_etc_files(const Input& input, std::string_view home,
                                                 TextStore& texts);

// The limit that the policy states, or the safe default.
[[nodiscard]] PlanLimit limit_of(const core::Policy& policy, core::LimitCapability::Kind kind);

[[nodiscard]] SeccompNeeds seccomp_needs(const core::Policy& policy);

// Names whose values the launcher supplies, sorted: env capabilities, and DISPLAY for x11.
[[nodiscard]] std::vector<std::string> env_injections(const core::Policy& policy);

// Where a declaration stands: "github.json:12:7", "--allow", or nothing without a source. The file
// is without its directory: the same manifest gives the same artifact wherever it lies.
[[nodiscard]] std::string position_of(const core::Declared& declared, const Input& input);

// Notes that hold for every target: what the author accepted, named or opened wide.
[[nodiscard]] std::vector<std::string> policy_notes(const Input& input);

// True if the policy grants this very path, with whatever rights. Some entries of a directory are
// not the directory: a pattern does not open what stays hidden in it.
[[nodiscard]] bool is_granted(const core::Policy& policy, std::string_view path);
// True if it grants the directory or something below it.
[[nodiscard]] bool holds_a_grant(const core::Policy& policy, std::string_view directory);

// What a whole target mounts for an ipc grant: the host's socket, or the directory of X sockets.
// Empty where the filter alone decides (self, netlink-route), and where the session bus is not
// known; that is refused.
[[nodiscard]] std::string socket_path(const core::Granted<core::IpcCapability>& grant,
                                      const Input& input, Support& support);

// The private /tmp: granting it opens nothing of the host.
[[nodiscard]] bool is_private_tmp(const core::FsCapability& fs);

// Answers, grant by grant, whether a target can keep what is declared.
class Support {
 public:
  Support(std::string_view target, const Input& input) : target_(target), input_(input) {}

  // The target cannot enforce this grant, because `reason`: an error with the remedy, unless the
  // caller accepted the grant by name. Returns true if it was accepted.
  bool unsupported(const core::Capability& capability, const core::Origins& origins,
                   std::string reason, std::string help);

  // The target can do nothing sensible with this grant, so that it cannot be accepted either.
  void impossible(const core::Capability& capability, const core::Origins& origins,
                  std::string_view reason, std::string help);

  // Call at the end: also refuses names that were accepted in vain.
  [[nodiscard]] Checked<std::vector<std::string>> finish() &&;

 private:
  std::string_view target_;
  const Input& input_;
  std::set<std::string> accepted_;
  std::set<std::string> refused_;  // each grant is refused once, for its first reason
  Diagnostics mistakes_;
};

// What neither bwrap nor docker can keep, whatever their options are: sealed variables, fs grants
// that separate adding from removing, entries that are looked up at launch.
void refuse_native_only(const Input& input, Support& support);

// Collects argv with the cause of each line.
class ArgvBuilder {
 public:
  explicit ArgvBuilder(Artifact& artifact) : artifact_(artifact) {}
  void because(std::string_view reason) { cause_ = {.reason = reason}; }
  void because(const core::Origins& origins) { cause_ = {.origins = &origins}; }

  // A std::string is kept in the artifact. A view or a literal must outlive the artifact, as
  // constants and the texts of the input do.
  template <typename... Words>
  void add(const Words&... words) {
    artifact_.lines.emplace_back(artifact_.argv.size(), cause_);
    (artifact_.argv.push_back(lasting(words)), ...);
  }

 private:
  template <typename Word>
  std::string_view lasting(const Word& word) {
    if constexpr (std::is_same_v<Word, std::string>) {
      return artifact_.texts.keep(word);
    } else if constexpr (std::is_array_v<Word>) {
      return {word, std::extent_v<Word> - 1};  // a literal: its length is part of its type
    } else {
      return word;
    }
  }

  Artifact& artifact_;
  Cause cause_;
};

// Collects the lines of a file with the cause of each.
class FileBuilder {
 public:
  explicit FileBuilder(std::string_view name) : file_{.name = name, .contents = {}} {}
  void because(std::string_view reason) { cause_ = {.reason = reason}; }
  void because(const core::Origins& origins) { cause_ = {.origins = &origins}; }

  // One line, or several that belong together; without the last line end.
  void add(std::string_view line) {
    file_.lines.emplace_back(file_.contents.size(), cause_);
    file_.contents += line;
    file_.contents += '\n';
  }

  [[nodiscard]] File take() && { return std::move(file_); }

 private:
  File file_;
  Cause cause_;
};

}  // namespace capgate::lower
