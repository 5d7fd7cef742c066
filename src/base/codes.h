// Every diagnostic code, with its long form. The names are stable: programs match on them, and
// those of the earlier implementation keep their spelling.
//
//   code_name(Code::cap_fs_relative)          -> "CAP_FS_RELATIVE"
//   code_info(Code::cap_fs_relative).detail   -> what `capgate explain CAP_FS_RELATIVE` prints
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace capgate {

enum class Code {
  // The document itself (exit 3).
  doc_syntax,
  doc_encoding,
  doc_duplicate_key,
  doc_depth,
  doc_size,
  yaml_feature,
  // The shape of a manifest.
  manifest_shape,
  manifest_unknown_key,
  manifest_duplicate_tool,
  grammar_version_mismatch,
  grammar_feature,
  // Capability strings.
  cap_malformed,
  cap_unknown_kind,
  cap_actions_empty,
  cap_action_unknown,
  cap_refinement,
  cap_variable,
  cap_fs_shape,
  cap_fs_relative,
  cap_fs_path,
  cap_fs_glob,
  cap_scope_refused,
  cap_needs_unsafe,
  cap_net_shape,
  cap_net_host,
  cap_net_port,
  cap_exec_shape,
  cap_exec_path,
  cap_exec_name,
  cap_env_shape,
  cap_env_name,
  cap_env_unsealable,
  cap_ipc_shape,
  cap_ipc_endpoint,
  cap_clock_shape,
  cap_clock_source,
  cap_limit_shape,
  cap_limit_value,
  cap_assert_shape,
  // Policy and targets.
  policy_conflict,
  seal_ambiguous,
  seal_unusable,
  assert_unrecognized,
  validators_shape,
  // capgate.yaml.
  config_shape,
  config_unknown_key,
  config_sandbox,
  // What `capgate import` reads.
  import_format,
  import_version,
  import_shape,
  import_bundle,
  import_refused,
  // What was asked for.
  tool_unknown,
  adapter_unsupported,
  accept_unused,
};

struct CodeInfo {
  Code code;
  std::string_view name;     // CAP_FS_RELATIVE
  std::string_view summary;  // one line, no full stop
  std::string_view detail;   // a paragraph: what it means and why it is refused
  std::string_view wrong;    // an input that is refused with this code
  std::string_view right;    // what to write instead
};

[[nodiscard]] std::span<const CodeInfo> all_codes();
[[nodiscard]] const CodeInfo& code_info(Code code);
[[nodiscard]] std::string_view code_name(Code code);
[[nodiscard]] std::optional<Code> find_code(std::string_view name);

// True for a mistake in the text as a document (exit 3), false for one in what it says (exit 4).
[[nodiscard]] bool is_document_code(Code code);

}  // namespace capgate
