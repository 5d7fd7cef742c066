#include "clients/client_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "clients/entries.h"
#include "clients/rewrite.h"

namespace capgate::clients {
namespace {

Span shifted(Span span, std::size_t by) { return Span::at(span.begin + by, span.end + by); }

std::size_t mark_size(std::string_view text) { return text.size() - without_mark(text).size(); }

Checked<text::Document> parse(std::string_view text, Syntax syntax) {
  auto document = parse_client_text(without_mark(text), syntax);
  if (document) return document;
  for (Diagnostic& mistake : document.error()) {
    mistake.where = shifted(mistake.where, mark_size(text));
  }
  return document;
}

Diagnostic first_of(Diagnostics mistakes) { return std::move(mistakes.front()); }

std::unexpected<Diagnostic> refuse(const ServerEntry& server, std::string_view what,
                                   std::string_view why) {
  return fail(Code::doc_syntax, server.where,
              format("server {} cannot be {}: {}", quoted(server.name), what, why),
              "change the entry by hand");
}

Result<void> wrap(const Entry& entry, const Change& change, Rewriting& out) {
  const ServerEntry& server = entry.server;
  if (server.transport == Transport::http) return refuse(server, "wrapped", "it is no command");
  if (!server.problem.empty()) return refuse(server, "wrapped", server.problem);
  return wrap_entry(entry, change.prefix, out);
}

Result<void> unwrap(const Entry& entry, Rewriting& out) {
  if (!entry.wrapper) return {};
  if (!entry.server.problem.empty()) return refuse(entry.server, "unwrapped", entry.server.problem);
  unwrap_entry(entry, out);
  return {};
}

Result<void> set_environment(const Entry& entry, const Change& change, Rewriting& out) {
  const auto& variables = entry.server.environment;
  const auto found = std::ranges::find(variables, change.name, &EnvironmentEntry::name);
  if (found == variables.end()) {
    return refuse(entry.server, "changed", format("it has no variable {}", quoted(change.name)));
  }
  const text::Value value = entry.environment[static_cast<std::size_t>(found - variables.begin())];
  if (value.is(text::Kind::string) && value.text() == change.value) return {};
  set_variable(value, change.value, out);
  return {};
}

Result<void> make(const Entry& entry, const Change& change, Rewriting& out) {
  switch (change.kind) {
    case Change::Kind::wrap: return wrap(entry, change, out);
    case Change::Kind::unwrap: return unwrap(entry, out);
    case Change::Kind::set_environment: return set_environment(entry, change, out);
  }
  return {};
}

Result<Rewriting> rewrite(const text::Document& document, const Shape& shape,
                          const std::vector<Change>& changes) {
  const std::vector<Entry> entries = find_entries(document, shape);
  Rewriting out{.document = &document, .syntax = shape.syntax};
  for (const Change& change : changes) {
    if (change.server >= entries.size()) {
      return fail(Code::doc_syntax, {}, "no such server", "read the file again");
    }
    TRY(make(entries[change.server], change, out));
  }
  return out;
}

Result<text::Document> parse_again(const ClientFile& file) {
  auto document = parse(file.text, file.shape.syntax);
  if (!document) return std::unexpected(first_of(std::move(document).error()));
  return *std::move(document);
}

}  // namespace

Checked<ClientFile> read_client_file(std::string text, const Shape& shape) {
  const text::Document document = TRY(parse(text, shape.syntax));
  ClientFile file{.text = std::move(text), .shape = shape, .servers = {}};
  const std::size_t mark = mark_size(file.text);
  for (Entry& entry : find_entries(document, shape)) {
    ServerEntry& server = file.servers.emplace_back(std::move(entry.server));
    server.where = shifted(server.where, mark);
    for (EnvironmentEntry& variable : server.environment) {
      variable.where = shifted(variable.where, mark);
    }
  }
  return file;
}

Result<std::vector<Edit>> edits(const ClientFile& file, const std::vector<Change>& changes) {
  const text::Document document = TRY(parse_again(file));
  std::vector<Edit> made = TRY(rewrite(document, file.shape, changes)).edits;
  for (Edit& edit : made) {
    edit.where = shifted(edit.where, mark_size(file.text));
  }
  std::ranges::sort(made, {}, [](const Edit& edit) { return edit.where.begin; });
  return made;
}

Result<std::string> apply(const ClientFile& file, const std::vector<Change>& changes) {
  const text::Document document = TRY(parse_again(file));
  const Rewriting made = TRY(rewrite(document, file.shape, changes));
  if (made.edits.empty()) return file.text;
  const std::string body = TRY(apply_edits(without_mark(file.text), made.edits));
  const auto edited = parse_client_text(body, file.shape.syntax);
  if (!edited || Meaning().of(*edited) != made.meaning.of(document)) {
    return fail(Code::doc_syntax, {}, "the file cannot be changed without changing what it says",
                "change it by hand");
  }
  return file.text.substr(0, mark_size(file.text)) + body;
}

}  // namespace capgate::clients
