// libcapgate: the compiler of capgate, for programs that embed it. It reads no file, no variable
// and no clock: the same input gives the same bytes that `capgate compile` prints.
//
//   auto manifest = capgate::parse(text, {.name = "github.json"});
//   if (!manifest) return show(manifest.error());
//   auto policy = capgate::compile(*manifest, {.tool = "search_code"});
//   if (!policy) return show(policy.error());
//   auto artifact = capgate::lower(*policy, "bwrap", {.programs = {"/usr/bin/node"}});
//   if (!artifact) return show(artifact.error());
//   write(artifact->json());
//
// C++20 or later. Nothing throws: a failure is a value, even when there is no memory left. All
// functions may be called from any thread, and all values may be shared between threads like a
// const std::string. What stays as it is between versions: docs/library.md.
#ifndef CAPGATE_CAPGATE_H
#define CAPGATE_CAPGATE_H

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include <version>
#ifdef __cpp_lib_expected
#include <expected>
#endif

#ifndef CAPGATE_API
#define CAPGATE_API __attribute__((visibility("default")))
#endif

// The number in it changes when programs must be compiled again.
namespace capgate::v0 {

// ---- failures -------------------------------------------------------------------------------

// A mistake: what is wrong, what to write instead, and where. `code` is stable, for programs:
// those of docs/diagnostics.md, OPTION_INVALID for a wrong option, OUT_OF_MEMORY.
struct Diagnostic {
  std::string code;
  std::string message;
  std::string help;
  std::size_t line = 0;    // from 1; 0: it stands nowhere in the text
  std::size_t column = 0;  // from 1, in characters
  std::string file;        // the name that the text was given

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// In the order of the text. Empty only if there was no memory for a single one.
using Errors = std::vector<Diagnostic>;

// A value or why there is none. It is used like std::expected<T, Errors>, converts to it where
// the standard library has it, and is the same type in C++20 and C++23.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Errors errors) : state_(std::in_place_index<1>, std::move(errors)) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Only if there is a value.
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  // Only if there is none.
  [[nodiscard]] const Errors& error() const noexcept { return *std::get_if<1>(&state_); }

#ifdef __cpp_lib_expected
  operator std::expected<T, Errors>() const {
    if (has_value()) return **this;
    return std::unexpected(error());
  }
#endif

 private:
  std::variant<T, Errors> state_;
};

// ---- a manifest -----------------------------------------------------------------------------

struct ParseOptions {
  // For diagnostics. A name that ends in .json, .yaml or .yml says the syntax; else the first
  // character does.
  std::string name = "<manifest>";
};

struct ManifestState;

// What a manifest says of itself. A small handle: copies share what was read.
class CAPGATE_API Manifest {
 public:
  [[nodiscard]] const std::string& name() const noexcept;     // of the server
  [[nodiscard]] const std::string& version() const noexcept;  // of the server
  [[nodiscard]] const std::vector<std::string>& tools() const noexcept;
  // Names that stand in capabilities as ${NAME}: compile needs a value for each.
  [[nodiscard]] const std::vector<std::string>& variables() const noexcept;

 private:
  friend struct Access;
  explicit Manifest(std::shared_ptr<const ManifestState> state) : state_(std::move(state)) {}
  std::shared_ptr<const ManifestState> state_;
};

// JSON or YAML, with every mistake that can be found without the values of variables.
CAPGATE_API Expected<Manifest> parse(std::string_view text,
                                     const ParseOptions& options = {}) noexcept;

// ---- a policy -------------------------------------------------------------------------------

// A variable with several values stands for one capability each.
struct Variable {
  std::string name;
  std::vector<std::string> values;
};

struct CompileOptions {
  std::optional<std::string> tool = {};  // only serverCapabilities and this tool
  // HOME and XDG_RUNTIME_DIR are the caller's directories, whether the manifest uses them or not.
  std::vector<Variable> variables = {};
  bool seal = false;  // seal every env:inject
  // Assertion -> how the host verifies it. If given, an assertion that is not in it is an error.
  std::optional<std::map<std::string, std::string>> validators = {};
};

struct PolicyState;

// What the server may do: the exact union of what is declared. A small handle, as above.
class CAPGATE_API Policy {
 public:
  // "sha256:...", which changes exactly when `capabilities` does.
  [[nodiscard]] const std::string& hash() const noexcept;
  // In canonical form and order.
  [[nodiscard]] const std::vector<std::string>& capabilities() const noexcept;

 private:
  friend struct Access;
  explicit Policy(std::shared_ptr<const PolicyState> state) : state_(std::move(state)) {}
  std::shared_ptr<const PolicyState> state_;
};

CAPGATE_API Expected<Policy> compile(const Manifest& manifest,
                                     const CompileOptions& options = {}) noexcept;

// ---- an artifact ----------------------------------------------------------------------------

enum class Arch : unsigned char { x86_64, aarch64 };

struct LowerOptions {
  std::vector<std::string> programs = {};           // absolute paths that may start
  std::vector<std::string> accept_unenforced = {};  // lower although these cannot be enforced
  std::string user = "1000:1000";                   // containers: UID:GID inside
  bool writable_root = false;                       // containers: the root stays writable
  Arch arch = Arch::x86_64;                         // of the system call filter
  std::string image = {};                           // where the artifact names it
  std::vector<std::string> command = {};            // where the artifact holds it
  std::string broker_image = {};                    // compose, kubernetes: it holds capgate
  bool rootful = false;                             // podman: root's, not a user's own
  bool cilium = false;                              // kubernetes: with names in its policy
  std::string egress_dir = "/run/capgate";          // where `capgate egress` listens
  unsigned short egress_port = 3128;                // seatbelt: the same, on 127.0.0.1
  std::string egress_target = "spec";               // egress: spec, squid, nftables ...
  bool script = false;                              // seatbelt: with a launcher
  bool pretty = false;                              // indent the JSON
};

// What a target gets. Used exactly as printed, it is closed.
class Artifact {
 public:
  Artifact(std::string target, std::string json, std::vector<std::string> unenforced)
      : target_(std::move(target)), json_(std::move(json)), unenforced_(std::move(unenforced)) {}

  [[nodiscard]] const std::string& target() const noexcept { return target_; }
  // The bytes that `capgate compile` prints, with the line break at the end.
  [[nodiscard]] const std::string& json() const noexcept { return json_; }
  // Which of `accept_unenforced` the target does not enforce.
  [[nodiscard]] const std::vector<std::string>& unenforced() const noexcept { return unenforced_; }

 private:
  std::string target_;
  std::string json_;
  std::vector<std::string> unenforced_;
};

struct Target {
  std::string_view name;
  std::string_view summary;
};

// What `capgate compile` can make.
CAPGATE_API const std::vector<Target>& targets() noexcept;

CAPGATE_API Expected<Artifact> lower(const Policy& policy, std::string_view target,
                                     const LowerOptions& options = {}) noexcept;

// One for each target.
// clang-format off
inline Expected<Artifact> lower_to_apparmor(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "apparmor", options); }
inline Expected<Artifact> lower_to_bwrap(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "bwrap", options); }
inline Expected<Artifact> lower_to_compose(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "compose", options); }
inline Expected<Artifact> lower_to_docker(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "docker", options); }
inline Expected<Artifact> lower_to_egress(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "egress", options); }
inline Expected<Artifact> lower_to_firejail(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "firejail", options); }
inline Expected<Artifact> lower_to_kubernetes(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "kubernetes", options); }
inline Expected<Artifact> lower_to_landlock(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "landlock", options); }
inline Expected<Artifact> lower_to_oci(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "oci", options); }
inline Expected<Artifact> lower_to_plan(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "plan", options); }
inline Expected<Artifact> lower_to_podman(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "podman", options); }
inline Expected<Artifact> lower_to_seatbelt(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "seatbelt", options); }
inline Expected<Artifact> lower_to_seccomp(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "seccomp", options); }
inline Expected<Artifact> lower_to_systemd(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "systemd", options); }
inline Expected<Artifact> lower_to_worker(const Policy& policy, const LowerOptions& options = {}) noexcept { return lower(policy, "worker", options); }
// clang-format on

// "0.1.0", of the library that is linked.
CAPGATE_API std::string_view version() noexcept;

}  // namespace capgate::v0

// The sources of the library itself have other names in the namespace capgate.
#ifndef CAPGATE_BUILDING
namespace capgate {
using namespace v0;
}  // namespace capgate
#endif

#endif
