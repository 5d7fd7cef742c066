#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "seal/ring.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace capgate::seal {
namespace {

using Kind = core::SecretPlace::Kind;

enum class Part : unsigned char { method, path, query, authority, name, field, basic, trailer };

// Where a placeholder was seen.
struct Sighting {
  std::size_t key = 0;
  Part part = Part::method;
  std::size_t field = 0;  // name, field, basic and trailer: which
  std::size_t at = 0;     // in the part; in the decoded credentials
  bool is_plain = true;   // neither percent-encoded nor base64
};
using Sightings = std::vector<Sighting>;

// Encoded again and again, it is as far from the origin's own reading as from ours.
constexpr int most_decodings = 3;

// The base64 of "Basic base64".
std::optional<std::string_view> basic_credentials(const Field& field) {
  constexpr std::string_view scheme = "basic ";
  const std::string_view value = field.value;
  if (!is_field(field, "authorization") || to_lower(value.substr(0, scheme.size())) != scheme) {
    return std::nullopt;
  }
  return value.substr(std::min(value.find_first_not_of(' ', scheme.size()), value.size()));
}

std::size_t query_start(std::string_view target) {
  return std::min(target.find('?'), target.size());
}

class Search {
 public:
  explicit Search(const Ring& ring) : ring_(ring) {}

  void look_at(const Request& request);
  void look_at_field(const Field& field, std::size_t index);
  void look_at_trailer(const Field& field, std::size_t index);
  [[nodiscard]] Sightings& found() { return found_; }

 private:
  enum class Look : unsigned char { plain, all };
  void look(std::string_view text, Sighting where, Look look = Look::all);
  void look_decoded(std::string_view text, Sighting where, std::size_t before);
  void look_in_lower_case(std::string_view text, Sighting where);

  const Ring& ring_;
  Sightings found_;
};

void Search::look(std::string_view text, Sighting where, Look look) {
  const Matcher& matcher = *ring_.head_matcher;
  const std::size_t before = found_.size();
  for (auto match = matcher.find(text, 0); match;
       match = matcher.find(text, match->at + match->size)) {
    where.key = ring_.key_of_head_pattern(match->pattern);
    where.at = match->at;
    where.is_plain = match->pattern < ring_.keys.size();
    if (where.is_plain || look == Look::all) found_.push_back(where);
  }
  look_decoded(text, where, before);
}

// What occurs more often after decoding than before was encoded.
void Search::look_decoded(std::string_view text, Sighting where, std::size_t before) {
  const Matcher& matcher = *ring_.head_matcher;
  where.is_plain = false;
  std::optional<std::string> decoded = percent_decoded(text);
  for (int i = 0; decoded && i < most_decodings; ++i, decoded = percent_decoded(*decoded)) {
    std::vector<std::size_t> counts(ring_.keys.size());
    for (std::size_t known = before; known < found_.size(); ++known) ++counts[found_[known].key];
    for (auto match = matcher.find(*decoded, 0); match;
         match = matcher.find(*decoded, match->at + match->size)) {
      where.key = ring_.key_of_head_pattern(match->pattern);
      if (counts[where.key] > 0) {
        --counts[where.key];
      } else {
        found_.push_back(where);
      }
    }
  }
}

// Where clients change upper to lower case by themselves.
void Search::look_in_lower_case(std::string_view text, Sighting where) {
  const Matcher& matcher = *ring_.lower_case_matcher;
  if (text.size() < matcher.shortest()) return;
  const std::string lower = to_lower(text);
  for (auto match = matcher.find(lower, 0); match;
       match = matcher.find(lower, match->at + match->size)) {
    where.key = match->pattern;
    found_.push_back(where);
  }
}

void Search::look_at(const Request& request) {
  look(request.method, {.part = Part::method});
  const std::string_view target = request.target;
  const std::size_t query = query_start(target);
  look(target.substr(0, query), {.part = Part::path});
  if (query < target.size()) look(target.substr(query + 1), {.part = Part::query});
  look_in_lower_case(request.authority, {.part = Part::authority});
  for (std::size_t i = 0; i < request.fields.size(); ++i) look_at_field(request.fields[i], i);
}

void Search::look_at_field(const Field& field, std::size_t index) {
  look_in_lower_case(field.name, {.part = Part::name, .field = index});
  const auto credentials = basic_credentials(field);
  const auto decoded = credentials ? base64_decoded(*credentials) : std::nullopt;
  // The base64 of it is seen as what it says, not as base64.
  look(field.value, {.part = Part::field, .field = index}, decoded ? Look::plain : Look::all);
  if (decoded) look(*decoded, {.part = Part::basic, .field = index});
}

void Search::look_at_trailer(const Field& field, std::size_t index) {
  look_in_lower_case(field.name, {.part = Part::trailer, .field = index});
  look(field.value, {.part = Part::trailer, .field = index});
}

bool is_allowed(const Sighting& seen, const Key& key, const Request& request) {
  if (!seen.is_plain) return false;
  switch (key.as.kind) {
    case Kind::header:
      return seen.part == Part::field && is_field(request.fields[seen.field], key.as.header);
    case Kind::basic: return seen.part == Part::basic;
    case Kind::query: return seen.part == Part::query;
    case Kind::path: return seen.part == Part::path;
    case Kind::body: return false;
  }
  std::unreachable();
}

// Inside credentials whose base64 holds another one as such: neither could be put in without
// changing what the other stands in.
bool is_mixed(const Sighting& seen, const Sightings& found) {
  return seen.part == Part::basic && std::ranges::any_of(found, [&](const Sighting& other) {
           return other.part == Part::field && other.field == seen.field;
         });
}

struct PlaceName {
  std::string place;
  std::string allowing;  // the `as`, if there is one
};

bool is_plain_name(std::string_view name) {
  constexpr std::size_t longest_shown = 64;
  return name.size() <= longest_shown &&
         std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '-' || c == '_'; });
}

PlaceName name_of_field(const Field& field) {
  if (!is_plain_name(field.name)) return {"another field", {}};
  const std::string name = to_lower(field.name);
  return {"the field " + name, "header:" + name};
}

PlaceName name_of(const Sighting& seen, const std::vector<Field>& fields) {
  PlaceName out;
  switch (seen.part) {
    case Part::method: out = {"the method", {}}; break;
    case Part::path: out = {"the path", "path"}; break;
    case Part::query: out = {"the query", "query"}; break;
    case Part::authority: out = {"the host", {}}; break;
    case Part::name: out = {"the name of a field", {}}; break;
    case Part::field: out = name_of_field(fields[seen.field]); break;
    case Part::basic: out = {"Basic credentials", "basic"}; break;
    case Part::trailer: out = {"a trailer", {}}; break;
  }
  if (!seen.is_plain) out = {out.place + ", encoded", {}};
  return out;
}

Misuse misplaced(const Key& key, const Sighting& seen, const std::vector<Field>& fields) {
  const PlaceName name = name_of(seen, fields);
  return key.is_bound_here ? other_place(key, name.place, name.allowing)
                           : other_host(key, name.place);
}

bool can_stand_in_field(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return is_control(c) && c != '\t'; });
}

std::expected<void, Misuse> judge(const Sightings& found, const Ring& ring,
                                  const Request& request) {
  std::vector<bool> is_seen(ring.keys.size());
  for (const Sighting& seen : found) {
    const Key& key = ring.keys[seen.key];
    if (!key.is_bound_here || !is_allowed(seen, key, request) || is_mixed(seen, found)) {
      return std::unexpected(misplaced(key, seen, request.fields));
    }
    if (is_seen[seen.key]) {
      return std::unexpected(
          Misuse{.reason = "doubled",
                 .name = key.name,
                 .text = format("the placeholder of {} stands more than once in the head of the "
                                "request",
                                key.name)});
    }
    is_seen[seen.key] = true;
    if (key.value == nullptr) return std::unexpected(not_renewed(key));
    if (key.as.kind == Kind::header && !can_stand_in_field(key.value->view())) {
      return std::unexpected(
          Misuse{.reason = "unfit-value",
                 .name = key.name,
                 .text = format("the value of {} holds a control character, which cannot stand in "
                                "a field",
                                key.name)});
    }
  }
  return {};
}

void put_into_target(const Key& key, std::size_t at, Request& request) {
  const Wiped value(percent_encoded(key.value->view()));
  replace_wiping(request.target, at, key.placeholder.size(), value.view());
  request.target_is_secret = true;
}

void put_into_credentials(const Key& key, std::size_t at, Field& field) {
  const std::string_view credentials = *basic_credentials(field);
  Wiped decoded(*base64_decoded(credentials));
  replace_wiping(decoded.text(), at, key.placeholder.size(), key.value->view());
  const Wiped encoded(base64(decoded.view()));
  replace_wiping(field.value, field.value.size() - credentials.size(), credentials.size(),
                 encoded.view());
  field.is_secret = true;
}

void put_in(const Key& key, const Sighting& seen, Request& request) {
  switch (key.as.kind) {
    case Kind::header: {
      Field& field = request.fields[seen.field];
      replace_wiping(field.value, seen.at, key.placeholder.size(), key.value->view());
      field.is_secret = true;
      return;
    }
    case Kind::basic: return put_into_credentials(key, seen.at, request.fields[seen.field]);
    case Kind::query:
      return put_into_target(key, query_start(request.target) + 1 + seen.at, request);
    case Kind::path: return put_into_target(key, seen.at, request);
    case Kind::body: return;
  }
}

// What comes back can be read then, and holds a value whole or not at all.
void ask_for_readable(std::vector<Field>& fields) {
  bool is_asked = false;
  std::erase_if(fields, [&](Field& field) {
    if (is_field(field, "range") || is_field(field, "request-range") ||
        is_field(field, "if-range") || is_field(field, "sec-websocket-extensions")) {
      return true;
    }
    if (!is_field(field, "accept-encoding")) return false;
    field.value = "identity";
    return std::exchange(is_asked, true);
  });
  if (!is_asked) fields.push_back({.name = "accept-encoding", .value = "identity"});
}

}  // namespace

std::expected<std::vector<std::string>, Misuse> Keyring::swap(Request& request) const {
  Search search(*ring_);
  search.look_at(request);
  Sightings& found = search.found();
  TRY(judge(found, *ring_, request));

  std::vector<std::string> names;
  // From the right to the left: what is put in moves nothing that is still to be replaced.
  std::ranges::sort(found, std::ranges::greater{}, [](const Sighting& seen) {
    return std::tuple(seen.part == Part::query, seen.field, seen.at);
  });
  for (const Sighting& seen : found) {
    put_in(ring_->keys[seen.key], seen, request);
    names.push_back(ring_->keys[seen.key].name);
  }
  std::ranges::reverse(names);
  if (ring_->is_bound_here) ask_for_readable(request.fields);
  return names;
}

std::expected<void, Misuse> Keyring::check_trailers(const std::vector<Field>& fields) const {
  Search search(*ring_);
  for (std::size_t i = 0; i < fields.size(); ++i) search.look_at_trailer(fields[i], i);
  if (search.found().empty()) return {};
  const Sighting& seen = search.found().front();
  return std::unexpected(misplaced(ring_->keys[seen.key], seen, fields));
}

}  // namespace capgate::seal
