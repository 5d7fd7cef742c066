#include "store/store_file.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <tuple>

#include "base/base64.h"
#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::store {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

constexpr std::string_view format_name = "capgate-secrets";
constexpr std::string_view format_version = "1";
constexpr std::size_t id_size = 16;

// ---- reading: the first mistake is kept, and what is read after it is never used ----------------

class Reader {
 public:
  std::string text(Value object, std::string_view key) {
    const auto value = member(object, key, Kind::string);
    return value ? std::string(value->text()) : std::string();
  }
  std::uint64_t number(Value object, std::string_view key) {
    const auto value = member(object, key, Kind::number);
    const auto number = value ? parse_decimal(value->text()) : std::nullopt;
    if (!number) refuse(format("{} is no whole number", quoted(key)));
    return number.value_or(0);
  }
  std::string bytes(Value object, std::string_view key, std::size_t least, std::size_t most) {
    const auto decoded = decode_base64(text(object, key));
    if (!decoded || decoded->size() < least || decoded->size() > most) {
      refuse(format("{} is not what it must be", quoted(key)));
      return {};
    }
    return *decoded;
  }
  Sealed sealed(Value object, std::size_t least, std::size_t most) {
    return {.nonce = bytes(object, "nonce", nonce_size, nonce_size),
            .bytes = bytes(object, "sealed", least + tag_size, most + tag_size)};
  }
  std::optional<Value> member(Value object, std::string_view key, Kind kind) {
    const auto value = object.is(Kind::object) ? object.find(key) : std::nullopt;
    if (value && value->is(kind)) return value;
    refuse(format("{} is missing, or is something else", quoted(key)));
    return std::nullopt;
  }
  void check(bool is_right, std::string_view what) {
    if (!is_right) refuse(format("{} is not what it must be", quoted(what)));
  }
  void refuse(std::string why) {
    if (!mistake_) mistake_ = std::move(why);
  }
  [[nodiscard]] const std::optional<std::string>& mistake() const { return mistake_; }

 private:
  std::optional<std::string> mistake_;
};

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

WrappedKey read_key(Reader& reader, Value object) {
  WrappedKey key{.id = reader.text(object, "id")};
  reader.check(key.id.size() == id_size && std::ranges::all_of(key.id, is_hex), "id");
  if (auto source = parse_key_source(reader.text(object, "source"))) {
    key.source = *std::move(source);
  } else {
    reader.check(false, "source");
  }
  if (key.source.kind == KeySource::Kind::passphrase) {
    key.cost = reader.number(object, "scryptN");
    const bool is_bearable = key.cost >= least_cost && key.cost <= largest_cost;
    reader.check(is_bearable && std::has_single_bit(key.cost), "scryptN");
  }
  key.salt = reader.bytes(object, "salt", salt_size, salt_size);
  key.sealed = reader.sealed(object, key_size, key_size);
  return key;
}

Entry read_entry(Reader& reader, Value object) {
  Entry entry{.server = reader.text(object, "server"),
              .name = reader.text(object, "name"),
              .created = reader.text(object, "created"),
              .changed = reader.text(object, "changed"),
              .sealed = reader.sealed(object, 1, largest_value)};
  reader.check(is_valid_server(entry.server), "server");
  reader.check(is_valid_name(entry.name), "name");
  reader.check(is_valid_time(entry.created), "created");
  reader.check(is_valid_time(entry.changed), "changed");
  return entry;
}

auto place_of(const Entry& entry) { return std::tie(entry.server, entry.name); }

StoreFile read_parts(Reader& reader, Value root) {
  StoreFile file;
  if (const auto key = reader.member(root, "key", Kind::object)) file.key = read_key(reader, *key);
  if (const auto entries = reader.member(root, "entries", Kind::array)) {
    for (const Value entry : entries->elements()) {
      file.entries.push_back(read_entry(reader, entry));
      if (reader.mistake()) break;
    }
  }
  if (const auto whole = reader.member(root, "whole", Kind::object)) {
    file.whole = reader.sealed(*whole, 0, 0);
  }
  const auto is_not_before = [](const Entry& a, const Entry& b) {
    return place_of(a) >= place_of(b);
  };
  reader.check(std::ranges::adjacent_find(file.entries, is_not_before) == file.entries.end(),
               "entries");
  return file;
}

Outcome<void> check_version(Value root) {
  const auto name = root.is(Kind::object) ? root.find("format") : std::nullopt;
  const auto version = root.is(Kind::object) ? root.find("version") : std::nullopt;
  if (!name || !name->is(Kind::string) || name->text() != format_name || !version ||
      !version->is(Kind::number)) {
    return damaged("the file is no store of secrets");
  }
  if (version->text() != format_version) {
    return unavailable(format("the store has format {}, this capgate knows {}",
                              quoted(version->text()), format_version),
                       "use the capgate that wrote it, or a newer one");
  }
  return {};
}

// ---- writing ------------------------------------------------------------------------------------

void add_sealed(JsonWriter& json, const Sealed& sealed) {
  json.key("nonce").plain_string(base64(sealed.nonce));
  json.key("sealed").plain_string(base64(sealed.bytes));
}

void add_key(JsonWriter& json, const WrappedKey& key) {
  json.key("key").begin_object().key("id").string(key.id);
  json.key("source").string(to_text(key.source));
  if (key.source.kind == KeySource::Kind::passphrase) json.key("scryptN").number(key.cost);
  json.key("salt").plain_string(base64(key.salt));
  add_sealed(json, key.sealed);
  json.end_object();
}

void add_entry(JsonWriter& json, const Entry& entry) {
  json.begin_object().key("server").string(entry.server).key("name").string(entry.name);
  json.key("created").string(entry.created).key("changed").string(entry.changed);
  add_sealed(json, entry.sealed);
  json.end_object();
}

std::string with_lengths(std::initializer_list<std::string_view> fields) {
  std::string out;
  for (const std::string_view field : fields) {
    for (unsigned shift = 56;; shift -= 8) {
      out += static_cast<char>((std::uint64_t{field.size()} >> shift) & 0xff);
      if (shift == 0) break;
    }
    out += field;
  }
  return out;
}

}  // namespace

std::optional<KeySource> parse_key_source(std::string_view text) {
  using enum KeySource::Kind;
  constexpr std::string_view file_prefix = "file:";
  constexpr std::string_view keyring_prefix = "keyring:";
  constexpr std::size_t longest_path = 4095;
  if (text == "passphrase") return KeySource{.kind = passphrase, .reference = {}};
  if (text.starts_with(file_prefix)) {
    const std::string_view path = text.substr(file_prefix.size());
    if (!path.starts_with('/') || path.size() > longest_path || find_invalid_utf8(path) ||
        std::ranges::any_of(path, is_control)) {
      return std::nullopt;
    }
    return KeySource{.kind = file, .reference = std::string(path)};
  }
  if (!text.starts_with(keyring_prefix)) return std::nullopt;
  const std::string_view name = text.substr(keyring_prefix.size());
  if (!is_valid_name(name)) return std::nullopt;
  return KeySource{.kind = keyring, .reference = std::string(name)};
}

std::string to_text(const KeySource& source) {
  switch (source.kind) {
    case KeySource::Kind::passphrase: return "passphrase";
    case KeySource::Kind::file: return "file:" + source.reference;
    case KeySource::Kind::keyring: return "keyring:" + source.reference;
  }
  return {};
}

Outcome<StoreFile> read_store(std::string text) {
  if (text.size() > largest_store) return damaged("the store is too large to be one");
  const auto document = text::parse_json(std::move(text));
  if (!document) {
    return damaged(format("the store is damaged: {}", document.error().front().message));
  }
  TRY(check_version(document->root()));
  Reader reader;
  StoreFile file = read_parts(reader, document->root());
  if (reader.mistake()) return damaged(format("the store is damaged: {}", *reader.mistake()));
  // Also what nobody looks at has one spelling: spaces, order, further members.
  if (write_store(file) != document->source()) {
    return damaged("the store is damaged: it was not written by capgate as it is");
  }
  return file;
}

std::string write_store(const StoreFile& file) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("format").string(format_name).key("version").verbatim(format_version);
  add_key(json, file.key);
  json.key("entries").begin_array();
  for (const Entry& entry : file.entries) add_entry(json, entry);
  json.end_array().key("whole").begin_object();
  add_sealed(json, file.whole);
  json.end_object().end_object();
  return std::move(json).take() + "\n";
}

std::string bound_to(const WrappedKey& key) {
  return with_lengths({format_name, format_version, "key", key.id, to_text(key.source),
                       format("{}", key.cost), key.salt});
}

std::string bound_to(const WrappedKey& key, const Entry& entry) {
  return with_lengths({format_name, format_version, "entry", key.id, entry.server, entry.name,
                       entry.created, entry.changed});
}

std::string bound_to(const StoreFile& file) {
  StoreFile rest = file;
  rest.whole = {};
  return with_lengths({format_name, format_version, "whole", write_store(rest)});
}

bool is_valid_name(std::string_view name) {
  constexpr std::string_view further = "_.-/:@";
  return !name.empty() && name.size() <= longest_name && name.front() != '-' &&
         std::ranges::all_of(name, [&](char c) { return is_alnum(c) || further.contains(c); });
}

bool is_valid_server(std::string_view server) {
  return !server.empty() && server.size() <= longest_server && !find_invalid_utf8(server) &&
         std::ranges::none_of(server, is_control);
}

bool is_valid_time(std::string_view time) {
  constexpr std::string_view shape = "0000-00-00T00:00:00Z";
  return std::ranges::equal(
      time, shape, [](char c, char wanted) { return wanted == '0' ? is_digit(c) : c == wanted; });
}

}  // namespace capgate::store
