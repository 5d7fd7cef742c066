#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "seal/ring.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace capgate::seal {
namespace {

// Less would occur by accident.
constexpr std::size_t shortest_scrubbed = 8;

// A wrapped line may begin this early in base64 without being held back; the rest of it is searched
// by itself.
constexpr std::size_t before_wrapping = 2;

struct Spelling {
  Wiped text;
  Wrapping wrapping = Wrapping::none;
};
using Spellings = std::vector<Spelling>;

// The value itself first, whatever its length; each spelling once. Escapes are the matter of
// EscapedMatcher.
Spellings spellings_of(std::string_view value) {
  Spellings out;
  const auto add = [&](std::string text, Wrapping wrapping) {
    Wiped spelling(std::move(text));
    const bool is_known = std::ranges::any_of(
        out, [&](const Spelling& known) { return known.text.view() == spelling.view(); });
    if (!is_known) out.push_back({.text = std::move(spelling), .wrapping = wrapping});
  };
  add(std::string(value), Wrapping::none);
  add(hex_encoded(value, HexCase::lower), Wrapping::none);
  add(hex_encoded(value, HexCase::upper), Wrapping::none);
  for (const std::size_t before : {0U, 1U, 2U}) {
    for (const Alphabet alphabet : {Alphabet::standard, Alphabet::url_safe}) {
      const Wiped encoded(base64_inside(value, before, alphabet));
      add(std::string(encoded.view()), Wrapping::lines);
      if (encoded.view().size() > before_wrapping) {
        add(std::string(encoded.view().substr(before_wrapping)), Wrapping::lines);
      }
    }
  }
  return out;
}

// Each value that an answer may hold, with its key.
template <typename Each>
void for_each_scrubbed(const Ring& ring, const Each& each) {
  for (const Key& key : ring.keys) {
    if (!key.is_bound_here) continue;
    if (key.value != nullptr) each(key, key.value->view());
    for (const secrets::Secret* former : key.former) {
      if (former != key.value && !former->is_empty()) each(key, former->view());
    }
  }
}

bool is_current(const ScrubTable& table, const Ring& ring) {
  std::size_t count = 0;
  bool is_same = true;
  for_each_scrubbed(ring, [&](const Key& /*key*/, std::string_view value) {
    is_same = is_same && count < table.as_such.size() &&
              table.matcher->pattern(table.as_such[count]) == value;
    ++count;
  });
  return is_same && count == table.as_such.size();
}

std::shared_ptr<const ScrubTable> make_scrub_table(const Ring& ring) {
  auto table = std::make_shared<ScrubTable>();
  std::vector<Spellings> spellings;
  std::vector<Wrapping> wrappings;
  Matcher::Options options{
      .patterns = {}, .memory = Matcher::Memory::locked, .shortest = shortest_scrubbed};
  for_each_scrubbed(ring, [&](const Key& key, std::string_view value) {
    table->as_such.push_back(options.patterns.size());
    for (const Spelling& spelling : spellings.emplace_back(spellings_of(value))) {
      options.patterns.push_back(spelling.text.view());
      wrappings.push_back(spelling.wrapping);
      table->owners.push_back(&key);
    }
  });
  // Without a value there is nothing to be kept secret, and locked memory is scarce.
  if (options.patterns.empty()) options.memory = Matcher::Memory::ordinary;
  table->matcher = std::make_unique<const Matcher>(options);
  table->escaped = std::make_unique<const EscapedMatcher>(*table->matcher, std::move(wrappings));
  return table;
}

void overwrite(std::string& text, const Matcher::Match& match, const ScrubTable& table) {
  const std::string_view placeholder = table.owners[match.pattern]->placeholder;
  for (std::size_t i = 0; i < match.size; ++i) {
    text[match.at + i] = placeholder[i % placeholder.size()];
  }
}

struct Search {
  std::vector<Matcher::Match> matches;  // by their beginning
  std::size_t end = 0;                  // what begins behind it is not decided yet
  std::size_t covered = 0;              // the end of what matches cover
};

// The longest match of each beginning, but none inside of what earlier ones cover; so the result
// does not depend on how the text was cut.
void settle_matches(Search& search) {
  std::ranges::sort(search.matches, [](const Matcher::Match& a, const Matcher::Match& b) {
    return std::tie(a.at, b.size, a.pattern) < std::tie(b.at, a.size, b.pattern);
  });
  std::erase_if(search.matches, [&](const Matcher::Match& match) {
    const std::size_t end = match.at + match.size;
    // What begins behind the end may turn out to be longer: it is found again then.
    if (match.at >= search.end || end <= search.covered) return true;
    search.covered = end;
    return false;
  });
}

// `covered`: so many bytes at the beginning are overwritten by matches that began before.
Search search(std::string_view text, std::size_t covered, const ScrubTable& table, Ending ending) {
  Search out{.matches = {}, .end = 0, .covered = covered};
  const Matcher& values = *table.matcher;
  out.end = table.escaped->find(text, ending, out.matches);
  if (ending == Ending::open) out.end = std::min(out.end, values.tail(text, 0));
  for (auto match = values.find(text, 0); match && match->at < out.end;
       match = values.find(text, match->at + 1)) {
    out.matches.push_back(*match);
  }
  settle_matches(out);
  return out;
}

std::size_t scrub_text(std::string& text, const ScrubTable& table) {
  const Search found = search(text, 0, table, Ending::last);
  for (const Matcher::Match& match : found.matches) overwrite(text, match, table);
  return found.matches.size();
}

std::size_t scrub_fields(std::vector<Field>& fields, const ScrubTable& table) {
  std::size_t count = 0;
  for (Field& field : fields) {
    count += scrub_text(field.value, table);
    if (const std::size_t in_name = scrub_text(field.name, table)) {
      field.name = to_lower(field.name);  // HTTP/2 knows no other
      count += in_name;
    }
  }
  return count;
}

}  // namespace

std::shared_ptr<const ScrubTable> scrub_table(const Ring& ring) {
  if (ring.scrub_table == nullptr || !is_current(*ring.scrub_table, ring)) {
    ring.scrub_table = make_scrub_table(ring);
  }
  return ring.scrub_table;
}

struct Scrub::State {
  std::shared_ptr<const Ring> ring;  // owns the placeholders
  std::shared_ptr<const ScrubTable> table;
  std::size_t found = 0;
  Wiped held{{}};           // the beginning of what may be a value, as it came
  Wiped held_changed{{}};   // the same as it will leave, if an earlier match reaches into it
  std::size_t covered = 0;  // bytes at the beginning of `held` that such a match covers
  Wiped joined{{}};         // `held` and what came after it
  Wiped changed{{}};

  explicit State(std::shared_ptr<const Ring> shared)
      : ring(std::move(shared)), table(scrub_table(*ring)) {}

  std::string_view pass(std::string_view bytes, Ending ending);
};

std::string_view Scrub::State::pass(std::string_view bytes, Ending ending) {
  // A long answer may outlive a value: what it says next may hold the renewed one.
  table = scrub_table(*ring);
  std::string_view text = bytes;
  if (!held.view().empty()) {
    assign_wiping(joined.text(), held.view());
    append_wiping(joined.text(), bytes);
    text = joined.view();
  }
  bool is_changed = !held_changed.view().empty();
  if (is_changed) {
    assign_wiping(changed.text(), held_changed.view());
    append_wiping(changed.text(), bytes);
  }

  const Search result = search(text, covered, *table, ending);
  for (const Matcher::Match& match : result.matches) {
    if (!is_changed) assign_wiping(changed.text(), text);
    is_changed = true;
    overwrite(changed.text(), match, *table);
    ++found;
  }
  const std::string_view out = is_changed ? changed.view() : text;
  covered = std::max(result.covered, result.end) - result.end;
  assign_wiping(held.text(), text.substr(result.end));
  assign_wiping(held_changed.text(), is_changed ? out.substr(result.end) : std::string_view());
  return out.substr(0, result.end);
}

Scrub::Scrub(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scrub::Scrub(Scrub&&) noexcept = default;
Scrub& Scrub::operator=(Scrub&&) noexcept = default;
Scrub::~Scrub() = default;

std::string_view Scrub::pass(std::string_view bytes) { return state_->pass(bytes, Ending::open); }
std::string_view Scrub::rest() { return state_->pass({}, Ending::last); }
std::string Scrub::push(std::string_view bytes) { return std::string(pass(bytes)); }
std::string Scrub::finish() { return std::string(rest()); }
std::size_t Scrub::found() const { return state_->found; }

Scrub Keyring::response_body() const { return Scrub(std::make_unique<Scrub::State>(ring_)); }

std::size_t Keyring::scrub(Response& response) const {
  const auto table = scrub_table(*ring_);
  return scrub_text(response.reason, *table) + scrub_fields(response.fields, *table);
}

std::size_t Keyring::scrub(std::vector<Field>& trailers) const {
  return scrub_fields(trailers, *scrub_table(*ring_));
}

bool Keyring::is_readable(const Response& response) const {
  const int status = response.status;
  if (!ring_->is_bound_here || status < 200 || status == 204 || status == 304) return true;
  return std::ranges::all_of(response.fields, [](const Field& field) {
    if (!is_field(field, "content-encoding")) return true;
    return std::ranges::all_of(split(field.value, ','), [](std::string_view coding) {
      const std::string name = to_lower(trim(coding));
      return name.empty() || name == "identity";
    });
  });
}

}  // namespace capgate::seal
