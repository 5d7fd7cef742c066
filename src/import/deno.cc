#include "import/deno.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "import/deno_permissions.h"
#include "import/rules.h"
#include "import/shell_words.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Member;
using text::Value;

using deno::Entry;
using deno::kind_names;
using deno::Permission;
using deno::Permissions;

// ---- deno.json ----------------------------------------------------------------------------------

void read_list(Rules& in, Value list, std::string_view kind, std::vector<Entry>& out) {
  for (const Value element : list.elements()) {
    if (element.is(Kind::string) && !element.text().empty() &&
        std::ranges::none_of(element.text(), is_control)) {
      out.push_back({.text = std::string(element.text()), .where = whole(element)});
    } else {
      in.complain(element.span(), format("{} is a list of texts", kind), "write [\"...\"]");
    }
  }
}

// true, false, or a list.
void read_value(Rules& in, Value value, std::string_view kind, std::optional<Span>& all,
                std::vector<Entry>& list) {
  if (value.is(Kind::array)) {
    read_list(in, value, kind, list);
  } else if (value.is(Kind::boolean)) {
    if (value.text() == "true") all = value.span();
  } else if (!value.is(Kind::null)) {
    in.complain(value.span(), format("{} is true, false, or a list", kind), "write [\"...\"]");
  }
}

void read_set(Permissions& out, Value set) {
  std::vector<std::string_view> known(kind_names.begin(), kind_names.end());
  known.emplace_back("all");
  out.in().check_keys(set, known, "a set of permissions");
  if (out.in().flag(set, "all")) out.refuse_all(set.find("all")->span());
  for (const std::string_view kind : kind_names) {
    const auto value = set.find(kind);
    if (!value) continue;
    Permission& permission = out[kind];
    if (!value->is(Kind::object)) {
      read_value(out.in(), *value, kind, permission.all, permission.allow);
      continue;
    }
    constexpr std::string_view keys[] = {"allow", "deny", "ignore"};
    out.in().check_keys(*value, keys, kind);
    const auto part = [&](std::string_view key, std::optional<Span>& all,
                          std::vector<Entry>& list) {
      if (const auto found = value->find(key)) read_value(out.in(), *found, kind, all, list);
    };
    part("allow", permission.all, permission.allow);
    part("deny", permission.none, permission.deny);
    part("ignore", permission.none, permission.deny);
  }
}

// ---- flags --------------------------------------------------------------------------------------

struct Short {
  char letter;
  std::string_view kind;
};
constexpr std::array<Short, 7> shorts = {{{'R', "read"},
                                          {'W', "write"},
                                          {'N', "net"},
                                          {'E', "env"},
                                          {'S', "sys"},
                                          {'I', "import"},
                                          {'A', ""}}};
constexpr std::array<std::string_view, 4> commands = {"run", "serve", "test", "bench"};
// Neither grant nor restrict anything that a manifest speaks of. The second list takes the next
// word as its value where it has none of its own.
constexpr std::array<std::string_view, 14> plain_flags = {
    "--no-prompt",   "--quiet",     "-q",          "--no-check",        "--check",
    "--cached-only", "--no-lock",   "--frozen",    "--reload",          "-r",
    "--no-npm",      "--no-config", "--no-remote", "--node-modules-dir"};
constexpr std::array<std::string_view, 6> valued_flags = {"--config", "-c",         "--import-map",
                                                          "--lock",   "--location", "--cert"};

class Flags {
 public:
  Flags(Permissions& out, std::vector<Word> words) : out_(out), words_(std::move(words)) {}

  void read() {
    std::size_t at = 0;
    while (at < words_.size() && !is_deno(words_[at].text)) ++at;
    if (at == words_.size()) {
      return out_.in().complain(Span::at(0, 0), "there is no deno in it", "write deno run ...");
    }
    std::vector<std::string> command;
    for (std::size_t i = at; i < words_.size(); ++i) command.push_back(words_[i].text);
    if (std::ranges::none_of(command, [](const std::string& word) {
          return std::ranges::any_of(word, is_control);
        })) {
      out_.in().out().command(std::move(command));
    }
    for (at += 1; at < words_.size(); ++at) {
      const Word& word = words_[at];
      if (word.text == "--" || (!word.text.starts_with('-') && !contains(commands, word.text))) {
        return;  // the program, and its own words
      }
      if (!word.text.starts_with('-')) continue;
      if (contains(valued_flags, word.text)) {
        ++at;
        continue;
      }
      read_flag(word);
    }
  }

 private:
  static bool is_deno(std::string_view word) {
    return word.substr(word.find_last_of('/') + 1) == "deno";
  }

  void read_flag(const Word& word) {
    const std::size_t equals = word.text.find('=');
    const std::string_view name = std::string_view(word.text).substr(0, equals);
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : std::optional(std::string_view(word.text).substr(equals + 1));
    if (name.starts_with("--allow-") || name.starts_with("--deny-") ||
        name.starts_with("--ignore-")) {
      return read_permission(name, value, word);
    }
    if (!name.starts_with("--")) return read_short(name, value, word);
    if (name == "--permission-set") return refuse_set(word);
    if (name == "--env-file" || name == "--env") {
      out_.in().out().dropped("--env-file",
                              "the variables of that file are not known: none is granted; "
                              "add env:read:NAME");
      return;
    }
    const bool harmless = contains(plain_flags, name) || contains(valued_flags, name) ||
                          name.starts_with("--unstable");
    if (!harmless) unknown(word);
  }

  void unknown(const Word& word) {
    out_.in().complain(word.where, format("the flag {} is not known", quoted(word.text)),
                       "it may grant or restrict something: remove it if it does neither");
  }

  void refuse_set(const Word& word) {
    out_.in().complain(word.where, "the set of permissions stands in deno.json",
                       "import that file, with --server NAME for the set");
  }

  void read_short(std::string_view name, std::optional<std::string_view> value, const Word& word) {
    if (name.starts_with("-P")) return refuse_set(word);
    if (contains(plain_flags, name) || contains(valued_flags, name)) return;
    for (std::size_t i = 1; i < name.size(); ++i) {
      const auto* known = std::ranges::find(shorts, name[i], &Short::letter);
      if (known == shorts.end()) return unknown(word);
      // The value is the last letter's.
      const auto own = i + 1 == name.size() ? value : std::nullopt;
      if (known->kind.empty()) {
        out_.refuse_all(word.where);
      } else {
        take(out_[known->kind].all, out_[known->kind].allow, own, word);
      }
    }
    if (name.size() < 2) unknown(word);
  }

  void read_permission(std::string_view name, std::optional<std::string_view> value,
                       const Word& word) {
    const bool allows = name.starts_with("--allow-");
    const std::string_view kind = name.substr(name.find('-', 2) + 1);
    if (kind == "all" && allows) return out_.refuse_all(word.where);
    if (!contains(kind_names, kind)) {
      if (kind != "hrtime" && kind != "scripts") return unknown(word);
      out_.in().out().dropped(name, "there is no such capability");
      return;
    }
    Permission& permission = out_[kind];
    if (allows) {
      take(permission.all, permission.allow, value, word);
    } else {
      take(permission.none, permission.deny, value, word);
    }
  }

  void take(std::optional<Span>& all, std::vector<Entry>& list,
            std::optional<std::string_view> value, const Word& word) {
    if (!value) {
      all = word.where;
      return;
    }
    for (const std::string_view part : split(*value, ',')) {
      if (part.empty() || std::ranges::any_of(part, is_control)) {
        out_.in().complain(word.where, "a list has an empty part, or a control character",
                           "write --allow-read=PATH,PATH");
        return;
      }
      list.push_back({.text = std::string(part), .where = word.where});
    }
  }

  Permissions& out_;
  std::vector<Word> words_;
};

// The first line of a script, without "#!"; else the whole text.
std::string_view command_of(std::string_view text) {
  return text.starts_with("#!") ? text.substr(0, text.find('\n')) : text;
}

}  // namespace

// A command is a text without structure for YAML, too.
bool is_deno(const text::Document& document) {
  const Value root = document.root();
  if (root.is(Kind::string) || root.is(Kind::null)) return is_deno_command(document.source());
  if (!has_member(root, "permissions", Kind::object)) return false;
  const Value sets = *root.find("permissions");
  for (const Member set : sets.members()) {
    if (!set.value.is(Kind::object)) return false;
    for (const Member kind : set.value.members()) {
      if (!contains(kind_names, kind.key.text()) && kind.key.text() != "all") return false;
    }
  }
  return sets.count() > 0;
}

Checked<Imported> read_deno(const text::Document& document, const ImportPlace& place) {
  const Value root = document.root();
  if (root.is(Kind::string) || root.is(Kind::null)) {
    return read_deno_command(document.source(), place);
  }
  Permissions out(place);
  const auto sets =
      root.is(Kind::object) ? out.in().member(root, "permissions", Kind::object) : std::nullopt;
  if (!sets) {
    out.in().complain(Span::at(root.span().begin, root.span().begin), "permissions is missing",
                      "import a deno.json with sets of permissions, or a command");
    return std::move(out).finish();
  }
  out.in().out().name(out.in().text(root, "name"));
  out.in().out().version(out.in().text(root, "version"));
  const auto fallback = place.server.empty() ? sets->find("default") : std::nullopt;
  std::optional<Value> set = fallback;
  if (!set) {
    const auto chosen = out.in().choose(*sets, "set of permissions");
    if (chosen) set = chosen->value;
  } else if (sets->count() > 1) {
    out.in().out().assumed("permissions",
                           "the set default is taken; --server NAME takes another one");
  }
  if (set && set->is(Kind::object)) {
    read_set(out, *set);
  } else if (set) {
    out.in().complain(set->span(), "a set of permissions is a mapping", "write {\"net\": [...]}");
  }
  return std::move(out).finish();
}

bool is_deno_command(std::string_view text) {
  const std::string_view line = trim(command_of(text));
  if (line.empty() || line.starts_with('{') || line.starts_with('[')) return false;
  const auto words = cut_words(line.starts_with("#!") ? line.substr(2) : line);
  if (!words) return false;
  return std::ranges::any_of(*words, [](const Word& word) {
    return std::string_view(word.text).substr(word.text.find_last_of('/') + 1) == "deno";
  });
}

Checked<Imported> read_deno_command(std::string_view text, const ImportPlace& place) {
  if (auto good = text::check_bytes(text); !good) {
    return std::unexpected(Diagnostics{std::move(good).error()});
  }
  Permissions out(place);
  out.in().start_is_unknown("Deno");
  // The two characters stay, so that positions are those of the file.
  std::string line(command_of(text));
  if (line.starts_with("#!")) line.replace(0, 2, "  ");
  auto words = cut_words(line);
  if (!words) {
    out.in().add(std::move(words).error());
    return std::move(out).finish();
  }
  Flags(out, *std::move(words)).read();
  return std::move(out).finish();
}

}  // namespace capgate::imports
