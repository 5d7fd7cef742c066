#include "review/ignore.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "core/grammar.h"
#include "review/lint_rules.h"

namespace capgate::review {
namespace {

using text::Kind;
using text::Member;
using text::Value;

constexpr std::string_view entry_keys[] = {"capability", "expires", "file",
                                           "reason",     "rule",    "tool"};
constexpr std::string_view shape_help =
    "write {ignore: [{rule: NET_ANY, reason: why it is right, expires: 2027-06-30}]}";

class Reader {
 public:
  Checked<IgnoreFile> read(Value root) {
    const auto list = root.is(Kind::object) ? root.find("ignore") : std::nullopt;
    if (!list || root.count() != 1) {
      complain(root.span(), "an ignore file is a mapping with the one key ignore", shape_help);
    } else if (list->is(Kind::array)) {
      for (const Value entry : list->elements()) read_entry(entry);
    } else if (!list->is(Kind::null)) {
      complain(list->span(), "ignore is a list of entries", shape_help);
    }
    if (!mistakes_.empty()) return std::unexpected(std::move(mistakes_));
    return std::move(file_);
  }

 private:
  void complain(Span where, std::string message, std::string_view help) {
    if (mistakes_.size() >= text::most_mistakes) return;
    mistakes_.push_back({.code = Code::ignore_shape,
                         .where = where,
                         .message = std::move(message),
                         .help = std::string(help)});
  }

  void read_entry(Value entry) {
    if (!entry.is(Kind::object)) {
      complain(entry.span(), "an entry is a mapping", shape_help);
      return;
    }
    for (const Member member : entry.members()) check_key(member.key);
    IgnoreEntry out;
    read_rule(entry, out);
    out.reason = read_required(entry, "reason", "say why the finding is right as it is");
    read_expires(entry, out);
    out.tool = read_text(entry, "tool").value_or("");
    out.file = plain_path(read_text(entry, "file").value_or(""));
    read_capability(entry, out);
    file_.entries.push_back(std::move(out));
  }

  void check_key(Value key) {
    if (std::ranges::find(entry_keys, key.text()) != std::ranges::end(entry_keys)) return;
    const auto meant = closest(key.text(), entry_keys);
    complain(key.span(), format("unknown key {}", quoted(key.text())),
             meant ? format("did you mean {}?", *meant)
                   : "the keys are rule, capability, tool, file, reason and expires");
  }

  // None if the key is not there. Numbers and the like are taken as they are written.
  std::optional<std::string> read_text(Value entry, std::string_view key) {
    const auto value = entry.find(key);
    if (!value) return std::nullopt;
    const bool is_text = value->is(Kind::string) || value->is(Kind::number);
    if (!is_text || trim(value->text()).empty()) {
      complain(value->span(), format("{} is a text that is not empty", key),
               "write it, or remove the key");
      return std::nullopt;
    }
    return std::string(value->text());
  }

  std::string read_required(Value entry, std::string_view key, std::string_view help) {
    if (!entry.find(key)) {
      complain(Span::at(entry.span().begin, std::size_t{entry.span().begin} + 1),
               format("{} is missing", key), help);
    }
    return read_text(entry, key).value_or("");
  }

  void read_rule(Value entry, IgnoreEntry& out) {
    const std::string id = read_required(entry, "rule", "name the rule, as check prints it");
    const auto value = entry.find("rule");
    if (id.empty() || !value) return;
    out.where = value->span();
    if (const Rule* known = find_rule(id)) {
      out.rule = known->id;
      return;
    }
    std::vector<std::string_view> names;
    for (const Rule& each : lint_rules()) names.push_back(each.id);
    const auto meant = closest(id, names);
    complain(value->span(), format("there is no rule {}", quoted(id)),
             meant ? format("did you mean {}?", *meant) : "docs/lints.md lists the rules");
  }

  void read_expires(Value entry, IgnoreEntry& out) {
    out.expires = read_required(entry, "expires", "add a date such as 2027-06-30, or never");
    if (out.expires.empty() || out.expires == "never" || is_date(out.expires)) return;
    complain(entry.find("expires")->span(), format("{} is no date", quoted(out.expires)),
             "write it as YYYY-MM-DD, or never");
  }

  // In whatever spelling: findings have the canonical one. With a variable it stays as it is.
  void read_capability(Value entry, IgnoreEntry& out) {
    const auto text = read_text(entry, "capability");
    if (!text) return;
    out.capability = *text;
    if (text->contains("${")) return;
    auto parsed = core::parse_capability(*text, {});
    if (parsed) {
      out.capability = print(parsed->front());
    } else {
      complain(entry.find("capability")->span(),
               format("{} is no capability: {}", quoted(*text), parsed.error().message),
               "write it as the manifest does");
    }
  }

  IgnoreFile file_;
  Diagnostics mistakes_;
};

bool is_match(const IgnoreEntry& entry, const Finding& finding) {
  return entry.rule == finding.rule &&
         (entry.capability.empty() || entry.capability == finding.capability) &&
         (entry.tool.empty() || entry.tool == finding.tool) &&
         (entry.file.empty() || entry.file == finding.file);
}

bool has_expired(const IgnoreEntry& entry, std::string_view today) {
  return entry.expires != "never" && std::string_view(entry.expires) < today;
}

std::string words_of(const IgnoreEntry& entry) {
  std::string out(entry.rule);
  for (const std::string* each : {&entry.capability, &entry.tool, &entry.file}) {
    if (!each->empty()) out += " " + escape_for_terminal(*each);
  }
  return out;
}

Finding about_entry(const IgnoreEntry& entry, std::string_view rule, const IgnoreContext& context) {
  const bool is_unused = rule == rule::ignore_unused;
  Finding out{
      .rule = rule,
      .level = is_unused ? Level::note : Level::warning,
      .message = is_unused ? format("nothing matches {}", words_of(entry))
                           : format("{} was ignored until {}, and counts again", words_of(entry),
                                    entry.expires),
      .help = is_unused ? "remove the entry" : "mend it, or renew the entry with a reason",
      .file = std::string(context.file),
      .position = {},
      .end = {},
      .identity = format("{}\n{}\n{}\n{}", entry.rule, entry.capability, entry.tool, entry.file),
      .where = entry.where};
  if (context.source != nullptr) {
    out.position = context.source->position(entry.where.begin);
    out.end = context.source->position(entry.where.end);
  }
  return out;
}

}  // namespace

Checked<IgnoreFile> parse_ignore_file(const text::Document& document) {
  return Reader().read(document.root());
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](std::size_t at, std::size_t size) -> int {
    int out = 0;
    for (const char c : text.substr(at, size)) {
      if (!is_digit(c)) return -1;
      out = out * 10 + (c - '0');
    }
    return out;
  };
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int day = number(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= lengths[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

Reviewed apply_ignore_file(const IgnoreFile& file, std::vector<Finding> findings,
                           const IgnoreContext& context) {
  Reviewed out;
  std::vector<bool> is_used(file.entries.size());
  for (Finding& finding : findings) {
    const IgnoreEntry* by = nullptr;
    for (std::size_t i = 0; i < file.entries.size(); ++i) {
      if (!is_match(file.entries[i], finding)) continue;
      is_used[i] = true;
      if (by == nullptr && !has_expired(file.entries[i], context.today)) by = &file.entries[i];
    }
    if (by == nullptr) {
      out.findings.push_back(std::move(finding));
    } else {
      out.suppressed.push_back({.finding = std::move(finding), .reason = by->reason});
    }
  }
  for (std::size_t i = 0; i < file.entries.size(); ++i) {
    const IgnoreEntry& entry = file.entries[i];
    const bool is_elsewhere =
        !entry.file.empty() &&
        std::ranges::find(context.checked, entry.file) == context.checked.end();
    if (!is_used[i] && !is_elsewhere) {
      out.findings.push_back(about_entry(entry, rule::ignore_unused, context));
    } else if (is_used[i] && has_expired(entry, context.today)) {
      out.findings.push_back(about_entry(entry, rule::ignore_expired, context));
    }
  }
  sort_findings(out.findings);
  return out;
}

std::string plain_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !path.starts_with('/')) {
      parts.push_back(part);
    }
  }
  std::string out(path.starts_with('/') ? "/" : "");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += i == 0 ? "" : "/";
    out += parts[i];
  }
  return out;
}

}  // namespace capgate::review
