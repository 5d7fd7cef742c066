#include "clients/entries.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "clients/spelling.h"
#include "text/json.h"
#include "text/toml.h"
#include "text/yaml.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Member;
using text::Value;

std::optional<Value> find_kind(Value object, std::string_view key, Kind kind) {
  const auto found = object.find(key);
  return found && found->is(kind) ? found : std::nullopt;
}

std::string_view text_or_nothing(Value object, std::string_view key) {
  const auto found = find_kind(object, key, Kind::string);
  return found ? found->text() : std::string_view();
}

bool is_flag(Value object, std::string_view key, std::string_view value) {
  const auto found = find_kind(object, key, Kind::boolean);
  return found && to_lower(found->text()) == value;
}

bool is_disabled(Value object) {
  return is_flag(object, "disabled", "true") || is_flag(object, "enabled", "false");
}

// The type counts before the keys: some clients keep an unused address beside a command.
Transport transport_of(Value object, const Shape& shape) {
  constexpr std::array<std::string_view, 4> addresses = {"url", "serverUrl", "httpUrl", "uri"};
  const std::string type = to_lower(text_or_nothing(object, "type"));
  if (type == "http" || type == "sse" || type == "remote" || type.starts_with("streamable")) {
    return Transport::http;
  }
  if (object.find(shape.command)) return Transport::stdio;
  const bool has_address =
      std::ranges::any_of(addresses, [&](auto key) { return object.find(key).has_value(); });
  return has_address ? Transport::http : Transport::unknown;
}

std::optional<Value> find_key(Value object, std::string_view key) {
  for (const Member member : object.members()) {
    if (member.key.text() == key) return member.key;
  }
  return {};
}

bool add_words(Value list, std::vector<Value>& words) {
  if (!list.is(Kind::array)) return false;
  for (const Value element : list.elements()) {
    if (!element.is(Kind::string)) return false;
    words.push_back(element);
  }
  return true;
}

// A list of words, or one word and a list in args; the problem if it is neither.
std::string take_command(Value holder, std::string_view key, Entry& entry) {
  entry.holder = holder;
  const auto command = holder.find(key);
  if (!command) return format("it has no {}", key);
  if (command->is(Kind::array)) {
    entry.list = command;
    if (!add_words(*command, entry.words)) return format("{} is not a list of strings", key);
    return entry.words.empty() ? format("{} is empty", key) : "";
  }
  if (!command->is(Kind::string)) return format("{} is not a string", key);
  if (command->text().empty()) return format("{} is empty", key);
  entry.command_key = find_key(holder, key);
  entry.command = command;
  entry.words.push_back(*command);
  entry.list = holder.find(arguments_key);
  if (entry.list && !add_words(*entry.list, entry.words)) return "args is not a list of strings";
  return "";
}

void take_environment(Value holder, const Shape& shape, Entry& entry) {
  const auto variables = find_kind(holder, shape.environment, Kind::object);
  if (!variables) return;
  for (const auto [key, value] : variables->members()) {
    if (value.is(Kind::array) || value.is(Kind::object) || value.is(Kind::null)) continue;
    const bool is_string = value.is(Kind::string);
    const std::string_view token = source_of(value);
    entry.server.environment.push_back(
        {.name = std::string(key.text()),
         .value = std::string(value.text()),
         .where = value.span(),
         .plain = is_string && spell_like(shape.syntax, token, value.text()) == token});
    entry.environment.push_back(value);
  }
}

// Where args would be inserted, a key must be one that another can be written after.
bool takes_neighbour(const Entry& entry, Syntax syntax) {
  const Value key = *entry.command_key;
  const std::string_view before = line_before(key.document().source(), key.span().begin);
  switch (syntax) {
    case Syntax::json: return true;
    case Syntax::toml: return source_of(key).ends_with(key.text());
    case Syntax::yaml:
      return source_of(*entry.holder).starts_with('{') ||
             before.find_first_not_of(" -") == before.npos;
  }
  return false;
}

// Why an entry that could be wrapped by what it means cannot by how it is written.
std::string problem_of_spelling(const Entry& entry, Syntax syntax) {
  if (!entry.command) return "";
  const std::string_view token = source_of(*entry.command);
  if (token.find('\n') != token.npos) return "the command is written on several lines";
  if (!entry.list) {
    if (!takes_neighbour(entry, syntax))
      return "args cannot be added after a key written like this";
  } else if (!source_of(*entry.list).starts_with('[')) {
    const std::string_view before =
        line_before(entry.list->document().source(), entry.list->span().begin);
    return before.find_first_not_of(' ') == before.npos ? "" : "args starts on the line of its key";
  }
  return fits_in_brackets(syntax, token) ? "" : "the command needs quotes to become an argument";
}

void take_words(const Shape& shape, Entry& entry) {
  std::vector<std::string> words;
  words.reserve(entry.words.size());
  for (const Value word : entry.words) {
    words.emplace_back(word.text());
  }
  entry.wrapper = find_wrapper(words);
  if (entry.wrapper) {
    entry.server.profile = entry.wrapper->profile;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(entry.wrapper->size));
    if (words.empty()) entry.server.problem = "it runs the command of its profile";
  } else {
    entry.server.problem = problem_of_spelling(entry, shape.syntax);
  }
  entry.server.command = std::move(words);
}

Entry take_entry(Value value, const Shape& shape) {
  Entry entry;
  entry.server.where = value.span();
  if (!value.is(Kind::object)) {
    entry.server.transport = Transport::unknown;
    entry.server.problem = "it is not a mapping of keys to values";
    return entry;
  }
  entry.server.transport = transport_of(value, shape);
  entry.server.disabled = is_disabled(value);
  entry.server.directory = text_or_nothing(value, "cwd");
  // Zed's older form: the command is a mapping with a path.
  const auto nested = find_kind(value, shape.command, Kind::object);
  take_environment(nested.value_or(value), shape, entry);
  if (entry.server.transport == Transport::http) return entry;
  entry.server.problem =
      nested ? take_command(*nested, "path", entry) : take_command(value, shape.command, entry);
  if (entry.server.problem.empty()) take_words(shape, entry);
  return entry;
}

class Finder {
 public:
  explicit Finder(const Shape& shape) : shape_(&shape) {}

  void walk(Value value, std::span<const std::string> path, const std::string& section) {
    if (path.empty()) return take_servers(value, section);
    if (!value.is(Kind::object)) return;
    if (path.front() != "*") {
      const auto next = value.find(path.front());
      return next ? walk(*next, path.subspan(1), section) : void();
    }
    for (const Member member : value.members()) {
      walk(member.value, path.subspan(1), std::string(member.key.text()));
    }
  }

  [[nodiscard]] std::vector<Entry> take() && { return std::move(entries_); }

 private:
  void take_servers(Value servers, const std::string& section) {
    if (servers.is(Kind::object)) {
      for (const Member member : servers.members()) {
        add(member.value, std::string(member.key.text()), section);
      }
    } else if (servers.is(Kind::array)) {
      for (const Value value : servers.elements()) {
        const bool is_object = value.is(Kind::object);
        add(value, std::string(is_object ? text_or_nothing(value, "name") : ""), section);
      }
    }
  }

  void add(Value value, std::string name, const std::string& section) {
    Entry entry = take_entry(value, *shape_);
    if (name.empty() && entry.server.problem.empty()) entry.server.problem = "it has no name";
    entry.server.name = std::move(name);
    entry.server.section = section;
    entries_.push_back(std::move(entry));
  }

  const Shape* shape_;
  std::vector<Entry> entries_;
};

bool is_empty_yaml(std::string_view text) {
  for (const std::string_view part : EachPart(text, '\n')) {
    const std::string_view line = trim(part);
    if (!line.empty() && !line.starts_with('#') && line != "---" && line != "...") return false;
  }
  return true;
}

}  // namespace

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  return text.substr(text.starts_with(mark) ? mark.size() : 0);
}

Checked<text::Document> parse_client_text(std::string_view text, Syntax syntax) {
  switch (syntax) {
    case Syntax::json: return text::parse_jsonc(std::string(text));
    case Syntax::yaml:
      if (is_empty_yaml(text)) return text::parse_jsonc(std::string());
      return text::parse_yaml(std::string(text));
    case Syntax::toml: return text::parse_toml(std::string(text));
  }
  return std::unexpected(Diagnostics{});
}

std::vector<Entry> find_entries(const text::Document& document, const Shape& shape) {
  Finder finder(shape);
  for (const auto& path : shape.paths) {
    finder.walk(document.root(), path, "");
  }
  return std::move(finder).take();
}

std::string_view line_before(std::string_view text, std::size_t at) {
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return text.substr(begin, at - begin);
}

}  // namespace capgate::clients
