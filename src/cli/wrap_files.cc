#include "cli/wrap_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "sys/file.h"
#include "text/document.h"

namespace capgate::cli {
namespace {

bool looks_like_file(const std::string& word) {
  return word.contains('/') || word.contains('.') || ::access(word.c_str(), F_OK) == 0;
}

int no_such_client(std::string_view word, Output& output) {
  std::vector<std::string_view> ids;
  for (const clients::Client& client : clients::clients()) ids.push_back(client.id);
  const auto best = closest(word, ids);
  std::string all;
  for (const std::string_view id : ids) all += format("{}{}", all.empty() ? "" : ", ", id);
  return usage_error(format("there is no client {}", quoted(word)),
                     best ? format("did you mean {}?", *best)
                          : format("clients are {}; or write the path of a file", all),
                     output);
}

int nothing_found(const clients::Client* client, Output& output) {
  output.err += client == nullptr
                    ? "capgate: no client's configuration was found\n"
                    : format("capgate: no configuration of {} was found\n", client->name);
  output.err += "help: looked for\n";
  for (const clients::Client& each : clients::clients()) {
    if (client != nullptr && client != &each) continue;
    for (const std::string_view place : each.places) {
      const auto path = clients::expand_place(place, surroundings());
      if (path) output.err += format("  {}\n", escape_for_terminal(*path));
    }
  }
  return Exit::unreadable;
}

std::expected<std::vector<clients::ClientPlace>, int> choose_places(const Arguments& arguments,
                                                                    Output& output) {
  const clients::Client* only = nullptr;
  if (!arguments.operands.empty()) {
    const std::string& word = arguments.operands.front();
    only = clients::find_client(word);
    if (only == nullptr && !looks_like_file(word)) {
      return std::unexpected(no_such_client(word, output));
    }
    if (only == nullptr) {
      return std::vector<clients::ClientPlace>{
          {.client = clients::guess_client(word), .path = word}};
    }
  }
  auto places = clients::find_configurations(surroundings(), only);
  if (places.empty()) return std::unexpected(nothing_found(only, output));
  return places;
}

// Without the line itself, as other files are shown: it may hold a token.
void say_mistakes(const std::string& path, const std::string& text, const Diagnostics& mistakes,
                  Output& output) {
  const Source source(path, text);
  for (const Diagnostic& mistake : mistakes) {
    const auto [line, column] = source.position(mistake.where.begin);
    output.err += format("{}:{}:{}: error: {}\nhelp: {}\n", escape_for_terminal(path), line, column,
                         mistake.message, mistake.help);
  }
  output.err += format("capgate: {} was left as it is\n", escape_for_terminal(path));
}

std::expected<ClientDocument, int> read_one(const clients::ClientPlace& place, Output& output) {
  auto opened = clients::open_file(place.path, text::largest_document);
  if (!opened) {
    say(opened.error(), output);
    return std::unexpected(Exit::unreadable);
  }
  const auto shape = place.client != nullptr ? std::optional(place.client->shape)
                                             : clients::guess_shape(place.path, opened->text);
  if (!shape) {
    output.err += format(
        "capgate: {} is no client's configuration that capgate knows\n"
        "help: it has no mcpServers, servers, context_servers, mcp_servers or extensions\n",
        escape_for_terminal(place.path));
    return std::unexpected(Exit::unreadable);
  }
  auto file = clients::read_client_file(opened->text, *shape);
  if (!file) {
    say_mistakes(place.path, opened->text, file.error(), output);
    return std::unexpected(Exit::unreadable);
  }
  return ClientDocument{
      .client = place.client, .opened = *std::move(opened), .file = *std::move(file)};
}

int check_servers(const ClientDocuments& all, Output& output) {
  std::vector<std::string_view> names;
  for (const ClientDocument& document : all.documents) {
    for (const auto& server : document.file.servers) names.push_back(server.name);
  }
  for (const std::string& wanted : all.servers) {
    if (contains(names, std::string_view(wanted))) continue;
    const auto best = closest(wanted, names);
    return usage_error(
        format("there is no server {}", quoted(wanted)),
        best ? format("did you mean {}?", escape_for_terminal(*best)) : "check its name", output);
  }
  return Exit::ok;
}

}  // namespace

std::string ClientDocument::name() const {
  return client == nullptr ? opened.target : std::string(client->name);
}

std::string ClientDocument::id() const {
  return client == nullptr ? "file" : std::string(client->id);
}

clients::Surroundings surroundings() {
  clients::Surroundings out{
      .home = home_directory(), .directory = current_directory(), .environment = {}};
  for (char** each = ::environ; *each != nullptr; ++each) out.environment.emplace_back(*each);
  return out;
}

std::expected<ClientDocuments, int> read_clients(const Arguments& arguments, Output& output) {
  const auto places = choose_places(arguments, output);
  if (!places) return std::unexpected(places.error());
  ClientDocuments out;
  if (arguments.operands.size() > 1) {
    out.servers.assign(arguments.operands.begin() + 1, arguments.operands.end());
  }
  for (const clients::ClientPlace& place : *places) {
    auto document = read_one(place, output);
    if (document) {
      out.documents.push_back(*std::move(document));
    } else {
      out.code = std::max(out.code, document.error());
    }
  }
  if (out.documents.empty()) return std::unexpected(out.code);
  if (const int code = check_servers(out, output); code != Exit::ok) return std::unexpected(code);
  return out;
}

bool is_wanted(const ClientDocuments& all, std::string_view server) {
  return all.servers.empty() || contains(all.servers, std::string(server));
}

Consent consent_of(const Arguments& arguments) {
  if (arguments.has("--dry-run")) return Consent::only_shown;
  if (arguments.has("--yes")) return Consent::given;
  const bool can_ask =
      !arguments.has("--json") && sys::is_terminal(STDIN_FILENO) && sys::is_terminal(STDERR_FILENO);
  return can_ask ? Consent::asked : Consent::refused;
}

bool ask(std::string_view question, Output& output) {
  output.err += format("{} [y/N] ", question);
  flush(output);
  std::string answer;
  char c = 0;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') break;
    answer += c;
  }
  const std::string word = to_lower(trim(answer));
  return word == "y" || word == "yes";
}

int refuse_without_terminal(std::string_view command, Output& output) {
  return usage_error(
      "nothing was written: there is no terminal to ask on",
      format("capgate {} --yes writes without asking, --dry-run only shows", command), output);
}

void say(const clients::FileProblem& problem, Output& output) {
  output.err += format("capgate: {}\nhelp: {}\n", problem.message, problem.help);
}

int code_of(const clients::FileProblem& problem) {
  return problem.kind == clients::FileProblem::Kind::changed ? Exit::integrity : Exit::unreadable;
}

void flush(Output& output) {
  // Who does not see the question does not answer it.
  (void)sys::write_all(STDOUT_FILENO, output.out).has_value();
  (void)sys::write_all(STDERR_FILENO, output.err).has_value();
  output = {};
}

Colour colour_of(int fd) {
  const std::string term = variable("TERM");
  const bool is_wanted = variable("NO_COLOR").empty() && !term.empty() && term != "dumb";
  return is_wanted && sys::is_terminal(fd) ? Colour::on : Colour::off;
}

}  // namespace capgate::cli
