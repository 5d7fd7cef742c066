#include "cli/diff_sources.h"

#include <unistd.h>

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/diff_config.h"
#include "cli/diff_lock.h"
#include "cli/exit.h"
#include "cli/explain_config.h"
#include "cli/git_show.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

// By the word alone: a file of that name, which a change under review may add, must not come first.
bool names_revision(std::string_view word) {
  return word.contains(':') && !word.starts_with('/') && !word.starts_with("./") &&
         !word.starts_with("../");
}

std::string file_of_object(std::string_view object) {
  std::string_view path = object.substr(object.find(':') + 1);
  if (path.starts_with("./")) path.remove_prefix(2);
  return std::string(path);
}

// "main:", or "main:./" where the path starts here.
std::string revision_of_object(std::string_view object) {
  const std::size_t path = object.find(':') + 1;
  return std::string(object.substr(0, path + (object.substr(path).starts_with("./") ? 2 : 0)));
}

}  // namespace

std::unexpected<int> cannot_read(std::string_view name, std::string_view why, Output& output) {
  output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(name), why);
  return std::unexpected(static_cast<int>(Exit::unreadable));
}

std::expected<ReadSource, int> read_source(const std::string& word, Output& output) {
  if (word == "/dev/null") {
    return ReadSource{.name = word, .file = {}, .text = text::share(""), .is_nothing = true};
  }
  if (names_revision(word)) {
    auto text = git_show(word);
    if (text || text.error().is_no_file) {
      std::string unread = text ? std::string() : text.error().words;
      return ReadSource{.name = word,
                        .file = file_of_object(word),
                        .text = text::share(text ? *std::move(text) : std::string()),
                        .revision = revision_of_object(word),
                        .unread = std::move(unread)};
    }
    const auto refused = cannot_read(word, text.error().words, output);
    if (::access(word.c_str(), F_OK) == 0) {
      output.err +=
          format("help: for the file of that name write ./{}\n", escape_for_terminal(word));
    }
    return refused;
  }
  auto read = sys::read_file(word, text::largest_document);
  if (!read) return cannot_read(read.error().subject, sys::reason(read.error()), output);
  const bool is_stdin = word == "-";
  return ReadSource{.name = is_stdin ? "<stdin>" : word,
                    .file = is_stdin ? "" : word,
                    .text = text::share(*std::move(read))};
}

std::expected<std::vector<DiffServer>, int> read_servers(const ReadSource& source,
                                                         const Arguments& arguments,
                                                         core::Symbols& symbols, Output& output) {
  std::vector<DiffServer> out;
  if (source.is_nothing) return out;
  auto document = parse_document(source.name, source.text, arguments, output);
  if (!document) return std::unexpected(document.error());
  if (is_lock(**document)) return lock_servers(source, arguments, symbols, output);
  if (is_config(**document)) {
    return config_servers(source, **document, arguments, symbols, output);
  }
  auto loaded = load_symbolic(
      arguments, {.manifest = {}, .document = *std::move(document), .document_name = source.name},
      symbols, output);
  if (!loaded) return std::unexpected(loaded.error());
  const std::string name = loaded->manifest.name;
  out.push_back({.name = name, .file = source.file, .loaded = *std::move(loaded)});
  return out;
}

}  // namespace capgate::cli
