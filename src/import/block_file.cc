#include "import/block_file.h"

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "import/sandbox_block.h"

namespace capgate::imports {

using text::Kind;
using text::Value;

bool read_block_of(Rules& in, Value server) {
  const auto block = in.member(server, "sandbox", Kind::object);
  const auto unconfined = [&] {
    in.out().assumed("sandbox",
                     "the server is not sandboxed there, and may do whatever its user may; "
                     "the manifest grants nothing: add what it needs");
    return false;
  };
  if (!block) return unconfined();
  auto read =
      read_sandbox_block(*block, {.directory = in.place().directory, .home = in.place().home});
  if (!read) {
    for (Diagnostic& mistake : read.error()) in.add(std::move(mistake));
    return false;
  }
  if (!read->enabled) return unconfined();
  for (std::size_t i = 0; i < read->capabilities.size(); ++i) {
    in.allow(read->capabilities[i],
             {.text = read->capabilities[i], .where = read->spans[i], .subject = "sandbox"});
  }
  for (std::string& note : read->notes) in.out().assumed("sandbox", std::move(note));
  return true;
}

void read_variable(Rules& in, text::Member member) {
  const Rules::Item item{
      .text = std::string(member.key.text()), .where = member.key.span(), .subject = "env"};
  const bool is_text = member.value.is(Kind::string);
  const bool passes_on = is_text && (member.value.text() == format("${{{}}}", item.text) ||
                                     member.value.text() == format("${}", item.text));
  if (passes_on) return in.allow_variable(core::EnvCapability::Action::read, item);
  in.allow_fixed_variable(item);
}

void read_command_of(Rules& in, Value server, std::string_view key) {
  const auto command = server.find(key);
  if (!command || command->is(Kind::null)) return;
  std::vector<std::string> words;
  if (command->is(Kind::string)) {
    if (find_any(command->text(), "\"'\\$`") != std::string_view::npos) {
      in.out().dropped(key, "it is for a shell: write its words out for capgate run");
      return;
    }
    for (const std::string_view word : split(in.text(server, key), ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
  } else {
    for (const Value word : in.texts(server, key)) words.emplace_back(word.text());
  }
  in.out().command(std::move(words));
}

}  // namespace capgate::imports
