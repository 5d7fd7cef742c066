// What the readers of foreign sandbox settings share: the shape of a document is checked with
// positions, allow and deny rules are gathered, and the end is a manifest or a list of mistakes.
//
//   Rules in("srt", place);
//   in.check_keys(root, known_keys, "the settings");
//   for (const Value item : in.texts(root, "allowWrite", "/srv/data")) in.allow_path(...);
//   for (const Value item : in.texts(root, "denyWrite", "/srv/data")) in.deny_path(...);
//   return std::move(in).finish();
//
// The language has no deny. finish() therefore weighs every deny against what is allowed: outside
// of it the deny says nothing new, around it the grant falls, inside of it the import is refused,
// since a manifest without the deny would grant more than its source. What every sandbox keeps
// inside of a grant anyway (credentials, .env, .git/hooks ...) may be denied there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/host.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "import/imported.h"
#include "text/document.h"

namespace capgate::imports {

class Rules {
 public:
  // Denies are weighed against grants pair by pair; nobody writes a thousand of either.
  static constexpr std::size_t most_rules = 1024;

  Rules(std::string_view format, const ImportPlace& place) : out_(format, place), place_(place) {}

  // Losses, names and whatever is no path and no host goes to it directly.
  [[nodiscard]] Collector& out() { return out_; }
  [[nodiscard]] const ImportPlace& place() const { return place_; }

  // The document is not what the format says (IMPORT_SHAPE), or says what no manifest may say, or
  // what would be lost in it (IMPORT_REFUSED).
  void complain(Span where, std::string message, std::string help);
  void refuse(Span where, std::string message, std::string help);
  void add(Diagnostic mistake);
  [[nodiscard]] bool failed() const { return !mistakes_.empty(); }

  // ---- the shape of the document ----------------------------------------------------------------

  // Keys that are not known could grant or restrict something: each is a mistake.
  void check_keys(text::Value object, std::span<const std::string_view> known,
                  std::string_view what);
  // A member, if it is there, not null and of the kind; another kind is a mistake.
  [[nodiscard]] std::optional<text::Value> member(text::Value object, std::string_view key,
                                                  text::Kind kind);
  [[nodiscard]] bool flag(text::Value object, std::string_view key);
  [[nodiscard]] std::string_view text(text::Value object, std::string_view key);
  // The elements of a list of texts that are not empty and have no control characters.
  [[nodiscard]] std::vector<text::Value> texts(text::Value object, std::string_view key);
  // The one server that --server names, or the only one: its member of `servers`.
  [[nodiscard]] std::optional<text::Member> choose(text::Value servers, std::string_view what);

  // ---- rules ------------------------------------------------------------------------------------

  // A piece of the source: a path or a host, where it stands, and what the loss report calls it.
  // `path` may hold ${NAME}s that the reader put there, at its start.
  struct Item {
    std::string text;
    Span where;
    std::string_view subject;
  };
  // Without variables: a "${" that the source has is a mistake here.
  [[nodiscard]] std::optional<Item> plain(text::Value value, std::string_view subject);

  void allow_path(Access access, const Item& item);
  // A path that every sandbox shows (core/base_system.h): weighed against denies, not granted.
  void allow_base(const Item& item);
  // A glob that the language lacks denies everything that it might match.
  void deny_path(Access access, const Item& item);
  // The same for reading; no path that is allowed to be read wins over it.
  void deny_reading_for_good(const Item& item);
  // HOST or HOST:PORT.
  void allow_host(const Item& item);
  void allow_endpoint(core::Endpoint endpoint, const Item& item);
  void deny_host(const Item& item);
  [[nodiscard]] std::optional<core::Endpoint> endpoint(const Item& item);
  // A whole capability, checked as the rules are.
  void allow(std::string_view capability, const Item& item);
  void allow_variable(core::EnvCapability::Action action, const Item& item);
  // A variable that the source itself sets: the caller's value of it, unless that is a secret.
  void allow_fixed_variable(const Item& item);
  void allow_program(const Item& item);

  // Relative paths start where `program` is started, and nobody knows where that is: they begin
  // with ${WORKING_DIRECTORY}. Else they start at the file's directory.
  void start_is_unknown(std::string_view program);
  // Of srt: a path that is allowed to be read is not denied by a rule for something around it.
  void allowed_reads_win() { allowed_reads_win_ = true; }
  // Names of hosts may lead into private networks.
  void open_private() { opens_private_ = true; }

  [[nodiscard]] Checked<Imported> finish() &&;

 private:
  struct PathRule {
    Access access = Access::read;
    core::PathPattern path;
    std::string variable;     // the one that the path starts with
    bool is_vague = false;    // a deny of what is not known exactly, somewhere below the path
    bool is_final = false;    // a deny over which no allowed read wins
    bool is_base = false;     // in every sandbox: not granted
    bool is_root = false;     // no other rule that allows as much is around it
    bool is_startup = false;  // what the host runs later
    std::string readable;     // the innermost path around it that the source says may be read
    const core::CredentialPath* credential = nullptr;  // what it is or lies below
    Span where;
    std::string subject;
    std::string text;
  };
  struct HostRule {
    core::Endpoint endpoint;
    Span where;
    std::string subject;
    std::string text;
  };

  [[nodiscard]] Result<PathRule> resolve(Access access, const Item& item) const;
  [[nodiscard]] static core::FsActions actions_of(Access access);
  [[nodiscard]] bool has_room(std::size_t rules, Span where);
  [[nodiscard]] std::string readable_around(const PathRule& rule) const;
  [[nodiscard]] bool is_readable_again(const PathRule& deny, const PathRule& allow) const;
  [[nodiscard]] bool is_never_inside(const PathRule& deny) const;
  [[nodiscard]] bool is_kept_everywhere(const PathRule& deny) const;
  [[nodiscard]] bool is_kept_anyway(const PathRule& deny) const;
  [[nodiscard]] bool holds_a_rule(const PathRule& deny) const;
  void prepare_paths();
  void apply(const PathRule& deny);
  void apply(const HostRule& deny);
  void grant(const PathRule& rule);
  void grant(const HostRule& rule);

  // A variable stands for one directory: inside a path it is a component that no path has.
  static constexpr std::string_view stand_in = "/..variable..";
  // The variable of relative paths where nobody knows what they start from.
  static constexpr std::string_view working_directory = "WORKING_DIRECTORY";

  Collector out_;
  ImportPlace place_;
  std::vector<PathRule> paths_;
  std::vector<PathRule> denied_paths_;
  std::vector<HostRule> hosts_;
  std::vector<HostRule> denied_hosts_;
  Diagnostics mistakes_;
  std::string program_;  // with whose start relative paths begin; empty: at the file's directory
  bool allowed_reads_win_ = false;
  bool opens_private_ = false;
  bool is_full_ = false;
};

// Where the whole text of a string stands, without its quotes.
[[nodiscard]] Span whole(text::Value item);

// True if the root is an object with this key of this kind: what detection is made of.
[[nodiscard]] bool has_member(text::Value object, std::string_view key, text::Kind kind);

}  // namespace capgate::imports
