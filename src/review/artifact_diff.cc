#include "review/artifact_diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/digest.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::review {
namespace {

using lower::Input;
using PartKind = ShownPart::Kind;

// ---- causes ----

class Causes {
 public:
  Causes(const Input& input, const Source& source) : input_(input), source_(source) {}

  PartCause of(const lower::Cause& cause) const {
    if (cause.origins == nullptr || cause.origins->empty()) {
      return {.capability = {}, .place = {}, .reason = std::string(cause.reason)};
    }
    const core::Declared& declared = input_.manifest.declared[cause.origins->front()];
    PartCause out{.capability = print(declared.capability), .place = {}, .reason = {}};
    const std::string_view owner = input_.manifest.owner(declared);
    if (declared.where == Span::nowhere()) {
      out.place = format("({})", owner);
    } else {
      const auto [line, column] = source_.position(declared.where.begin);
      out.place = format("{}:{}:{} ({})", source_.name(), line, column, owner);
    }
    return out;
  }
  PartCause of(const core::Origins* origins) const {
    return of(lower::Cause{.reason = "base of every sandbox", .origins = origins});
  }

 private:
  const Input& input_;
  const Source& source_;
};

std::vector<std::string> group_of(const lower::Artifact& artifact, std::size_t line) {
  const std::size_t end =
      line + 1 < artifact.lines.size() ? artifact.lines[line + 1].first : artifact.argv.size();
  std::vector<std::string> out;
  for (std::size_t word = artifact.lines[line].first; word < end; ++word) {
    out.emplace_back(artifact.argv[word]);
  }
  return out;
}

// The parts of one place, in their order.
std::vector<Part*> of_path(std::vector<Part>& parts, const PartPath& path) {
  std::vector<Part*> out;
  for (Part& part : parts) {
    if (part.path == path) out.push_back(&part);
  }
  return out;
}

template <typename Grants>
void explain_grants(const std::vector<Part*>& parts, const Grants& grants, const Causes& causes) {
  for (std::size_t i = 0; i < std::min(parts.size(), grants.size()); ++i) {
    parts[i]->cause = causes.of(&grants[i].origins);
  }
}

void explain_argv(const std::vector<Part*>& parts, const lower::Artifact& artifact,
                  const Causes& causes) {
  std::map<std::string, PartCause> known;
  for (std::size_t i = 0; i < artifact.lines.size(); ++i) {
    known.emplace(shown_words(group_of(artifact, i)), causes.of(artifact.lines[i].cause));
  }
  for (Part* part : parts) {
    if (const auto it = known.find(part->words); it != known.end()) part->cause = it->second;
  }
}

void explain_file(const std::vector<Part*>& parts, const lower::File& file, const Causes& causes) {
  if (file.lines.empty() || file.binary) return;
  std::size_t at = 0;
  std::size_t line = 0;
  for (Part* part : parts) {
    while (line + 1 < file.lines.size() && file.lines[line + 1].first <= at) ++line;
    part->cause = causes.of(file.lines[line].cause);
    at += part->words.size() + 1;
  }
}

void explain(std::vector<Part>& parts, const lower::Artifact& artifact, const Input& input,
             const Source& source) {
  const Causes causes(input, source);
  explain_argv(of_path(parts, {"argv"}), artifact, causes);
  for (const lower::File& file : artifact.files) {
    explain_file(of_path(parts, lines_path(file.name)), file, causes);
  }
  explain_grants(of_path(parts, {"egress"}), input.policy.connect, causes);
  explain_grants(of_path(parts, {"assertions"}), input.policy.assertions, causes);
  if (artifact.plan) {
    std::vector<Part*> mounts = of_path(parts, {"plan", "mounts"});
    std::erase_if(mounts, [](const Part* part) { return part->mount.empty(); });  // the list itself
    for (std::size_t i = 0; i < std::min(mounts.size(), artifact.plan->mounts.size()); ++i) {
      mounts[i]->cause = causes.of(artifact.plan->mounts[i].origins);
    }
  }
  for (Part* part : of_path(parts, {"envInjections"})) {
    const auto by_name = [](const auto& grant) { return std::string_view(grant.capability.name); };
    const auto& all = input.policy.variables;  // sorted by name
    const auto it = std::ranges::lower_bound(all, std::string_view(part->words), {}, by_name);
    if (it != all.end() && by_name(*it) == part->words) part->cause = causes.of(&it->origins);
  }
}

// ---- comparison ----

// What an artifact holds of its policy's hash says nothing about what it grants.
class Mask {
 public:
  explicit Mask(const text::Document& artifact) {
    std::string hash = provenance_of(artifact, "policyHash");
    constexpr std::string_view prefix = "sha256:";
    if (!hash.starts_with(prefix)) return;
    hash.erase(0, prefix.size());
    const bool is_hash = hash.size() == 64 && std::ranges::all_of(hash, [](char c) {
                           return is_digit(c) || (c >= 'a' && c <= 'f');
                         });
    if (!is_hash) return;
    const std::string machine = hash.substr(0, 32);
    const std::string boot = hash.substr(32);
    marks_ = {hash, sha256_hex(base64(machine + "\n")), machine,
              format("{}-{}-{}-{}-{}", boot.substr(0, 8), boot.substr(8, 4), boot.substr(12, 4),
                     boot.substr(16, 4), boot.substr(20))};
  }

  // No word of an artifact reads like what stands for a hash.
  std::string apply(const std::string& text) const {
    std::string words;
    for (const char c : text) words.append(c == escape ? 2 : 1, c);
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      const std::string stand_in = format("{}{}{}", escape, i, escape);
      for (std::size_t at = 0; (at = words.find(marks_[i], at)) != std::string::npos;) {
        words.replace(at, marks_[i].size(), stand_in);
        at += stand_in.size();
      }
    }
    return words;
  }

 private:
  static constexpr char escape = '\x01';
  std::vector<std::string> marks_;
};

using Key = std::pair<PartPath, std::string>;

struct Keyed {
  const Part* part;
  Key key;
};

std::vector<Keyed> keyed(const std::vector<Part>& parts, const Mask& mask) {
  std::vector<Keyed> out;
  out.reserve(parts.size());
  for (const Part& part : parts) out.push_back({&part, {part.path, mask.apply(part.identity)}});
  return out;
}

// Splits off what the other side has, too, as often.
struct Split {
  std::vector<const Part*> only;
  std::vector<Keyed> common;
};

Split split(const std::vector<Keyed>& own, const std::vector<Keyed>& other) {
  std::map<Key, std::size_t> counts;
  for (const Keyed& each : other) ++counts[each.key];
  Split out;
  for (const Keyed& each : own) {
    const auto it = counts.find(each.key);
    if (it == counts.end() || it->second == 0) {
      out.only.push_back(each.part);
      continue;
    }
    --it->second;
    out.common.push_back(each);
  }
  return out;
}

bool hosts_overlap(std::string_view a, std::string_view b) {
  const auto covers = [](std::string_view pattern, std::string_view host) {
    if (pattern.contains('/')) return true;  // a network
    const std::size_t star = pattern.rfind('*');
    return star != std::string_view::npos && host.ends_with(pattern.substr(star + 1));
  };
  return a == b || covers(a, b) || covers(b, a);
}

// Of two rules for one host the one that is left may ask less of a request.
bool has_rule_for(const Part& gone, const std::vector<Part>& parts) {
  return std::ranges::any_of(parts, [&](const Part& part) {
    return part.path == gone.path && !part.host.empty() && hosts_overlap(part.host, gone.host);
  });
}

using Mounts = std::set<std::string, std::less<>>;

Mounts mounts_of(const std::vector<Part>& parts) {
  Mounts out;
  for (const Part& part : parts) {
    if (!part.mount.empty()) out.insert(part.mount);
  }
  return out;
}

// A part that lay over another grant kept something from it.
bool lies_over(std::string_view mount, const Mounts& mounts) {
  constexpr std::size_t longest_path = 4096;
  if (mount.size() > longest_path) return true;  // nothing is mounted there: do not search, tell
  if (mounts.contains("/") || mounts.contains(mount)) return true;
  for (std::size_t slash = mount.find('/'); slash != std::string_view::npos;
       slash = mount.find('/', slash + 1)) {
    if (mounts.contains(mount.substr(0, slash))) return true;
  }
  return false;
}

class Comparison {
 public:
  Comparison(const ArtifactSide& before, const ArtifactSide& after)
      : before_(before), after_(after) {
    const Groups none;
    const Groups& groups = before.fresh  ? before.fresh->groups
                           : after.fresh ? after.fresh->groups
                                         : none;
    before_parts_ = before.fresh ? before.fresh->parts : parts_of(before.document, groups);
    after_parts_ = after.fresh ? after.fresh->parts : parts_of(after.document, groups);
    after_mounts_ = mounts_of(after_parts_);
  }

  std::vector<ShownPart> run() {
    const auto before = keyed(before_parts_, Mask(before_.document));
    const auto after = keyed(after_parts_, Mask(after_.document));
    const Split old = split(before, after);
    const Split now = split(after, before);
    for (const Part* part : now.only) add(*part, true);
    for (const Part* part : old.only) add(*part, false);
    compare_order(old.common, now.common);
    compare_options();
    compare_provenance();
    return std::move(out_);
  }

 private:
  PartKind kind_of(const Part& part, bool is_after) const {
    switch (part.tendency) {
      case Tendency::words: return PartKind::told;
      case Tendency::restrains: return is_after ? PartKind::narrowed : PartKind::widened;
      case Tendency::grants: return is_after ? PartKind::widened : kind_without(part);
      case Tendency::unknown: break;
    }
    const std::string& capability = part.cause.capability;
    const bool is_grant = !capability.empty() && !capability.starts_with("limit:") &&
                          !capability.starts_with("assert:");
    // Not the opposite: a grant also causes what keeps it from a part of itself.
    return is_after && is_grant ? PartKind::widened : PartKind::differs;
  }

  PartKind kind_without(const Part& grant) const {
    const bool was_over = !grant.mount.empty() && lies_over(grant.mount, after_mounts_);
    const bool has_another = !grant.host.empty() && has_rule_for(grant, after_parts_);
    // That it says less of itself does not make it less.
    const bool is_silent = grant.is_statement && after_.fresh == nullptr;
    return grant.may_hide || was_over || has_another || is_silent ? PartKind::differs
                                                                  : PartKind::narrowed;
  }

  void add(const Part& part, bool is_after) {
    const bool is_fresh = (is_after ? after_ : before_).fresh != nullptr;
    const bool other_is_fresh = (is_after ? before_ : after_).fresh != nullptr;
    ShownPart out{.kind = kind_of(part, is_after),
                  .part = part.section,
                  .before = is_after ? "" : part.words,
                  .after = is_after ? part.words : "",
                  .capability = part.cause.capability,
                  .place = part.cause.place,
                  .why = part.cause.reason};
    if (other_is_fresh && part.tendency != Tendency::words) {
      out.why = "no capability of the manifest causes this";
    } else if (is_fresh && out.capability.empty() && out.why.empty()) {
      out.why = "of no capability alone";
    }
    out_.push_back(std::move(out));
  }

  void add_fact(PartKind kind, std::string part, std::string before, std::string after,
                std::string why) {
    out_.push_back({.kind = kind,
                    .part = std::move(part),
                    .before = std::move(before),
                    .after = std::move(after),
                    .capability = {},
                    .place = {},
                    .why = std::move(why)});
  }

  // Of mounts and rules the order decides, too.
  void compare_order(const std::vector<Keyed>& old, const std::vector<Keyed>& now) {
    struct Orders {
      std::string section;
      std::vector<std::string_view> old;
      std::vector<std::string_view> now;
    };
    std::map<PartPath, Orders> all;
    for (const Keyed& each : old) {
      Orders& orders = all[each.key.first];
      orders.section = each.part->section;
      orders.old.emplace_back(each.key.second);
    }
    for (const Keyed& each : now) all[each.key.first].now.emplace_back(each.key.second);
    for (const auto& [path, orders] : all) {
      if (orders.old == orders.now || path == PartPath{"notes"}) continue;
      add_fact(PartKind::differs, orders.section, "", "", "the same words stand in another order");
    }
  }

  // A fresh one has those of the stored one; two stored ones may have been made with different
  // ones.
  void compare_options() {
    const auto old = options_of(before_.document);
    const auto now = options_of(after_.document);
    const std::set<std::string_view> had(old.begin(), old.end());
    const std::set<std::string_view> has(now.begin(), now.end());
    for (const std::string& option : old) {
      if (!has.contains(option)) add_fact(PartKind::differs, "options", option, "", "");
    }
    for (const std::string& option : now) {
      if (!had.contains(option)) add_fact(PartKind::differs, "options", "", option, "");
    }
    const std::string was = provenance_of(before_.document, "target");
    const std::string is = provenance_of(after_.document, "target");
    if (was != is) add_fact(PartKind::differs, "target", was, is, "they are for different targets");
  }

  void compare_provenance() {
    const bool same_policy = provenance_of(before_.document, "policyHash") ==
                             provenance_of(after_.document, "policyHash");
    const std::pair<std::string_view, std::string_view> facts[] = {
        {"policyHash", "the policy is another one"},
        {"manifestHash", same_policy ? "the text of the manifest is another one; its policy is not"
                                     : "the manifest is another one"},
        {"grammarVersion", "it is another version of the language"},
        {"compiler", "another version made it: what differs may be of the compiler"},
    };
    for (const auto& [key, words] : facts) {
      std::string was = provenance_of(before_.document, key);
      std::string is = provenance_of(after_.document, key);
      if (was == is) continue;
      add_fact(PartKind::told, std::string(key), std::move(was), std::move(is), std::string(words));
    }
  }

  const ArtifactSide& before_;
  const ArtifactSide& after_;
  std::vector<Part> before_parts_;
  std::vector<Part> after_parts_;
  Mounts after_mounts_;
  std::vector<ShownPart> out_;
};

}  // namespace

FreshArtifact fresh_artifact(const lower::Artifact& artifact, const Input& input,
                             const Source& source, lower::FilesAs files) {
  FreshArtifact out;
  auto document =
      text::parse_json(print_json(artifact, input, text::JsonWriter::Style::compact, files));
  CAPGATE_ASSERT(document.has_value());
  out.document = std::make_unique<const text::Document>(*std::move(document));
  for (std::size_t i = 0; i < artifact.lines.size(); ++i) out.groups.insert(group_of(artifact, i));
  out.parts = parts_of(*out.document, out.groups);
  explain(out.parts, artifact, input, source);
  return out;
}

std::vector<ShownPart> compare_artifacts(const ArtifactSide& before, const ArtifactSide& after) {
  return Comparison(before, after).run();
}

}  // namespace capgate::review
