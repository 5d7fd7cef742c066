#include "core/path.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/text.h"

namespace capgate::core {
namespace {

constexpr std::size_t longest_path = 4095;  // PATH_MAX without its NUL
constexpr std::size_t longest_name = 255;   // NAME_MAX

// White space at the end of the last component that counts: "/a /./" is "/a ".
std::optional<std::size_t> find_last_blank(std::string_view text) {
  while (text.ends_with('/') || text.ends_with("/.")) text.remove_suffix(1);
  if (text.empty() || !is_space(text.back())) return {};
  return text.size() - 1;
}

Result<void> check_characters(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text[i])) {
      return fail(Code::cap_fs_path, Span::at(i, i + 1), "control character in a path",
                  "name the path without it; such names are refused");
    }
  }
  if (const auto blank = find_last_blank(text)) {
    return fail(Code::cap_fs_path, Span::at(*blank, *blank + 1), "the path ends with white space",
                "remove it");
  }
  if (const std::size_t at = find_any(text, "[]{}"); at != std::string_view::npos) {
    return fail(Code::cap_fs_glob, Span::at(at, at + 1),
                "brackets and braces are not supported in paths",
                "write one capability for each path; only '*' in the last component is a glob");
  }
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '$' && (is_alpha(text[i + 1]) || text[i + 1] == '_')) {
      return fail(Code::cap_variable, Span::at(i, text.size()), "variables are written with braces",
                  "write ${NAME} and bind it with --set NAME=VALUE");
    }
  }
  return {};
}

// One component of the text: checked, and told whether it counts ("." and "" do not).
Result<bool> check_component(std::string_view component, std::size_t offset) {
  if (component.empty() || component == ".") return false;
  if (component == "..") {
    return fail(Code::cap_fs_path, Span::at(offset, offset + 2), "'..' in a path",
                "write the path that is meant, without '..'");
  }
  if (component.size() > longest_name) {
    return fail(Code::cap_fs_path, Span::at(offset, offset + component.size()),
                format("a name longer than {} bytes", longest_name), "no file can have this name");
  }
  return true;
}

std::unexpected<Diagnostic> misplaced_glob(std::string_view component, std::size_t offset) {
  return fail(Code::cap_fs_glob, Span::at(offset, offset + component.size()),
              format("a glob may only be the last component, not {}", quoted(component)),
              "grant the directory with /**, or name direct entries such as /dir/*.md");
}

// Sorts the last component, which holds a '*', into its shape.
Result<PathPattern> finish_glob(PathPattern path, std::string_view last, std::size_t offset) {
  if (last == "**") {
    path.shape = PathPattern::Shape::tree;
    return path;
  }
  if (last.contains("**")) {
    return fail(Code::cap_fs_glob, Span::at(offset, offset + last.size()),
                "'**' must be a component of its own", "write /dir/** or /dir/*.ext");
  }
  path.shape = PathPattern::Shape::entries;
  path.glob = last;
  return path;
}

}  // namespace

Result<PathPattern> parse_path(std::string_view text) {
  if (!text.starts_with('/')) {
    return fail(Code::cap_fs_relative, Span::at(0, text.size()), "path is not absolute",
                "write the path as the server sees it, for example /workspace/**");
  }
  TRY(check_characters(text));
  if (text.size() > longest_path) {
    return fail(Code::cap_fs_path, Span::at(0, text.size()),
                format("the path is longer than {} bytes", longest_path), "shorten it");
  }

  PathPattern path;
  path.base.reserve(text.size());
  std::string_view glob;
  std::size_t glob_offset = 0;
  for (std::size_t begin = 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view component = text.substr(begin, end - begin);
    if (TRY(check_component(component, begin))) {
      if (!glob.empty()) return misplaced_glob(glob, glob_offset);
      if (component.contains('*')) {
        glob = component;
        glob_offset = begin;
      } else {
        path.base += '/';
        path.base += component;
      }
    }
    begin = end + 1;
  }
  if (path.base.empty()) path.base = "/";
  if (!glob.empty()) return finish_glob(std::move(path), glob, glob_offset);
  return path;
}

Result<std::string> parse_plain_path(std::string_view text) {
  PathPattern path = TRY(parse_path(text));
  if (path.shape != PathPattern::Shape::node) {
    return fail(Code::cap_fs_glob, Span::at(0, text.size()), "a glob cannot stand here",
                "name the one path that is meant");
  }
  return std::move(path.base);
}

std::string print(const PathPattern& path) {
  const std::string_view base = path.base == "/" ? std::string_view() : path.base;
  switch (path.shape) {
    case PathPattern::Shape::node: return path.base;
    case PathPattern::Shape::tree: return std::string(base) + "/**";
    case PathPattern::Shape::entries: return (std::string(base) + '/') + path.glob;
  }
  return {};
}

bool is_at_or_below(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return true;
  if (!path.starts_with(ancestor)) return false;
  return path.size() == ancestor.size() || path[ancestor.size()] == '/';
}

std::strong_ordering compare_as_tree(std::string_view a, std::string_view b) {
  constexpr std::size_t word_size = 8;
  // Paths of one policy begin alike: whole words first.
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same + word_size <= shorter &&
         std::memcmp(a.data() + same, b.data() + same, word_size) == 0)
    same += word_size;
  while (same < shorter && a[same] == b[same]) ++same;
  if (same == shorter) return a.size() <=> b.size();
  // A '/' ends a component, so it sorts before every character that would go on with it.
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return rank(a[same]) <=> rank(b[same]);
}

bool matches_glob(std::string_view name, std::string_view glob) {
  // Greedy with one point to go back to: linear in practice, at most name * glob steps.
  std::size_t n = 0;
  std::size_t g = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = n;
    } else if (g < glob.size() && glob[g] == name[n]) {
      ++g;
      ++n;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

bool matches_entry(std::string_view name, std::string_view glob) {
  if (name.starts_with('.') && !glob.starts_with('.')) return false;
  return matches_glob(name, glob);
}

}  // namespace capgate::core
