// A reader of Seatbelt profiles, for the whole grammar that we emit and nothing more, and an
// evaluator: the last rule that matches an operation decides.
//
//   const auto profile = sbpl::read(text, {{"FS_1", "/w"}});
//   profile->allows("file-read-data", {{"path", "/w/x"}})
//
// What it does not know is a mistake: an operation, a filter, a parameter, an escape.
#pragma once

#include <algorithm>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capgate::sbpl {

using Parameters = std::map<std::string, std::string, std::less<>>;
using Attributes = std::map<std::string, std::string, std::less<>>;
template <typename T>
using Read = std::expected<T, std::string>;

// ---- Expressions -----------------------------------------------------------------------------

struct Expression {
  enum class Kind : unsigned char { list, symbol, string };
  Kind kind = Kind::list;
  std::string text = {};
  std::vector<Expression> items = {};

  [[nodiscard]] bool is_list(std::string_view head) const {
    return kind == Kind::list && !items.empty() && items[0].kind == Kind::symbol &&
           items[0].text == head;
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Read<std::vector<Expression>> all() {
    std::vector<Expression> out;
    for (skip(); at_ < text_.size(); skip()) {
      auto next = expression();
      if (!next) return std::unexpected(next.error());
      out.push_back(*std::move(next));
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  Read<Expression> expression() {
    if (text_[at_] == '(') return list();
    if (text_[at_] == '"') return string();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_symbol(text_[at_])) ++at_;
    if (at_ == begin) return std::unexpected("unexpected character");
    return Expression{.kind = Expression::Kind::symbol,
                      .text = std::string(text_.substr(begin, at_ - begin))};
  }

  static bool is_symbol(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '*';
  }

  Read<Expression> list() {
    Expression out;
    for (++at_, skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      auto item = expression();
      if (!item) return item;
      out.items.push_back(*std::move(item));
    }
    if (at_ == text_.size()) return std::unexpected("a list does not end");
    ++at_;
    return out;
  }

  Read<Expression> string() {
    Expression out{.kind = Expression::Kind::string};
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return std::unexpected("control");
      if (text_[at_] == '\\') {
        ++at_;
        if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\\')) {
          return std::unexpected("unknown escape");
        }
      }
      out.text += text_[at_];
    }
    if (at_ == text_.size()) return std::unexpected("a string does not end");
    ++at_;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// ---- Regular expressions ---------------------------------------------------------------------

// ^...$ of characters, \escapes, [classes], each with * or + or not, and at the end (/.*)?.
class Regex {
 public:
  static Read<Regex> read(std::string_view text) {
    if (text.size() < 2 || !text.starts_with('^') || !text.ends_with('$')) {
      return std::unexpected("not anchored");
    }
    text = text.substr(1, text.size() - 2);
    Regex out;
    constexpr std::string_view below = "(/.*)?";
    if (text.ends_with(below)) {
      out.below_ = true;
      text.remove_suffix(below.size());
    }
    while (!text.empty()) {
      auto atom = take_atom(text);
      if (!atom) return std::unexpected(atom.error());
      out.atoms_.push_back(*std::move(atom));
    }
    return out;
  }

  [[nodiscard]] bool matches(std::string_view text) const { return matches_from(0, text); }

 private:
  struct Atom {
    std::string characters;
    bool negated = false;
    std::size_t least = 1;
    bool repeats = false;
    std::string not_first = {};  // characters that a match does not begin with
    [[nodiscard]] bool has(char c) const { return characters.contains(c) != negated; }
  };

  static Read<void> take_class(Atom& atom, std::string_view& text) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::unexpected("a class does not end");
    std::string_view inside = text.substr(1, end - 1);
    atom.negated = inside.starts_with('^');
    if (atom.negated) inside.remove_prefix(1);
    if (inside == "0-9") inside = "0123456789";
    if (inside.empty() || inside.find_first_of("[\\-^") != std::string_view::npos) {
      return std::unexpected("unknown class");
    }
    atom.characters = inside;
    text.remove_prefix(end + 1);
    return {};
  }

  static Read<Atom> take_atom(std::string_view& text) {
    Atom out;
    // The beginning of a name that is not hidden.
    constexpr std::string_view visible = "([^/.][^/]*)?";
    if (text.starts_with(visible)) {
      text.remove_prefix(visible.size());
      return Atom{
          .characters = "/", .negated = true, .least = 0, .repeats = true, .not_first = "."};
    }
    if (text.starts_with('[')) {
      if (const auto taken = take_class(out, text); !taken) return std::unexpected(taken.error());
    } else {
      if (text.starts_with('\\')) {
        text.remove_prefix(1);
        if (text.empty()) return std::unexpected("an escape does not end");
      } else if (std::string_view("^$.|?*+()]{}").contains(text.front())) {
        return std::unexpected("an operator that we do not emit");
      }
      out.characters = text.front();
      text.remove_prefix(1);
    }
    if (text.starts_with('*') || text.starts_with('+')) {
      out.repeats = true;
      out.least = text.front() == '+' ? 1 : 0;
      text.remove_prefix(1);
    }
    return out;
  }

  [[nodiscard]] bool matches_from(std::size_t atom, std::string_view text) const {
    if (atom == atoms_.size()) return text.empty() || (below_ && text.starts_with('/'));
    const Atom& now = atoms_[atom];
    std::size_t longest = 0;
    const bool is_barred = !text.empty() && now.not_first.contains(text.front());
    while (!is_barred && longest < text.size() && now.has(text[longest])) {
      if (++longest == 1 && !now.repeats) break;
    }
    for (std::size_t count = now.least; count <= longest; ++count) {
      if (matches_from(atom + 1, text.substr(count))) return true;
    }
    return false;
  }

  std::vector<Atom> atoms_;
  bool below_ = false;
};

// ---- Rules -----------------------------------------------------------------------------------

struct Filter {
  enum class Match : unsigned char { equal, subpath, prefix, regex, all };
  std::string kind;  // the attribute that it looks at
  Match match = Match::equal;
  std::string value = {};
  std::vector<Regex> regex = {};      // one, for regex
  std::vector<Filter> together = {};  // for require-all

  [[nodiscard]] bool matches(const Attributes& attributes) const {
    if (match == Match::all) {
      return std::ranges::all_of(together, [&](const Filter& f) { return f.matches(attributes); });
    }
    const auto found = attributes.find(kind);
    if (found == attributes.end()) return false;
    const std::string& text = found->second;
    switch (match) {
      case Match::equal: return text == value;
      case Match::prefix: return text.starts_with(value);
      case Match::subpath:
        return text == value || (text.starts_with(value) && text[value.size()] == '/');
      case Match::regex: return regex[0].matches(text);
      case Match::all: break;
    }
    return false;
  }
};

struct Rule {
  bool allow = false;
  std::vector<std::string> operations = {};
  std::vector<Filter> filters = {};  // any of them; none: always

  [[nodiscard]] bool matches(std::string_view operation, const Attributes& attributes) const {
    const bool named = std::ranges::any_of(operations, [&](std::string_view name) {
      if (name == "default" || name == operation) return true;
      return name.ends_with('*') && operation.starts_with(name.substr(0, name.size() - 1));
    });
    if (!named) return false;
    return filters.empty() || std::ranges::any_of(filters, [&](const Filter& filter) {
             return filter.matches(attributes);
           });
  }
};

struct Profile {
  std::vector<Rule> rules;

  [[nodiscard]] bool allows(std::string_view operation, const Attributes& attributes) const {
    bool allowed = false;
    for (const Rule& rule : rules) {
      if (rule.matches(operation, attributes)) allowed = rule.allow;
    }
    return allowed;
  }
};

inline constexpr std::string_view known_operations[] = {"default",
                                                        "file-ioctl",
                                                        "file-map-executable",
                                                        "file-read*",
                                                        "file-read-metadata",
                                                        "file-test-existence",
                                                        "file-write*",
                                                        "file-write-create",
                                                        "file-write-data",
                                                        "file-write-mode",
                                                        "file-write-times",
                                                        "file-write-unlink",
                                                        "file-write-xattr",
                                                        "iokit-open",
                                                        "ipc-posix-sem",
                                                        "ipc-posix-shm-read-data",
                                                        "ipc-posix-shm-write-create",
                                                        "ipc-posix-shm-write-unlink",
                                                        "mach-lookup",
                                                        "network-bind",
                                                        "network-inbound",
                                                        "network-outbound",
                                                        "process-exec*",
                                                        "process-fork",
                                                        "process-info*",
                                                        "signal",
                                                        "sysctl-read",
                                                        "sysctl-write",
                                                        "system-socket"};

class Compiler {
 public:
  explicit Compiler(const Parameters& parameters) : parameters_(parameters) {}

  [[nodiscard]] Read<Profile> compile(const std::vector<Expression>& all) const {
    if (all.size() < 2 || !all[0].is_list("version") || all[0].items.size() != 2 ||
        all[0].items[1].text != "1") {
      return std::unexpected("no (version 1)");
    }
    if (!all[1].is_list("deny") || all[1].items.size() != 2 || all[1].items[1].text != "default") {
      return std::unexpected("no (deny default)");
    }
    Profile out;
    for (std::size_t i = 1; i < all.size(); ++i) {
      auto next = rule(all[i]);
      if (!next) return std::unexpected(next.error());
      if (i > 1 && next->operations[0] == "default") return std::unexpected("a second default");
      out.rules.push_back(*std::move(next));
    }
    return out;
  }

 private:
  [[nodiscard]] Read<Rule> rule(const Expression& list) const {
    Rule out{.allow = list.is_list("allow")};
    if (!out.allow && !list.is_list("deny")) return std::unexpected("neither allow nor deny");
    std::size_t next = 1;
    for (; next < list.items.size() && list.items[next].kind == Expression::Kind::symbol; ++next) {
      out.operations.push_back(list.items[next].text);
      if (std::ranges::find(known_operations, out.operations.back()) ==
          std::end(known_operations)) {
        return std::unexpected("unknown operation " + out.operations.back());
      }
    }
    if (out.operations.empty()) return std::unexpected("a rule without operation");
    for (; next < list.items.size(); ++next) {
      // require-not inside deny makes some versions of sandbox-exec abort; we emit it nowhere.
      auto one = filter(list.items[next], "path");
      if (!one) return std::unexpected(one.error());
      out.filters.push_back(*std::move(one));
    }
    return out;
  }

  // `path` is what literal, subpath and regex look at; inside unix-socket it is another.
  [[nodiscard]] Read<Filter> filter(const Expression& list, const std::string& path) const {
    if (list.kind != Expression::Kind::list || list.items.size() < 2) {
      return std::unexpected("not a filter");
    }
    const std::string& head = list.items[0].text;
    if (head == "require-all") return require_all(list, path);
    if (head == "remote" || head == "local") return endpoint(list, head);
    if (list.items.size() != 2) return std::unexpected(head + " takes one value");
    if (head == "target" || head == "vnode-type" || head == "socket-domain") {
      if (list.items[1].kind != Expression::Kind::symbol) return std::unexpected("not a name");
      return Filter{.kind = head, .value = list.items[1].text};
    }
    const auto value = text(list.items[1]);
    if (!value) return std::unexpected(value.error());
    return text_filter(head, path, *value);
  }

  static Read<Filter> text_filter(const std::string& head, const std::string& path,
                                  const std::string& value) {
    using Match = Filter::Match;
    if (head == "literal") return Filter{.kind = path, .value = value};
    if (head == "subpath") {
      if (!value.starts_with('/') || value.ends_with('/')) return std::unexpected("odd subpath");
      return Filter{.kind = path, .match = Match::subpath, .value = value};
    }
    if (head == "regex" || head == "ipc-posix-name-regex") {
      auto expression = Regex::read(value);
      if (!expression) return std::unexpected(expression.error() + ": " + value);
      return Filter{.kind = head == "regex" ? path : "ipc-posix-name",
                    .match = Match::regex,
                    .regex = {*std::move(expression)}};
    }
    if (head == "sysctl-name-prefix") {
      return Filter{.kind = "sysctl-name", .match = Match::prefix, .value = value};
    }
    if (head == "global-name" || head == "sysctl-name" || head == "iokit-registry-entry-class") {
      return Filter{.kind = head, .value = value};
    }
    return std::unexpected("unknown filter " + head);
  }

  [[nodiscard]] Read<Filter> require_all(const Expression& list, const std::string& path) const {
    Filter out{.kind = {}, .match = Filter::Match::all};
    for (std::size_t i = 1; i < list.items.size(); ++i) {
      auto one = filter(list.items[i], path);
      if (!one) return one;
      out.together.push_back(*std::move(one));
    }
    return out;
  }

  // (remote ip "localhost:1"), (remote unix-socket (literal ...)), and the same of local.
  [[nodiscard]] Read<Filter> endpoint(const Expression& list, const std::string& side) const {
    if (list.items.size() != 3) return std::unexpected("odd endpoint");
    if (list.items[1].text == "unix-socket") return filter(list.items[2], side + "-unix");
    const std::string& value = list.items[2].text;
    if (list.items[1].text != "ip" || list.items[2].kind != Expression::Kind::string ||
        !value.starts_with("localhost:") || value.ends_with('*')) {
      return std::unexpected("not an address of this machine: " + value);
    }
    return Filter{.kind = side + "-ip", .value = value};
  }

  [[nodiscard]] Read<std::string> text(const Expression& value) const {
    if (value.kind == Expression::Kind::string) return value.text;
    if (value.is_list("param") && value.items.size() == 2) {
      const auto found = parameters_.find(value.items[1].text);
      if (found == parameters_.end()) return std::unexpected("no -D" + value.items[1].text);
      return found->second;
    }
    if (value.is_list("string-append") && value.items.size() == 3) {
      auto first = text(value.items[1]);
      const auto second = text(value.items[2]);
      if (!first || !second) return first ? second : first;
      return *first + *second;
    }
    return std::unexpected("not a text");
  }

  const Parameters& parameters_;
};

inline Read<Profile> read(std::string_view text, const Parameters& parameters) {
  const auto expressions = Reader(text).all();
  if (!expressions) return std::unexpected(expressions.error());
  return Compiler(parameters).compile(*expressions);
}

}  // namespace capgate::sbpl
