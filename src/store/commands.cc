#include "store/commands.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/text.h"
#include "store/directory.h"
#include "store/key_material.h"
#include "store/terminal.h"
#include "sys/file.h"
#include "text/json_write.h"

namespace capgate::store {
namespace {

using secrets::Secret;
using Verb = Request::Verb;
using Missing = StoreDirectory::Missing;

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "1970-01-01T00:00:00Z";
  return format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::unexpected<Problem> no_store() {
  return unavailable("there is no store yet", "capgate secret set makes one");
}

// ---- the value of `set` -------------------------------------------------------------------------

std::unexpected<Problem> refuse_value(std::string message) {
  return std::unexpected(Problem{Problem::Kind::usage, std::move(message),
                                 "give it through a pipe, as in: pass show github | capgate secret "
                                 "set GITHUB_TOKEN"});
}

Outcome<Secret> read_pipe() {
  auto value = Secret::room(largest_value + 2);
  if (!value) return std::unexpected(problem_of(Failure::memory));
  std::size_t size = 0;
  while (size < value->bytes().size()) {
    const ssize_t got =
        ::read(STDIN_FILENO, value->bytes().data() + size, value->bytes().size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse_value(format("standard input: {}", std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > 0 && value->bytes()[size - 1] == '\n') --size;
  value->shrink(size);
  return *std::move(value);
}

Outcome<Secret> read_value(std::string_view name) {
  Secret value =
      sys::is_terminal(STDIN_FILENO) ? TRY(ask(format("The value of {}", name))) : TRY(read_pipe());
  if (value.is_empty()) return refuse_value("the value is empty");
  if (value.view().size() > largest_value) {
    return refuse_value(format("the value is longer than {} bytes", largest_value));
  }
  if (value.view().find_first_of(std::string_view("\0\r\n", 3)) != std::string_view::npos) {
    return refuse_value(
        "the value has a line break or a NUL in it, which no variable and no header can carry");
  }
  return value;
}

// ---- changing the store -------------------------------------------------------------------------

// Asked before the lock is taken: nobody waits for someone who types.
struct Typed {
  Secret known;  // what the store is opened, or made, with
  Secret fresh;  // what `rotate` wraps with
};

Outcome<Secret> material_of(const KeySource& source, Secret& typed, Absent absent, Answer& answer) {
  switch (source.kind) {
    case KeySource::Kind::passphrase: return std::move(typed);
    case KeySource::Kind::file: return read_key_file(source.reference);
    case KeySource::Kind::keyring: break;
  }
  KernelKey key = TRY(kernel_key(source.reference, absent));
  if (key.is_made) {
    answer.note += format(
        "capgate: made the kernel's key {}. It is gone with the next boot, and the secrets with "
        "it:\ncapgate: keep a copy (keyctl pipe), or take --key file:PATH\n",
        quoted(source.reference));
  }
  return std::move(key.bytes);
}

Outcome<Typed> ask_for(const Request& request, const KeySource& source, bool is_new) {
  Typed typed;
  if (source.kind == KeySource::Kind::passphrase) {
    typed.known = TRY(ask_passphrase(is_new ? Passphrase::fresh : Passphrase::known));
  }
  if (request.verb == Verb::rotate && request.key &&
      request.key->kind == KeySource::Kind::passphrase) {
    typed.fresh = TRY(ask_passphrase(Passphrase::fresh));
  }
  return typed;
}

struct Change {
  const Request& request;
  Secret value;  // of `set`
};

Outcome<void> apply(Vault& vault, const Change& change) {
  const Request& request = change.request;
  if (request.verb == Verb::set) return vault.set(request.place(), change.value.view(), now());
  return vault.remove(request.place());
}

Outcome<void> apply_rotation(Vault& vault, const Request& request, const Secret& known,
                             Typed& typed, Answer& answer) {
  if (!request.key) return vault.rotate(vault.file().key.source, known);
  const Secret material = TRY(material_of(*request.key, typed.fresh, Absent::is_made, answer));
  return vault.rotate(*request.key, material);
}

Outcome<KeySource> source_for(const Request& request, const std::optional<StoreFile>& seen) {
  if (!seen) {
    if (request.verb != Verb::set) return no_store();
    return request.key.value_or(KeySource{});
  }
  const KeySource& source = seen->key.source;
  if (request.verb == Verb::set && request.key && *request.key != source) {
    return unavailable(
        format("the store has another key: {}", escape_for_terminal(to_text(source))),
        "leave --key out; capgate secret rotate --key changes it");
  }
  return source;
}

Outcome<Answer> change_store(const Change& change) {
  const Request& request = change.request;
  const Missing missing = request.verb == Verb::set ? Missing::is_made : Missing::is_none;
  const std::string path = TRY(store_directory());
  const auto directory = TRY(StoreDirectory::open(path, missing));
  if (!directory) return no_store();
  const std::optional<StoreFile> seen = TRY(directory->read());
  const KeySource source = TRY(source_for(request, seen));
  Typed typed = TRY(ask_for(request, source, !seen));

  const sys::Fd lock = TRY(directory->lock());
  std::optional<StoreFile> file = TRY(directory->read());
  if (file ? file->key.source != source : seen.has_value()) {
    return unavailable("another capgate changed the key of the store meanwhile", "try it again");
  }
  Answer answer;
  const Absent absent = file ? Absent::is_refused : Absent::is_made;
  const Secret known = TRY(material_of(source, typed.known, absent, answer));
  Vault vault = file ? TRY(Vault::open(*std::move(file), known)) : TRY(Vault::make(source, known));
  if (request.verb == Verb::rotate) {
    TRY(apply_rotation(vault, request, known, typed, answer));
  } else {
    TRY(apply(vault, change));
  }
  const std::string text = TRY(vault.text());
  TRY(directory->replace(text));
  return answer;
}

// ---- reading it ---------------------------------------------------------------------------------

Outcome<std::optional<StoreFile>> read_only() {
  const std::string path = TRY(store_directory());
  const auto directory = TRY(StoreDirectory::open(path, Missing::is_none));
  if (!directory) return std::optional<StoreFile>();
  return directory->read();
}

Outcome<Answer> get(const Request& request) {
  if (sys::is_terminal(STDOUT_FILENO) && !request.reveals) {
    return std::unexpected(Problem{Problem::Kind::usage, "the value is not shown on a terminal",
                                   "pipe it to the program that needs it, or write --reveal"});
  }
  auto file = TRY(read_only());
  if (!file) return no_store();
  // Nobody types a passphrase to hear that there is no such secret.
  if (find_entry(*file, request.place()) == nullptr) return no_entry(request.place());
  const KeySource source = file->key.source;
  Typed typed = TRY(ask_for(request, source, false));
  Answer answer;
  const Secret material = TRY(material_of(source, typed.known, Absent::is_refused, answer));
  const Vault vault = TRY(Vault::open(*std::move(file), material));
  answer.value = TRY(vault.get(request.place()));
  return answer;
}

std::string list_json(const std::optional<StoreFile>& file, const std::vector<Entry>& entries) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("key");
  if (file) {
    json.begin_object().key("id").string(file->key.id);
    json.key("source").string(to_text(file->key.source)).end_object();
  } else {
    json.null();
  }
  json.key("secrets").begin_array();
  for (const Entry& entry : entries) {
    json.begin_object().key("server").string(entry.server).key("name").string(entry.name);
    json.key("created").string(entry.created).key("changed").string(entry.changed).end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

std::string list_text(const std::optional<StoreFile>& file, const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& entry : entries) {
    out += format("{:<32}{:<24}created {}  changed {}\n", entry.name,
                  escape_for_terminal(entry.server), entry.created, entry.changed);
  }
  if (file) {
    out += format("{} shown, key {} ({})\n", entries.size(),
                  escape_for_terminal(to_text(file->key.source)), file->key.id);
  } else {
    out += "there is no store yet\n";
  }
  return out;
}

Outcome<Answer> list(const Request& request) {
  const auto file = TRY(read_only());
  std::vector<Entry> entries;
  if (file) entries = file->entries;
  if (request.server) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.server != *request.server; });
  }
  Answer answer;
  answer.out = request.is_json ? list_json(file, entries) : list_text(file, entries);
  return answer;
}

}  // namespace

Outcome<Answer> carry_out(const Request& request) {
  switch (request.verb) {
    case Verb::list: return list(request);
    case Verb::get: return get(request);
    case Verb::set:
      return change_store({.request = request, .value = TRY(read_value(request.name))});
    case Verb::rm:
    case Verb::rotate: return change_store({.request = request, .value = {}});
  }
  return no_store();
}

}  // namespace capgate::store
