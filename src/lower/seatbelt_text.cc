#include "lower/seatbelt_text.h"

#include "base/text.h"
#include "core/path.h"

namespace capgate::lower::seatbelt {
namespace {

constexpr std::string_view links_at_root[] = {"/etc", "/tmp", "/var"};
constexpr std::string_view behind_links = "/private";

void append_escaped(std::string& out, char c) {
  if (std::string_view("\\^$.|?*+()[]{}").contains(c)) out += '\\';
  out += c;
}

}  // namespace

std::string canonical_path(std::string_view path) {
  for (const std::string_view link : links_at_root) {
    if (core::is_at_or_below(path, link)) return std::string(behind_links).append(path);
  }
  return std::string(path);
}

std::string_view short_spelling(std::string_view path) {
  if (!path.starts_with(behind_links)) return path;
  const std::string_view rest = path.substr(behind_links.size());
  for (const std::string_view link : links_at_root) {
    if (core::is_at_or_below(rest, link)) return rest;
  }
  return path;
}

std::vector<std::string> ancestors_of(std::string_view path) {
  std::vector<std::string> out;
  for (std::size_t end = path.find('/', 1); end != std::string_view::npos;
       end = path.find('/', end + 1)) {
    out.emplace_back(path.substr(0, end));
  }
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string escape_regex(std::string_view text) {
  std::string out;
  for (const char c : text) append_escaped(out, c);
  return out;
}

std::string escape_regex_any_case(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_alpha(c)) {
      append_escaped(out, c);
      continue;
    }
    const char lower = to_lower(c);
    out += '[';
    out += lower;
    out += static_cast<char>(lower - 'a' + 'A');
    out += ']';
  }
  return out;
}

std::string entries_regex(std::string_view base, std::string_view glob) {
  std::string out = "^";
  if (base != "/") out += escape_regex(base);
  out += '/';
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    if (c == '*') {
      // At the start it matches no hidden file, as in a shell.
      const bool may_be_empty = glob.size() > 1 && glob[1] != '.';
      out += i > 0 ? "[^/]*" : may_be_empty ? "([^/.][^/]*)?" : "[^/.][^/]*";
    } else {
      append_escaped(out, c);
    }
  }
  return out + "(/.*)?$";
}

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

}  // namespace capgate::lower::seatbelt
