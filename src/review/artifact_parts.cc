#include "review/artifact_parts.h"

#include <algorithm>
#include <array>
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

// As deep as a document may nest, which has a limit. `at` is where a manifest says it: the same
// policy stands elsewhere in another file.
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
        if (member.key.text() == "at") continue;
        write_value(member.value, json.key(member.key.text()));
      }
      json.end_object();
      return;
  }
}

std::string compact(Value value) {
  if (value.is(Kind::string)) return std::string(value.text());
  text::JsonWriter json(text::JsonWriter::Style::compact);
  write_value(value, json);
  return std::move(json).take();
}

std::string hash_words(std::string_view hex) { return format("contents sha256:{}", hex); }

// Options of bwrap, docker, podman and firejail that give something, and that take something away.
// What can be either by its value (--network, --security-opt, --tmpfs) is in neither list.
constexpr std::array binds = std::to_array<std::string_view>(
    {"--bind", "--bind-try", "--ro-bind", "--ro-bind-try", "--dev-bind", "--dev-bind-try"});
constexpr std::array grants = std::to_array<std::string_view>(
    {"--cap-add", "--device", "--privileged", "--publish", "--share-net", "--volume", "-v", "-p"});
constexpr std::array restraints = std::to_array<std::string_view>(
    {"--as-pid-1", "--cap-drop", "--clearenv", "--die-with-parent", "--disable-userns",
     "--new-session", "--read-only", "--remount-ro", "--seccomp", "--unshare-cgroup",
     "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-user", "--unshare-uts"});

Part argv_part(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  Part out{.section = "argv", .words = shown_words(views), .mount = {}, .cause = {}};
  const std::string& first = words.front();
  const auto target = [&](std::string_view mount) -> std::string {
    for (const std::string_view field : EachPart(mount, ',')) {
      if (field.starts_with("target=")) return std::string(field.substr(7));
    }
    return {};
  };
  if (contains(binds, first) && words.size() == 3) {
    out.mount = words[2];
  } else if (first == "--mount" && words.size() == 2 && words[1].starts_with("type=bind,")) {
    out.mount = target(words[1]);
  }
  if (!out.mount.empty() || contains(grants, first)) out.tendency = Tendency::grants;
  if (contains(restraints, first)) out.tendency = Tendency::restrains;
  return out;
}

// Rules of AppArmor, of which each allows or denies by itself, and the mounts of a unit of systemd.
// A line of anything else says nothing alone.
Part line_part(const std::string& section, std::string_view line) {
  Part out{.section = section, .words = std::string(line), .mount = {}, .cause = {}};
  if (section.ends_with(".apparmor")) {
    const std::string_view rule = trim(line);
    if (rule.starts_with('"') && rule.ends_with(',')) out.tendency = Tendency::grants;
    if (rule.starts_with("deny ")) out.tendency = Tendency::restrains;
    return out;
  }
  const bool is_mount =
      line.starts_with("BindPaths=\"") || line.starts_with("BindReadOnlyPaths=\"");
  const std::size_t target = line.rfind("\":\"");
  if (!section.ends_with(".service") || !is_mount || target == std::string_view::npos) return out;
  const std::string_view path = line.substr(target + 3);
  if (path.find('"') != path.size() - 1) return out;  // options follow, or a second mount
  out.mount = path.substr(0, path.size() - 1);
  out.tendency = Tendency::grants;
  return out;
}

Tendency plan_tendency(std::string_view section) {
  constexpr std::array allowed = std::to_array<std::string_view>(
      {"plan programs", "plan landlock rules", "plan network rules", "plan network published",
       "plan environment inject", "plan environment read"});
  constexpr std::array kept =
      std::to_array<std::string_view>({"plan namespaces", "plan protected", "plan hidden"});
  if (contains(allowed, section)) return Tendency::grants;
  return contains(kept, section) ? Tendency::restrains : Tendency::unknown;
}

class Taker {
 public:
  Taker(const Groups& groups, std::vector<Part>& out) : groups_(groups), out_(out) {
    for (const std::string& group : groups) {
      lengths_.push_back(1 + static_cast<std::size_t>(std::ranges::count(group, '\0')));
    }
    sort_and_deduplicate(lengths_);
  }

  void take(Member member) {
    const std::string_view key = member.key.text();
    if (key == "provenance") return;
    if (key == "argv" && is_texts(member.value)) return take_argv(member.value);
    if (key == "files" && member.value.is(Kind::array)) return take_files(member.value);
    if (key == "fds" && member.value.is(Kind::array)) return take_descriptors(member.value);
    if (key == "plan" && member.value.is(Kind::object)) return take_plan(member.value);
    if (!member.value.is(Kind::array) || key == "commandPrefix") {
      add(std::string(key), compact(member.value), Tendency::unknown);
      return;
    }
    for (const Value item : member.value.elements()) {
      add(std::string(key), compact(item), tendency_of(key));
    }
  }

 private:
  static Tendency tendency_of(std::string_view key) {
    constexpr std::array all = std::to_array<std::string_view>(
        {"egress", "envInjections", "unenforced", "notCovered"});  // the last two: nobody holds it
    if (contains(all, key)) return Tendency::grants;
    if (key == "assertions") return Tendency::restrains;
    return key == "notes" ? Tendency::words : Tendency::unknown;
  }

  static bool is_texts(Value list) {
    if (!list.is(Kind::array)) return false;
    for (const Value item : list.elements()) {
      if (!item.is(Kind::string)) return false;
    }
    return true;
  }

  void add(std::string section, std::string words, Tendency tendency) {
    out_.push_back({.section = std::move(section),
                    .words = std::move(words),
                    .tendency = tendency,
                    .mount = {},
                    .cause = {}});
  }

  // How many words from there on are one option.
  std::size_t length_at(const std::vector<std::string>& words, std::size_t at) const {
    for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length) {
      if (*length > words.size() - at) continue;
      const std::span some(words.begin() + static_cast<std::ptrdiff_t>(at), *length);
      if (groups_.contains(join(some, std::string_view("\0", 1)))) return *length;
    }
    std::size_t end = at + 1;
    while (end < words.size() && !words[end].starts_with('-')) ++end;
    return end - at;
  }

  void take_argv(Value list) {
    std::vector<std::string> words;
    for (const Value word : list.elements()) words.emplace_back(word.text());
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t length = length_at(words, at);
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
      out_.push_back(argv_part({first, first + static_cast<std::ptrdiff_t>(length)}));
      at += length;
    }
  }

  void take_files(Value list) {
    for (const Value file : list.elements()) {
      const auto name = file.is(Kind::object) ? file.find("name") : std::nullopt;
      if (!name || !name->is(Kind::string)) {
        add("files", compact(file), Tendency::unknown);
        continue;
      }
      const std::string section = format("file {}", name->text());
      for (const Member member : file.members()) {
        if (member.key.text() != "name") take_file(section, member);
      }
    }
  }

  void take_file(const std::string& section, Member member) {
    const std::string_view key = member.key.text();
    if (key == "contents" && member.value.is(Kind::string)) {
      std::string_view text = member.value.text();
      if (text.ends_with('\n')) {
        text.remove_suffix(1);
      } else {
        add(section, "(its last line has no end)", Tendency::unknown);
      }
      for (const std::string_view line : EachPart(text, '\n')) {
        out_.push_back(line_part(section, line));
      }
    } else if (key == "base64" && member.value.is(Kind::string)) {
      add(section, hash_words(sha256_hex(member.value.text())), Tendency::unknown);
    } else {
      add(section, format("{} {}", key, compact(member.value)), Tendency::unknown);
    }
  }

  void take_descriptors(Value list) {
    for (const Value each : list.elements()) {
      const auto purpose = each.is(Kind::object) ? each.find("purpose") : std::nullopt;
      const std::string section =
          format("descriptor {}", purpose ? compact(*purpose) : std::string("without a purpose"));
      if (!each.is(Kind::object)) {
        add(section, compact(each), Tendency::unknown);
        continue;
      }
      for (const Member member : each.members()) take_descriptor(section, member);
    }
  }

  void take_descriptor(const std::string& section, Member member) {
    const std::string_view key = member.key.text();
    if (key == "purpose") return;
    if (key == "base64" && member.value.is(Kind::string)) {
      add(section, hash_words(sha256_hex(member.value.text())), Tendency::unknown);
    } else if (key == "names" && is_texts(member.value)) {
      for (const Value name : member.value.elements()) {
        add(section, std::string(name.text()), Tendency::grants);
      }
    } else {
      add(section, format("{} {}", key, compact(member.value)), Tendency::unknown);
    }
  }

  void take_plan(Value plan) {
    for (const Member member : plan.members()) {
      const std::string section = format("plan {}", member.key.text());
      const bool is_words = member.key.text() == "server" || member.key.text() == "holes";
      take_nested(section, member.value, is_words ? Tendency::words : Tendency::unknown);
    }
  }

  // Members of an object by their names, items of a list each by itself. As deep as a document.
  void take_nested(const std::string& section, Value value,  // NOLINT(misc-no-recursion)
                   Tendency tendency) {
    if (value.is(Kind::object)) {
      for (const Member member : value.members()) {
        take_nested(format("{} {}", section, member.key.text()), member.value, tendency);
      }
    } else if (value.is(Kind::array)) {
      for (const Value item : value.elements()) take_item(section, item, tendency);
    } else if (section.ends_with(" base64")) {
      add(section, hash_words(sha256_hex(value.text())), tendency);
    } else {
      add(section, compact(value), tendency);
    }
  }

  void take_item(const std::string& section, Value item, Tendency tendency) {
    add(section, compact(item), tendency == Tendency::unknown ? plan_tendency(section) : tendency);
    if (section != "plan mounts" || !item.is(Kind::object)) return;
    const auto kind = item.find("kind");
    const auto target = item.find("target");
    if (!kind || kind->text() != "bind" || !target || !target->is(Kind::string)) return;
    out_.back().mount = target->text();
    out_.back().tendency = Tendency::grants;
  }

  const Groups& groups_;
  std::vector<Part>& out_;
  std::vector<std::size_t> lengths_;
};

}  // namespace

std::string shown_words(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty()) out += ' ';
    const bool is_plain = !word.empty() && std::ranges::none_of(word, [](char c) {
      return is_space(c) || is_control(c) || c == '"' || c == '\\';
    });
    if (is_plain) {
      out += word;
      continue;
    }
    text::JsonWriter json(text::JsonWriter::Style::compact);
    json.string(word);
    out += std::move(json).take();
  }
  return out;
}

std::vector<Part> parts_of(const text::Document& artifact, const Groups& groups) {
  std::vector<Part> out;
  Taker taker(groups, out);
  for (const Member member : artifact.root().members()) taker.take(member);
  return out;
}

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
