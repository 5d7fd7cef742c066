// Any bytes at all: read_store gives a file with one spelling, which no key opens by chance, or an
// error that is safe to print.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "store/store_file.h"
#include "store/vault.h"

namespace {

using namespace capgate;

void check_file(const store::StoreFile& file, const std::string& text) {
  CAPGATE_ASSERT(store::write_store(file) == text);
  CAPGATE_ASSERT(store::parse_key_source(store::to_text(file.key.source)) == file.key.source);
  for (const store::Entry& entry : file.entries) {
    CAPGATE_ASSERT(store::is_valid_name(entry.name) && store::is_valid_server(entry.server));
    const store::Entry* found =
        store::find_entry(file, {.server = entry.server, .name = entry.name});
    CAPGATE_ASSERT(found == &entry);
  }
  // Stretching a passphrase takes too long here, and adds nothing.
  if (file.key.source.kind == store::KeySource::Kind::passphrase) return;
  const auto material = secrets::Secret::make("no key that anything was sealed with");
  CAPGATE_ASSERT(material.has_value());
  CAPGATE_ASSERT(!store::Vault::open(file, *material));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = store::read_store(text);
  if (file) {
    check_file(*file, text);
  } else {
    CAPGATE_ASSERT(!file.error().message.empty() && !file.error().help.empty());
    CAPGATE_ASSERT(escape_for_terminal(file.error().message) == file.error().message);
  }
  return 0;
}
