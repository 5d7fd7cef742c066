#include "review/artifact_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/digest.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "text/json_write.h"

namespace capgate::review {
namespace {

using text::Kind;
using text::Member;
using text::Value;

// As deep as a document may nest, which has a limit.
void write_value(Value value, text::JsonWriter& json) {  // NOLINT(misc-no-recursion)
  switch (value.kind()) {
    case Kind::null: json.null(); return;
    case Kind::boolean: json.boolean(value.text() == "true"); return;
    case Kind::number: json.verbatim(value.text()); return;
    case Kind::string: json.string(value.text()); return;
    case Kind::array:
      json.begin_array();
      for (const Value item : value.elements()) write_value(item, json);
      json.end_array();
      return;
    case Kind::object:
      json.begin_object();
      for (const Member member : value.members()) {
        write_value(member.value, json.key(member.key.text()));
      }
      json.end_object();
      return;
  }
}

std::string exact(Value value) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  write_value(value, json);
  return std::move(json).take();
}

std::string compact(Value value) {
  return value.is(Kind::string) ? std::string(value.text()) : exact(value);
}

std::string exact(std::string_view text) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.string(text);
  return std::move(json).take();
}

// A rule of a plan without `at`, where a manifest says it: the same policy stands elsewhere in
// another file.
std::string exact_rule(Value rule) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object();
  for (const Member member : rule.members()) {
    if (member.key.text() == "at" && member.value.is(Kind::string)) continue;
    write_value(member.value, json.key(member.key.text()));
  }
  json.end_object();
  return std::move(json).take();
}

std::string hash_words(std::string_view hex) { return format("contents sha256:{}", hex); }

// A name of the artifact's own, so that it cannot look like another one.
std::string shown_name(std::string_view name) {
  constexpr std::size_t most = 64;
  const bool is_plain =
      !name.empty() && name.size() <= most && std::ranges::all_of(name, [](char c) {
        return is_alnum(c) || std::string_view("-_.@/").contains(c);
      });
  return is_plain ? std::string(name) : exact(name);
}

bool is_texts(Value list) {
  if (!list.is(Kind::array)) return false;
  for (const Value item : list.elements()) {
    if (!item.is(Kind::string)) return false;
  }
  return true;
}

bool has_only(Value object, std::span<const std::string_view> keys) {
  for (const Member member : object.members()) {
    if (!contains(keys, member.key.text())) return false;
  }
  return true;
}

std::string text_of(Value object, std::string_view key) {
  if (!object.is(Kind::object)) return {};
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

// "net:connect:a.test:443" -> "a.test"
std::string host_of(std::string_view capability) {
  constexpr std::string_view prefix = "net:connect:";
  if (!capability.starts_with(prefix)) return "*";
  capability.remove_prefix(prefix.size());
  if (capability.starts_with('[')) return std::string(capability.substr(0, capability.find(']')));
  return std::string(capability.substr(0, find_any(capability, ": ")));
}

Tendency plan_tendency(std::string_view section) {
  constexpr std::array allowed = std::to_array<std::string_view>(
      {"plan programs", "plan landlock rules", "plan network rules", "plan network published",
       "plan environment inject", "plan environment read"});
  if (contains(allowed, section)) return Tendency::grants;
  return Tendency::unknown;
}

// A file's name that is kept from the server.
bool is_kept_name(std::string_view section, Value item) {
  if ((section != "plan protected" && section != "plan hidden") || !item.is(Kind::string)) {
    return false;
  }
  const std::string_view name = item.text();
  return !name.empty() && !name.contains('/') && name != "." && name != "..";
}

class Taker {
 public:
  Taker(std::string target, const Groups& groups, std::vector<Part>& out)
      : target_(std::move(target)), groups_(groups), out_(out) {
    for (const auto& group : groups) lengths_.push_back(group.size());
    sort_and_deduplicate(lengths_);
  }

  void take(Member member) {
    const std::string_view key = member.key.text();
    const Value value = member.value;
    constexpr std::array lists = std::to_array<std::string_view>(
        {"egress", "envInjections", "assertions", "notes", "unenforced", "notCovered"});
    if (key == "provenance") return take_provenance(value);
    const bool is_list = value.is(Kind::array);
    if (key == "argv" && is_texts(value)) {
      take_argv(value);
    } else if (key == "files" && is_list) {
      take_files(value);
    } else if (key == "fds" && is_list) {
      take_descriptors(value);
    } else if (key == "plan" && value.is(Kind::object)) {
      take_nested({"plan"}, value);
    } else if (contains(lists, key) && is_list) {
      take_list(key, value);
    } else {
      add({"key", std::string(key)}, shown_name(key), value);
      return;
    }
    add({"keys"}, "keys", std::string(key), Tendency::unknown);
  }

 private:
  Part& add(PartPath path, std::string section, std::string words, Tendency tendency) {
    std::string identity = words;
    return out_.emplace_back(Part{.path = std::move(path),
                                  .section = std::move(section),
                                  .words = std::move(words),
                                  .identity = std::move(identity),
                                  .tendency = tendency});
  }

  // A text and a number are never the same.
  Part& add(PartPath path, std::string section, Value value) {
    Part& part = add(std::move(path), std::move(section), compact(value), Tendency::unknown);
    part.identity = exact(value);
    return part;
  }

  // An item of a list of named things that has no name: never the same as the name itself.
  void add_odd(PartPath path, std::string section, Value value) {
    Part& part = add(std::move(path), std::move(section), value);
    part.identity = format("item {}", part.identity);
  }

  // What is compared elsewhere is left out.
  void take_provenance(Value provenance) {
    constexpr std::array known = std::to_array<std::string_view>(
        {"manifestHash", "policyHash", "grammarVersion", "target", "options", "compiler"});
    for (const Member member : provenance.members()) {
      const std::string key(member.key.text());
      if (contains(known, key)) continue;
      add({"provenance", key}, format("provenance {}", shown_name(key)), member.value);
    }
  }

  // ---- lists ----

  void take_list(std::string_view key, Value list) {
    std::map<std::string, std::size_t> ids;
    for (const Value item : list.elements()) ++ids[text_of(item, "id")];
    for (const Value item : list.elements()) {
      Part& part = add({std::string(key)}, std::string(key), item);
      if (key == "notes") part.tendency = Tendency::words;
      if (key == "egress") {
        part.tendency = Tendency::grants;
        part.host = text_of(item, "host");
        if (part.host.empty()) part.host = "*";
      }
      if (key == "envInjections") part.tendency = Tendency::grants;
      if (key == "unenforced" || key == "notCovered") {  // nobody holds it
        part.tendency = Tendency::grants;
        part.is_statement = true;
      }
      if (key == "assertions") part.tendency = assertion_tendency(item, ids);
    }
  }

  // One of two with the same name may take the other's place.
  static Tendency assertion_tendency(Value item, const std::map<std::string, std::size_t>& ids) {
    constexpr std::array keys = std::to_array<std::string_view>({"id", "description", "validator"});
    const std::string id = text_of(item, "id");
    const bool is_known = !id.empty() && has_only(item, keys) && ids.at(id) == 1;
    return is_known ? Tendency::restrains : Tendency::unknown;
  }

  // ---- argv ----

  std::optional<std::size_t> group_length(std::span<const std::string> words) const {
    for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length) {
      if (*length > words.size()) continue;
      const auto some = words.first(*length);
      if (groups_.contains(std::vector<std::string>(some.begin(), some.end()))) return *length;
    }
    return std::nullopt;
  }

  // What follows an option that is not known may be its operands, and what follows the options is
  // a program: neither is judged.
  void take_argv(Value list) {
    std::vector<std::string> all;
    for (const Value word : list.elements()) all.emplace_back(word.text());
    bool is_judged = true;
    for (std::span<const std::string> words = all; !words.empty();) {
      if (words[0] == "--" || !words[0].starts_with('-')) is_judged = false;
      auto length = group_length(words);
      if (!length && is_judged) length = option_length(target_, words);
      if (!length) {
        is_judged = false;
        length = 1;
        while (*length < words.size() && !words[*length].starts_with('-')) ++*length;
      }
      take_option(words.first(*length), is_judged);
      words = words.subspan(*length);
    }
  }

  void take_option(std::span<const std::string> words, bool is_judged) {
    Part& part = add({"argv"}, "argv", shown_words(words), Tendency::unknown);
    if (is_judged) judge(part, judge_option(target_, words));
  }

  static void judge(Part& part, Judgement judgement) {
    part.tendency = judgement.tendency;
    part.mount = std::move(judgement.mount);
    part.may_hide = judgement.may_hide;
  }

  // ---- files and descriptors ----

  void take_files(Value list) {
    std::map<std::string, std::size_t> seen;
    for (const Value file : list.elements()) {
      const auto name = file.is(Kind::object) ? file.find("name") : std::nullopt;
      if (!name || !name->is(Kind::string)) {
        add_odd({"files"}, "files", file);
        continue;
      }
      add({"files"}, "files", *name);
      // Of two with one name, it is not known which one is used.
      const PartPath path{"file", std::string(name->text()),
                          std::to_string(seen[std::string(name->text())]++)};
      for (const Member member : file.members()) {
        if (member.key.text() != "name") take_file(path, member);
      }
    }
  }

  void take_file(const PartPath& file, Member member) {
    const std::string_view key = member.key.text();
    PartPath path = file;
    path.emplace_back(key);
    const std::string section = format("file {}", shown_name(file[1]));
    if (key == "contents" && member.value.is(Kind::string)) {
      take_lines(path, section, member.value.text());
    } else if (key == "base64" && member.value.is(Kind::string)) {
      add(path, section, hash_words(sha256_hex(member.value.text())), Tendency::unknown);
    } else {
      path.emplace_back("not text");  // a line of contents may read like any value
      Part& part = add(path, section, member.value);
      part.words = format("{} {}", key, part.words);
    }
  }

  void take_lines(const PartPath& path, const std::string& section, std::string_view text) {
    if (text.ends_with('\n')) {
      text.remove_suffix(1);
    } else {
      PartPath end = path;
      end.emplace_back("end");
      add(std::move(end), section, "(its last line has no end)", Tendency::unknown);
    }
    for (const std::string_view line : EachPart(text, '\n')) {
      judge(add(path, section, std::string(line), Tendency::unknown), judge_line(path[1], line));
    }
  }

  void take_descriptors(Value list) {
    std::map<std::string, std::size_t> seen;
    for (const Value each : list.elements()) {
      const auto purpose = each.is(Kind::object) ? each.find("purpose") : std::nullopt;
      if (!purpose || !purpose->is(Kind::string)) {
        add_odd({"descriptors"}, "descriptors", each);
        continue;
      }
      add({"descriptors"}, "descriptors", *purpose);
      const PartPath path{"descriptor", std::string(purpose->text()),
                          std::to_string(seen[std::string(purpose->text())]++)};
      for (const Member member : each.members()) {
        if (member.key.text() != "purpose") take_descriptor(path, member);
      }
    }
  }

  void take_descriptor(PartPath path, Member member) {
    const std::string_view key = member.key.text();
    const std::string section = format("descriptor {}", shown_name(path[1]));
    path.emplace_back(key);
    if (key == "base64" && member.value.is(Kind::string)) {
      add(path, section, hash_words(sha256_hex(member.value.text())), Tendency::unknown);
    } else if (key == "names" && is_texts(member.value)) {
      for (const Value name : member.value.elements()) {
        add(path, section, name).tendency = Tendency::grants;
      }
      path.emplace_back("is a list");
      add(path, section, "names", Tendency::unknown);
    } else {
      Part& part = add(path, section, member.value);
      part.words = format("{} {}", key, part.words);
    }
  }

  // ---- plan ----

  static std::string shown_path(const PartPath& path) {
    std::string out;
    for (const std::string& name : path) {
      if (!out.empty()) out += ' ';
      out += shown_name(name);
    }
    return out;
  }

  // Members of an object by their names, items of a list each by itself. As deep as a document.
  void take_nested(const PartPath& path, Value value) {  // NOLINT(misc-no-recursion)
    const std::string section = shown_path(path);
    if (value.is(Kind::object)) {
      add(path, section, "(an object)", Tendency::unknown).identity = "{}";
      for (const Member member : value.members()) {
        PartPath inner = path;
        inner.emplace_back(member.key.text());
        take_nested(inner, member.value);
      }
    } else if (value.is(Kind::array)) {
      add(path, section, "(a list)", Tendency::unknown).identity = "[]";
      for (const Value item : value.elements()) take_item(path, section, item);
    } else if (value.is(Kind::string) && path.back() == "base64") {
      add(path, section, hash_words(sha256_hex(value.text())), Tendency::unknown);
    } else {
      const bool is_told = section == "plan server name" || section == "plan server version";
      Part& part = add(path, section, value);
      if (is_told && value.is(Kind::string)) part.tendency = Tendency::words;
    }
  }

  void take_item(const PartPath& path, const std::string& section, Value item) {
    Part& part = add(path, section, item);
    part.identity = format("item {}", part.identity);
    part.tendency = plan_tendency(section);
    if (is_kept_name(section, item)) part.tendency = Tendency::restrains;
    if (!item.is(Kind::object)) return;
    if (section == "plan network rules" || section == "plan seals") {
      part.words = exact_rule(item);
      part.identity = format("item {}", part.words);
      part.host = host_of(text_of(item, "capability"));
    }
    if (section != "plan mounts") return;
    constexpr std::array keys =
        std::to_array<std::string_view>({"kind", "target", "access", "ifPresent", "directory"});
    part.mount = text_of(item, "target");
    if (text_of(item, "kind") != "bind" || part.mount.empty()) return;
    part.tendency = Tendency::grants;
    part.may_hide = !has_only(item, keys);
  }

  std::string target_;
  const Groups& groups_;
  std::vector<Part>& out_;
  std::vector<std::size_t> lengths_;
};

}  // namespace

std::vector<Part> parts_of(const text::Document& artifact, const Groups& groups) {
  std::vector<Part> out;
  Taker taker(provenance_of(artifact, "target"), groups, out);
  for (const Member member : artifact.root().members()) taker.take(member);
  return out;
}

std::string shown_words(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const bool is_plain = !word.empty() && std::ranges::none_of(word, [](char c) {
      return is_space(c) || is_control(c) || c == '"' || c == '\\';
    });
    out += is_plain ? word : exact(word);
  }
  return out;
}

PartPath lines_path(std::string_view file) { return {"file", std::string(file), "0", "contents"}; }

bool is_artifact(const text::Document& document) {
  const Value root = document.root();
  if (!root.is(Kind::object) || root.find("tools")) return false;
  const auto provenance = root.find("provenance");
  return provenance && provenance->is(Kind::object);
}

std::string provenance_of(const text::Document& artifact, std::string_view key) {
  const auto value = artifact.root().find("provenance")->find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

std::vector<std::string> options_of(const text::Document& artifact) {
  std::vector<std::string> out;
  const auto options = artifact.root().find("provenance")->find("options");
  if (!options || !options->is(Kind::object)) return out;
  for (const Member member : options->members()) {
    out.push_back(format("{} {}", member.key.text(), compact(member.value)));
  }
  return out;
}

}  // namespace capgate::review
