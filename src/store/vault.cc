#include "store/vault.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/text.h"

namespace capgate::store {
namespace {

using secrets::Secret;

Outcome<Secret> wrapping_key(const WrappedKey& key, const Secret& material) {
  auto derived = key.source.kind == KeySource::Kind::passphrase
                     ? stretch(material.view(), key.salt, key.cost)
                     : extract(material.view(), key.salt);
  if (!derived) return std::unexpected(problem_of(derived.error()));
  return *std::move(derived);
}

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

template <typename T>
Outcome<T> checked(std::expected<T, Failure> made) {
  if (!made) return std::unexpected(problem_of(made.error()));
  return *std::move(made);
}

Outcome<WrappedKey> wrap(const Secret& data_key, const KeySource& source, const Secret& material) {
  constexpr std::size_t id_bytes = 8;
  WrappedKey key{.id = hex_of(TRY(checked(random_bytes(id_bytes)))),
                 .source = source,
                 .cost = source.kind == KeySource::Kind::passphrase ? usual_cost : 0,
                 .salt = TRY(checked(random_bytes(salt_size)))};
  const Secret wrapping = TRY(wrapping_key(key, material));
  key.sealed = TRY(checked(seal(wrapping, bound_to(key), data_key.view())));
  return key;
}

std::string_view hint_of(KeySource::Kind kind) {
  switch (kind) {
    case KeySource::Kind::passphrase: return "type the passphrase of this store";
    case KeySource::Kind::file: return "put the file there that the store was made with";
    case KeySource::Kind::keyring:
      return "load the key that the store was made with (keyctl padd user NAME @u)";
  }
  return {};
}

auto place_of(const Entry& entry) { return std::tie(entry.server, entry.name); }

auto lower_bound(auto& entries, const Place& place) {
  return std::ranges::lower_bound(entries, std::tie(place.server, place.name), {}, place_of);
}

const Entry* find_exact(const StoreFile& file, const Place& place) {
  const auto found = lower_bound(file.entries, place);
  const bool is_there =
      found != file.entries.end() && found->server == place.server && found->name == place.name;
  return is_there ? &*found : nullptr;
}

}  // namespace

const Entry* find_entry(const StoreFile& file, const Place& place) {
  const Entry* own = find_exact(file, place);
  return own != nullptr ? own
                        : find_exact(file, {.server = std::string(any_server), .name = place.name});
}

std::unexpected<Problem> no_entry(const Place& place) {
  return unavailable(format("the store has no {} for {}", quoted(place.name),
                            place.server == any_server ? "any server" : quoted(place.server)),
                     "see capgate secret list; capgate secret set adds one");
}

Outcome<Vault> Vault::make(const KeySource& source, const Secret& material) {
  Vault vault;
  vault.data_key_ = TRY(checked(random_key()));
  vault.file_.key = TRY(wrap(vault.data_key_, source, material));
  return vault;
}

Outcome<Vault> Vault::open(StoreFile file, const Secret& material) {
  const Secret wrapping = TRY(wrapping_key(file.key, material));
  auto data_key = store::open(wrapping, file.key.sealed, bound_to(file.key));
  if (!data_key && data_key.error() == Failure::forged) {
    return unavailable(
        format("this key does not open the store ({}): it is another one, or the file was changed",
               escape_for_terminal(to_text(file.key.source))),
        std::string(hint_of(file.key.source.kind)));
  }
  Vault vault;
  vault.data_key_ = TRY(checked(std::move(data_key)));
  const auto whole = store::open(vault.data_key_, file.whole, bound_to(file));
  if (!whole && whole.error() == Failure::forged) {
    return damaged("the store is damaged: it was changed by something else than capgate");
  }
  if (!whole) return std::unexpected(problem_of(whole.error()));
  vault.file_ = std::move(file);
  return vault;
}

Outcome<Secret> Vault::open_entry(const Entry& entry) const {
  auto value = store::open(data_key_, entry.sealed, bound_to(file_.key, entry));
  if (!value && value.error() == Failure::forged) {
    return damaged(format("the store is damaged: {} is not what was sealed", quoted(entry.name)));
  }
  return checked(std::move(value));
}

Outcome<Secret> Vault::get(const Place& place) const {
  const Entry* entry = find_entry(file_, place);
  if (entry == nullptr) return no_entry(place);
  return open_entry(*entry);
}

Outcome<void> Vault::set(const Place& place, std::string_view value, std::string_view now) {
  const Entry* old = find_exact(file_, place);
  Entry entry{.server = place.server,
              .name = place.name,
              .created = old == nullptr ? std::string(now) : old->created,
              .changed = std::string(now)};
  entry.sealed = TRY(checked(seal(data_key_, bound_to(file_.key, entry), value)));
  const auto at = lower_bound(file_.entries, place);
  if (old != nullptr) {
    *at = std::move(entry);
  } else {
    file_.entries.insert(at, std::move(entry));
  }
  return {};
}

Outcome<void> Vault::remove(const Place& place) {
  if (find_exact(file_, place) == nullptr) return no_entry(place);
  file_.entries.erase(lower_bound(file_.entries, place));
  return {};
}

Outcome<void> Vault::rotate(const KeySource& source, const Secret& material) {
  Vault next = TRY(make(source, material));
  for (const Entry& entry : file_.entries) {
    const Secret value = TRY(open_entry(entry));
    Entry renewed = entry;
    renewed.sealed =
        TRY(checked(seal(next.data_key_, bound_to(next.file_.key, renewed), value.view())));
    next.file_.entries.push_back(std::move(renewed));
  }
  *this = std::move(next);
  return {};
}

Outcome<std::string> Vault::text() {
  file_.whole = TRY(checked(seal(data_key_, bound_to(file_), {})));
  std::string out = write_store(file_);
  if (out.size() > largest_store) {
    return unavailable("the store would be too large", "remove what is no longer used");
  }
  return out;
}

}  // namespace capgate::store
