#include <algorithm>
#include <utility>

#include "base/text.h"
#include "seal/ring.h"
#include "seal/spelling.h"
#include "seal/swap.h"

namespace capgate::seal {
namespace {

// Less would occur by accident.
constexpr std::size_t shortest_scrubbed = 8;

using Spellings = std::vector<Wiped>;

// The value itself first, whatever its length; each spelling once.
Spellings spellings_of(std::string_view value) {
  Spellings out;
  const auto add = [&](std::string text) {
    Wiped spelling(std::move(text));
    const bool is_known = std::ranges::any_of(
        out, [&](const Wiped& known) { return known.view() == spelling.view(); });
    if (!is_known) out.push_back(std::move(spelling));
  };
  add(std::string(value));
  add(percent_encoded(value, HexCase::upper));
  add(percent_encoded(value, HexCase::lower));
  add(json_escaped(value, Slash::plain));
  add(json_escaped(value, Slash::escaped));
  for (const std::size_t before : {0U, 1U, 2U}) {
    add(base64_inside(value, before, Alphabet::standard));
    add(base64_inside(value, before, Alphabet::url_safe));
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
  Matcher::Options options{
      .patterns = {}, .memory = Matcher::Memory::locked, .shortest = shortest_scrubbed};
  for_each_scrubbed(ring, [&](const Key& key, std::string_view value) {
    table->as_such.push_back(options.patterns.size());
    for (const Wiped& spelling : spellings.emplace_back(spellings_of(value))) {
      options.patterns.push_back(spelling.view());
      table->owners.push_back(&key);
    }
  });
  // Without a value there is nothing to be kept secret, and locked memory is scarce.
  if (options.patterns.empty()) options.memory = Matcher::Memory::ordinary;
  table->matcher = std::make_unique<const Matcher>(options);
  return table;
}

void overwrite(std::string& text, const Matcher::Match& match, const ScrubTable& table) {
  const std::string_view placeholder = table.owners[match.pattern]->placeholder;
  for (std::size_t i = 0; i < match.size; ++i) {
    text[match.at + i] = placeholder[i % placeholder.size()];
  }
}

std::size_t scrub_text(std::string& text, const ScrubTable& table) {
  auto found = table.matcher->find(text, 0);
  if (!found) return 0;
  const Wiped original{std::string(text)};
  std::size_t count = 0;
  for (; found; found = table.matcher->find(original.view(), found->at + 1)) {
    overwrite(text, *found, table);
    ++count;
  }
  return count;
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
  std::string held;          // the beginning of what may be a value, as it came
  std::string held_changed;  // the same as it will leave, if an earlier match reaches into it
  std::string joined;        // `held` and what came after it
  std::string changed;

  explicit State(std::shared_ptr<const Ring> shared)
      : ring(std::move(shared)), table(scrub_table(*ring)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() {
    secrets::wipe(held);
    secrets::wipe(joined);
  }

  std::string_view pass(std::string_view bytes, bool is_last);
};

std::string_view Scrub::State::pass(std::string_view bytes, bool is_last) {
  // A long answer may outlive a value: what it says next may hold the renewed one.
  table = scrub_table(*ring);
  std::string_view text = bytes;
  if (!held.empty()) {
    joined.assign(held).append(bytes);
    text = joined;
  }
  bool is_changed = !held_changed.empty();
  if (is_changed) changed.assign(held_changed).append(bytes);

  const Matcher& values = *table->matcher;
  const std::size_t end = is_last ? text.size() : values.tail(text, 0);
  // What begins behind `end` may turn out to be longer: it is found again then.
  for (auto match = values.find(text, 0); match && match->at < end;
       match = values.find(text, match->at + 1)) {
    if (!is_changed) changed.assign(text);
    is_changed = true;
    overwrite(changed, *match, *table);
    ++found;
  }
  const std::string_view out = is_changed ? std::string_view(changed) : text;
  held.assign(text.substr(end));
  held_changed.assign(is_changed ? out.substr(end) : std::string_view());
  return out.substr(0, end);
}

Scrub::Scrub(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scrub::Scrub(Scrub&&) noexcept = default;
Scrub& Scrub::operator=(Scrub&&) noexcept = default;
Scrub::~Scrub() = default;

std::string_view Scrub::pass(std::string_view bytes) { return state_->pass(bytes, false); }
std::string_view Scrub::rest() { return state_->pass({}, true); }
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
