#include "cli/diff_config.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "cli/git_show.h"
#include "clients/catalog.h"
#include "clients/config.h"
#include "clients/config_files.h"
#include "clients/entry_manifest.h"
#include "secrets/provider.h"

namespace capgate::cli {
namespace {

using clients::ServerConfig;

constexpr std::string_view directory_variable = "CONFIG_DIR";

// "sub/../a/./b" -> "a/b"; what leads out of the top stays, and is found nowhere.
std::string without_dots(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : EachPart(path, '/')) {
    if (part == "." && !parts.empty()) continue;
    if (part == ".." && !parts.empty() && parts.back() != ".." && parts.back() != ".") {
      parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return join(parts, "/");
}

// Of an address only where it leads: the rest may hold a key.
std::string shown_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t host = url.find("://");
  const std::size_t start = host == std::string_view::npos ? 0 : host + 3;
  const std::size_t end = std::min(url.find('/', start), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < start) return std::string(url);
  return format("{}***{}", url.substr(0, start), url.substr(at));
}

class Entries {
 public:
  Entries(const ReadSource& source, const Arguments& arguments, core::Symbols& symbols,
          Output& output)
      : source_(source),
        arguments_(arguments),
        symbols_(symbols),
        output_(output),
        home_(symbols.directory("HOME")),
        directory_(symbols.directory(directory_variable)) {}

  std::expected<std::vector<DiffServer>, int> read(const text::Document& document) {
    auto config = clients::parse_config(document, {.directory = directory_, .home = home_});
    if (!config) {
      for (Diagnostic& mistake : config.error()) {
        mistake.message = symbols_.show(mistake.message);
        mistake.help = symbols_.show(mistake.help);
      }
      return std::unexpected(
          report(config.error(), Source(source_.name, document.source()), arguments_, output_));
    }
    std::vector<DiffServer> out;
    for (ServerConfig& entry : config->servers) {
      auto server = server_of(entry);
      if (!server) return std::unexpected(server.error());
      server->entry = DiffEntry{.command = std::move(entry.command),
                                .secrets = std::move(entry.secrets),
                                .url = shown_url(entry.url),
                                .whole_url = entry.url,
                                .manifest = symbols_.show(entry.manifest),
                                .enabled = entry.enabled};
      out.push_back(*std::move(server));
    }
    return out;
  }

 private:
  struct Named {
    std::string name;
    std::string file;
    std::string text;
  };

  std::unexpected<int> refuse(const ServerConfig& entry, std::string_view name,
                              std::string_view why) {
    output_.err +=
        format("capgate: {}: {}: cannot read {}: {}\n", escape_for_terminal(source_.name),
               entry.name, escape_for_terminal(name), why);
    return std::unexpected(static_cast<int>(Exit::unreadable));
  }

  std::expected<DiffServer, int> server_of(ServerConfig& entry) {
    Wanted wanted{.manifest = {}, .variables = entry.variables, .seal = entry.seal};
    std::string file = source_.file;
    if (entry.manifest.empty()) {
      name_stand_ins(entry);
      wanted.document =
          std::make_shared<const text::Document>(clients::entry_manifest(entry, source_.text));
      wanted.document_name = source_.name;
    } else {
      auto named = read_manifest(entry);
      if (!named) return std::unexpected(named.error());
      auto document =
          parse_document(named->name, text::share(std::move(named->text)), arguments_, output_);
      if (!document) return std::unexpected(document.error());
      wanted.document = *std::move(document);
      wanted.document_name = std::move(named->name);
      if (!named->file.empty()) file = std::move(named->file);
    }
    auto loaded = load_symbolic(arguments_, wanted, symbols_, output_);
    if (!loaded) return std::unexpected(loaded.error());
    return DiffServer{.name = entry.name, .file = std::move(file), .loaded = *std::move(loaded)};
  }

  // What a sandbox block made of ~ and of relative paths. Whoever wrote a stand-in himself is
  // refused, as in a manifest.
  void name_stand_ins(ServerConfig& entry) const {
    for (std::size_t i = 0; i < entry.capabilities.size(); ++i) {
      const Span where = entry.capability_spans[i];
      const std::string_view written =
          std::string_view(*source_.text).substr(where.begin, where.end - where.begin);
      if (written.contains(home_.substr(1, 9))) continue;
      entry.capabilities[i] = symbols_.show(entry.capabilities[i]);
    }
  }

  std::expected<Named, int> read_manifest(const ServerConfig& entry) {
    const std::string_view path = entry.manifest;
    if (path.starts_with(clients::catalog_prefix)) return read_catalog(entry);
    if (const std::string own = directory_ + "/"; path.starts_with(own)) {
      return read_beside(entry, path.substr(own.size()));
    }
    if (!source_.revision.empty()) {
      return refuse(entry, symbols_.show(path), "it is no file of the same revision");
    }
    const bool is_home = path.starts_with(home_ + "/");
    return read_file(entry, is_home ? home_directory() + std::string(path.substr(home_.size()))
                                    : std::string(path));
  }

  std::expected<Named, int> read_beside(const ServerConfig& entry, std::string_view path) {
    const std::size_t slash = source_.file.rfind('/');
    const std::string directory =
        slash == std::string::npos ? "" : source_.file.substr(0, slash + 1);
    if (source_.revision.empty()) return read_file(entry, format("{}{}", directory, path));
    // "sub/.." is not always here: sub may be a link. Only git knows.
    const std::string object = format("{}{}{}", source_.revision, directory, path);
    auto text = git_show(object);
    if (!text) return refuse(entry, object, text.error().words);
    const std::string file = without_dots(format("{}{}", directory, path));
    return Named{.name = source_.revision + file, .file = file, .text = *std::move(text)};
  }

  std::expected<Named, int> read_file(const ServerConfig& entry, const std::string& path) {
    auto text = clients::read_regular_file(path, clients::Links::are_followed);
    if (!text) return refuse(entry, path, std::strerror(text.error()));
    return Named{.name = path, .file = path, .text = *std::move(text)};
  }

  // With what is optional: whether it is there is known where the server runs.
  std::expected<Named, int> read_catalog(const ServerConfig& entry) {
    const auto* found = clients::find_entry(
        std::string_view(entry.manifest).substr(clients::catalog_prefix.size()));
    if (found == nullptr) return refuse(entry, entry.manifest, "the catalog has no such entry");
    return Named{.name = entry.manifest, .file = {}, .text = found->manifest};
  }

  const ReadSource& source_;
  const Arguments& arguments_;
  core::Symbols& symbols_;
  Output& output_;
  std::string home_;
  std::string directory_;
};

std::string words_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const bool is_plain = !word.empty() && find_any(word, " \t\n\"\\") == std::string_view::npos;
    out += is_plain ? word : quoted(word);
  }
  return out;
}

using PartKind = review::ShownPart::Kind;

// What an entry says of how its server runs.
class EntryParts {
 public:
  EntryParts(const DiffEntry* old, const DiffEntry* now, review::ShownServer& out)
      : is_both_(old != nullptr && now != nullptr),
        old_(old != nullptr ? *old : none_),
        now_(now != nullptr ? *now : none_),
        out_(out) {}

  void add_all() {
    add_command();
    add_url();
    if (old_.manifest != now_.manifest) {
      add(PartKind::told, "manifest", old_.manifest, now_.manifest, "");
    }
    for (const std::string& secret : now_.secrets) add_secret(secret);
    for (const std::string& secret : old_.secrets) {
      if (find(now_.secrets, name_of(secret)).empty()) {
        add(PartKind::told, "secrets", secret, "", "the server gets no value any more");
      }
    }
    if (is_both_ && old_.enabled != now_.enabled) add_enabled();
  }

 private:
  void add(PartKind kind, std::string part, std::string was, std::string is, std::string why) {
    out_.add({.kind = kind,
              .part = std::move(part),
              .before = std::move(was),
              .after = std::move(is),
              .capability = {},
              .place = {},
              .why = std::move(why)});
  }

  void add_command() {
    if (old_.command == now_.command) return;
    const bool is_other = is_both_ && !now_.command.empty();
    add(is_other ? PartKind::differs : PartKind::told, "command", words_of(old_.command),
        words_of(now_.command),
        is_other ? "what runs with these permissions is another program" : "");
  }

  void add_url() {
    if (old_.whole_url == now_.whole_url) return;
    if (now_.whole_url.empty()) return add(PartKind::told, "url", old_.url, "", "");
    add(PartKind::widened, "url", old_.url, now_.url,
        old_.url == now_.url ? "nothing here confines an HTTP server; what changed is not shown"
                             : "nothing here confines an HTTP server");
  }

  void add_enabled() {
    if (now_.enabled) {
      return add(PartKind::told, "enabled", "false", "true", "the server runs confined");
    }
    add(PartKind::widened, "enabled", "true", "false",
        "wrap leaves the server of an entry that is not enabled as it is: nothing confines it");
  }

  // A program is started outside of the sandbox, and a file is read there, whoever wrote the entry.
  void add_secret(const std::string& secret) {
    const std::string was = find(old_.secrets, name_of(secret));
    if (was == secret) return;
    using enum secrets::Binding::Provider;
    const auto binding = secrets::parse_binding(secret);
    if (!binding || binding->provider == cmd) {
      return add(PartKind::widened, "secrets", was, secret,
                 "this program is started outside of the sandbox");
    }
    if (binding->provider == file) {
      return add(PartKind::widened, "secrets", was, secret,
                 "the server gets what this file holds, whatever its policy hides");
    }
    add(is_both_ ? PartKind::differs : PartKind::told, "secrets", was, secret,
        "where values come from");
  }

  static std::string_view name_of(std::string_view secret) {
    return secret.substr(0, secret.find('='));
  }
  static std::string find(const std::vector<std::string>& secrets, std::string_view name) {
    for (const std::string& secret : secrets) {
      if (name_of(secret) == name) return secret;
    }
    return {};
  }

  const DiffEntry none_ = {};
  bool is_both_;
  const DiffEntry& old_;
  const DiffEntry& now_;
  review::ShownServer& out_;
};

}  // namespace

std::expected<std::vector<DiffServer>, int> config_servers(const ReadSource& source,
                                                           const text::Document& document,
                                                           const Arguments& arguments,
                                                           core::Symbols& symbols, Output& output) {
  return Entries(source, arguments, symbols, output).read(document);
}

void add_entry_parts(const DiffServer* before, const DiffServer* after, review::ShownServer& out) {
  if ((before != nullptr && !before->entry) || (after != nullptr && !after->entry)) return;
  const DiffEntry* old = before != nullptr ? &*before->entry : nullptr;
  const DiffEntry* now = after != nullptr ? &*after->entry : nullptr;
  EntryParts(old, now, out).add_all();
}

}  // namespace capgate::cli
