// The clients' files that wrap and unwrap are about: found, read, shown, asked about.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/render.h"
#include "cli/options.h"
#include "clients/clients.h"
#include "clients/replace_file.h"

namespace capgate::cli {

struct ClientDocument {
  const clients::Client* client = nullptr;  // null: a file that was named, of whom is not known
  clients::OpenedFile opened;
  clients::ClientFile file;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string id() const;  // "cursor", or "file"
};

struct ClientDocuments {
  std::vector<ClientDocument> documents;
  std::vector<std::string> servers;  // the words after the first: only these
  int code = 0;                      // of what could not be read; the others go on
};

// Of the operands [CLIENT|FILE] [SERVER...]. What cannot be read is said in `output`.
[[nodiscard]] std::expected<ClientDocuments, int> read_clients(const Arguments& arguments,
                                                               Output& output);

[[nodiscard]] clients::Surroundings surroundings();

// Is this server one of those that were named, or was none?
[[nodiscard]] bool is_wanted(const ClientDocuments& all, std::string_view server);

// May the changes be written? Nothing is asked without a terminal, or where a program reads.
enum class Consent : unsigned char { given, asked, refused, only_shown };
[[nodiscard]] Consent consent_of(const Arguments& arguments);
// Says everything so far and asks once; no answer is no.
[[nodiscard]] bool ask(std::string_view question, Output& output);
// The end of a command that may not write: what to say, and its exit code.
int refuse_without_terminal(std::string_view command, Output& output);

void say(const clients::FileProblem& problem, Output& output);
[[nodiscard]] int code_of(const clients::FileProblem& problem);

// Writes out what there is to say, so that it stands before what comes.
void flush(Output& output);
[[nodiscard]] Colour colour_of(int fd);

}  // namespace capgate::cli
