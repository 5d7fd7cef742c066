#include "sandbox/git_config.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace capgate::sandbox {
namespace {

// "section.key" or "section.*.key", in lower case: git compares these so.
constexpr std::string_view known_settings[] = {
    "branch.*.description",
    "branch.*.gh-merge-base",
    "branch.*.merge",
    "branch.*.pushremote",
    "branch.*.rebase",
    "branch.*.remote",
    "branch.*.vscode-merge-base",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.worktree",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "gc.auto",
    "index.sparse",
    "index.version",
    "lfs.repositoryformatversion",
    "pull.rebase",
    "remote.*.fetch",
    "remote.*.gh-resolved",
    "remote.*.mirror",
    "remote.*.partialclonefilter",
    "remote.*.promisor",
    "remote.*.pushurl",
    "remote.*.tagopt",
    "remote.*.url",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.*.url",
    "submodule.active",
    "user.email",
    "user.name",
};

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_alpha(c) || (c >= '0' && c <= '9') || c == '-'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// "helper::address" makes git run a program of that name.
bool names_a_helper(std::string_view setting, std::string_view value) {
  return (setting.ends_with("url")) && value.contains("::");
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    constexpr std::string_view mark = "\xef\xbb\xbf";
    if (text_.starts_with(mark)) at_ = mark.size();
  }

  std::optional<std::string> find_foreign() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_blank(c) || c == '\n' || c == '\r') {
        ++at_;
      } else if (c == '#' || c == ';') {
        skip_line();
      } else if (c == '[') {
        if (!read_section()) return unreadable();
      } else if (is_alpha(c)) {
        if (auto foreign = read_setting()) return foreign;
      } else {
        return unreadable();
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<std::string> unreadable() const {
    const auto line = std::ranges::count(text_.substr(0, at_), '\n') + 1;
    return format("line {}, which cannot be read", line);
  }

  [[nodiscard]] bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  void skip_line() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  std::string read_name() {
    std::string name;
    while (at_ < text_.size() && is_name(text_[at_])) name += lower(text_[at_++]);
    return name;
  }

  // [core], [remote "origin"]; the old form [remote.origin] is left to be read by nobody.
  bool read_section() {
    ++at_;
    section_ = read_name();
    has_part_ = false;
    if (section_.empty()) return false;
    if (is_at(']')) {
      ++at_;
      return true;
    }
    if (at_ >= text_.size() || !is_blank(text_[at_])) return false;
    skip_blanks();
    if (!is_at('"')) return false;
    has_part_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') return false;
      if (text_[at_] == '\\') ++at_;
    }
    if (!is_at('"')) return false;
    ++at_;
    if (!is_at(']')) return false;
    ++at_;
    return true;
  }

  std::optional<std::string> read_setting() {
    const std::string key = read_name();
    std::string setting = format("{}{}.{}", section_, has_part_ ? ".*" : "", key);
    skip_blanks();
    std::string value;
    if (is_at('=')) {
      ++at_;
      if (!read_value(value)) return unreadable();
    } else if (at_ < text_.size() && !is_at('\n') && !is_at('\r') && !is_at('#') && !is_at(';')) {
      return unreadable();
    }
    const bool is_known = !section_.empty() && std::ranges::binary_search(known_settings, setting);
    if (!is_known || names_a_helper(setting, value)) return setting;
    return std::nullopt;
  }

  // To the end of the line, or of the last line that a backslash continues.
  bool read_value(std::string& value) {
    bool is_quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') return !is_quoted;
      if (!is_quoted && (c == '#' || c == ';')) {
        skip_line();
        return true;
      }
      if (c == '"') {
        is_quoted = !is_quoted;
      } else if (c == '\\') {
        if (!read_escape(value)) return false;
      } else {
        value += c;
      }
    }
    return !is_quoted;
  }

  bool read_escape(std::string& value) {
    ++at_;
    if (is_at('\r')) ++at_;
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    if (c == '\n') return true;
    if (!std::string_view("\\\"ntb").contains(c)) return false;
    value += c;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string section_;
  bool has_part_ = false;
};

}  // namespace

std::optional<std::string> foreign_git_setting(std::string_view text) {
  if (text.contains('\0')) return "a NUL byte";
  return Reader(text).find_foreign();
}

}  // namespace capgate::sandbox
