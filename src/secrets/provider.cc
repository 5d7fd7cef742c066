#include "secrets/provider.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"

namespace capgate::secrets {
namespace {

using Provider = Binding::Provider;

struct Known {
  std::string_view name;
  Provider provider;
};
constexpr std::array<Known, 6> known = {{{"env", Provider::env},
                                         {"file", Provider::file},
                                         {"cmd", Provider::cmd},
                                         {"systemd-credential", Provider::systemd_credential},
                                         {"keyring", Provider::keyring},
                                         {"store", Provider::store}}};

constexpr std::string_view providers_help =
    "write env:NAME, file:PATH, cmd:PROGRAM ARGUMENTS, systemd-credential:NAME, keyring:NAME or "
    "store:NAME";

std::unexpected<Diagnostic> refuse(Span where, std::string message, std::string help) {
  return fail(Code::cap_env_shape, where, std::move(message), std::move(help));
}

// As in env:inject:NAME.
Result<void> check_name(std::string_view name) {
  const auto is_name_character = [](char c) { return is_upper(c) || is_digit(c) || c == '_'; };
  const bool is_name =
      !name.empty() && !is_digit(name.front()) && std::ranges::all_of(name, is_name_character);
  if (is_name) return {};
  return fail(Code::cap_env_name, Span::at(0, name.size()),
              format("{} is not a variable name", quoted(name)),
              "use upper-case letters, digits and underscores, for example GITHUB_TOKEN");
}

// A name, not a path or an option of the program that is asked for it.
Result<void> check_reference(const Binding& binding, Span where) {
  const std::string_view text = binding.reference;
  const bool is_name =
      binding.provider == Provider::systemd_credential || binding.provider == Provider::store;
  const bool is_wrong =
      text.empty() || text.contains('\0') ||
      (is_name && (text.contains('/') || text.starts_with('.') || text.starts_with('-')));
  if (!is_wrong) return {};
  return refuse(where, format("{} names no secret", quoted(text)), std::string(providers_help));
}

// Who writes one of these means a shell; that there is none would be noticed late, as a token that
// does not work.
bool is_of_shell(std::string_view word) {
  constexpr std::string_view operators[] = {"|", "||", "&&", "&", ";", "<", ">", ">>"};
  return contains(operators, word);
}

// Spaces separate, quotes keep together; nothing else means anything.
Result<std::vector<std::string>> cut_words(std::string_view text, std::size_t offset) {
  std::vector<std::string> words;
  bool in_word = false;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) {
      words.emplace_back();
      is_quoted = false;
    }
    if (c != '\'' && c != '"') {
      words.back() += c;
      const bool is_last = i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\t';
      if (!is_last || is_quoted || !is_of_shell(words.back())) continue;
      return refuse(
          Span::at(offset + i + 1 - words.back().size(), offset + i + 1),
          format("cmd: runs a program without a shell, and {} is the shell's", words.back()),
          "put it into a script of yours, or write cmd:sh -c '...'");
    }
    const std::size_t end = text.find(c, i + 1);
    if (end == std::string_view::npos) {
      return refuse(Span::at(offset + i, offset + text.size()),
                    format("a {} without its other one", c),
                    "close it, or quote it with the other");
    }
    words.back() += text.substr(i + 1, end - i - 1);
    is_quoted = true;
    i = end;
  }
  if (words.empty() || words.front().empty()) {
    return refuse(Span::at(offset, offset + text.size()), "cmd: names no program",
                  "write cmd:pass show github/token");
  }
  return words;
}

Result<void> read_refinement(std::string_view text, Binding& binding, Span where) {
  if (text == "json") {
    binding.is_json = true;
    return {};
  }
  const auto seconds = text.starts_with("ttl=") ? parse_decimal(text.substr(4)) : std::nullopt;
  if (!seconds || *seconds == 0 || *seconds > std::numeric_limits<std::int32_t>::max()) {
    return refuse(where, format("cmd has no {}", quoted(text)),
                  "write cmd?ttl=SECONDS:... or cmd?json:...");
  }
  binding.ttl = static_cast<std::uint32_t>(*seconds);
  return {};
}

Result<Provider> find_provider(std::string_view name, std::string_view variable, Span where) {
  const auto* const found = std::ranges::find(known, name, &Known::name);
  if (found != known.end()) return found->provider;
  std::array<std::string_view, known.size()> names;
  std::ranges::transform(known, names.begin(), &Known::name);
  const auto best = closest(name, names);
  return refuse(where, format("there is no such provider for {}", variable),
                best ? format("did you mean {}:?", *best) : std::string(providers_help));
}

}  // namespace

Result<Binding> parse_binding(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = equals == std::string_view::npos ? equals : text.find(':', equals);
  if (colon == std::string_view::npos) {
    // Without the text: somebody may have written the secret itself.
    return refuse(Span::at(0, text.size()),
                  "a secret is bound by NAME=PROVIDER:REF; its value never stands here",
                  std::string(providers_help));
  }
  Binding out{.name = std::string(text.substr(0, equals))};
  if (auto checked = check_name(out.name); !checked) return std::unexpected(checked.error());
  const std::string_view head = text.substr(equals + 1, colon - equals - 1);
  const Span head_span = Span::at(equals + 1, colon);
  const std::size_t question = head.find('?');
  out.provider = TRY(find_provider(head.substr(0, question), out.name, head_span));
  if (question != std::string_view::npos) {
    if (out.provider != Provider::cmd) {
      return refuse(head_span, format("{} takes no refinement", quoted(head.substr(0, question))),
                    "only cmd does: cmd?ttl=SECONDS:... or cmd?json:...");
    }
    auto read = read_refinement(head.substr(question + 1), out, head_span);
    if (!read) return std::unexpected(read.error());
  }
  out.reference = text.substr(colon + 1);
  const Span rest = Span::at(colon + 1, text.size());
  if (auto checked = check_reference(out, rest); !checked) return std::unexpected(checked.error());
  if (out.provider == Provider::cmd) out.command = TRY(cut_words(out.reference, colon + 1));
  return out;
}

}  // namespace capgate::secrets
