// What the parts of the lint share: the manifest's lines by what they say, and a place for
// findings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "review/lint.h"

namespace capgate::review::detail {

// One capability with all lines that declare it, whatever their spelling.
struct Line {
  const core::Capability* capability;
  std::string text;                  // canonical
  std::vector<std::uint32_t> where;  // indices into Manifest::declared, ascending
};

class Linter {
 public:
  explicit Linter(const LintInput& input);

  [[nodiscard]] const core::Manifest& manifest() const { return input_.manifest; }
  [[nodiscard]] const text::Document& document() const { return input_.document; }
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

  struct Remark {
    std::string_view rule;
    std::string message;
    std::string help;
    std::optional<Level> level = {};  // none: the rule's
  };
  // About a capability, whoever declares it.
  void about(const Line& line, Remark remark);
  // About one declaration.
  void about(std::uint32_t declared, Remark remark);
  // About a tool.
  void about_tool(std::uint32_t tool, Remark remark);
  // About the manifest as a whole.
  void about_all(Span where, Remark remark);

  [[nodiscard]] std::vector<Finding> take() &&;

 private:
  struct Place {
    Span where;
    std::string tool;
    std::string capability;
  };
  void add(Place place, Remark remark);

  const LintInput& input_;
  Source source_;
  std::vector<Line> lines_;
  std::vector<Finding> findings_;
};

// Below these lies what belongs to the system or to the sandbox itself, not to the user.
[[nodiscard]] bool is_system_path(std::string_view path);
[[nodiscard]] std::string shown(std::string_view capability);  // for a message

void lint_annotations(Linter& linter);
void lint_network(Linter& linter);
void lint_secrets(Linter& linter);
void lint_local(Linter& linter);
void lint_order(Linter& linter);

}  // namespace capgate::review::detail
