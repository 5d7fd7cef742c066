// What a target gets: the one shape that every lowering returns.
//
//   const Artifact artifact = TRY(lower_to_bwrap(input));
//   print_json(artifact, input, Style::pretty)   the document that `compile` prints
//   print_explanation(artifact, input, source)   which declaration caused which words of it
//
// An artifact used exactly as printed is closed. What a target cannot enforce is an error, unless
// the caller accepted that capability by name; it then stands in `unenforced`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "base/result.h"
#include "core/manifest.h"
#include "core/policy.h"
#include "core/validators.h"
#include "lower/plan.h"
#include "lower/seccomp.h"
#include "text/json_write.h"

namespace capgate::lower {

// Everything that the caller decides. Part of the provenance, because it changes the artifact.
struct Options {
  std::string home;                         // --set HOME; empty: not known
  std::string runtime_dir;                  // --set XDG_RUNTIME_DIR
  std::vector<std::string> programs;        // --program: absolute paths that stay visible
  std::vector<std::string> accepted;        // --accept-unenforced, canonical
  std::string tool;                         // --tool
  bool seal = false;                        // --seal
  std::string user = "1000:1000";           // --user, for docker
  bool writable_root = false;               // --writable-root, for docker
  std::string image;                        // --image, where the artifact names it
  std::string broker_image;                 // --broker-image, for compose, kubernetes
  bool rootful = false;                     // --rootful, for podman
  bool cilium = false;                      // --network-policy cilium, for kubernetes
  std::vector<std::string> command;         // what follows --, where the artifact holds it
  std::string egress_target = "spec";       // --egress-target, for egress
  std::string egress_dir = "/run/capgate";  // --egress-dir: where `capgate egress` listens
  std::uint16_t egress_port = 3128;         // --egress-port, for seatbelt
  bool script = false;                      // --script, for seatbelt
  Arch arch = Arch::x86_64;                 // --arch, for the system call filter
  core::Validators validators;              // --validators
};

// What is lowered. The policy comes from the manifest; its origins point into it.
struct Input {
  const core::Manifest& manifest;
  const core::Policy& policy;
  const Options& options;
  const Source* source = nullptr;  // of the manifest, for the positions in a Plan
};

// Why some words of an artifact are there: a capability with its origins, or a fixed reason.
struct Cause {
  std::string_view reason;                 // empty when a capability is the cause
  const core::Origins* origins = nullptr;  // of the policy that was lowered
};

// Words of argv that belong together: one option with its values.
struct Line {
  std::size_t first = 0;  // index of the first word in argv; the line ends where the next begins
  Cause cause;
};

// A descriptor that the launcher must pass to the program.
struct Descriptor {
  unsigned fd = 0;
  std::string_view purpose;
  std::string_view base64;         // its contents; empty: only the launcher knows them
  std::vector<std::string> names;  // then: the variables whose values it must hold
};

// A file of an artifact, for targets that are no command line. Each line knows its cause, where the
// format has lines that belong to one grant.
struct File {
  std::string_view name;  // without a directory
  std::string contents;
  std::vector<Line> lines = {};  // `first` is an offset in the contents
  bool executable = false;
  bool binary = false;  // printed as base64
};

// Texts that a lowering made, for views of them: they stay where they are when the store moves. It
// cannot be copied, since the views of a copy would still be those of the original.
class TextStore {
 public:
  TextStore() = default;
  TextStore(const TextStore&) = delete;
  TextStore& operator=(const TextStore&) = delete;
  TextStore(TextStore&&) = default;
  TextStore& operator=(TextStore&&) = default;
  ~TextStore() = default;

  [[nodiscard]] std::string_view keep(std::string_view text);

 private:
  std::vector<std::string> blocks_;  // never filled beyond what was reserved
};

// Its views are of constants, of the input that was lowered, or of `texts`: most words of most
// artifacts are the same, and a copy of each would cost more than all of the rest.
struct Artifact {
  std::string_view target;
  std::vector<std::string_view> argv;
  std::vector<Line> lines;
  std::vector<std::string_view> command_prefix;  // between the image and the command, for docker
  std::vector<File> files;                       // besides argv, or instead of it
  std::optional<Plan> plan;                      // for our own engine, instead of argv
  std::vector<Descriptor> fds;
  std::vector<std::string> env_injections;
  std::vector<std::string> notes;
  std::vector<std::string> unenforced;
  std::vector<std::string> not_covered;
  TextStore texts;
};

// Whether files are printed whole, or were written elsewhere and are named with their hash.
enum class FilesAs : unsigned char { contents, hashes };

[[nodiscard]] std::string print_json(const Artifact& artifact, const Input& input,
                                     text::JsonWriter::Style style,
                                     FilesAs files = FilesAs::contents);

// For people: each line of the artifact with the capability, the place and the tool that caused it.
[[nodiscard]] std::string print_explanation(const Artifact& artifact, const Input& input,
                                            const Source& source);

[[nodiscard]] std::string_view arch_name(Arch arch);

}  // namespace capgate::lower
