#include "store/request.h"

#include <algorithm>

#include "base/format.h"

namespace capgate::store {
namespace {

using Verb = Request::Verb;

struct VerbWords {
  std::string_view word;
  Verb verb;
  std::string_view options;  // those it takes, each between spaces
  bool needs_name;
};
constexpr VerbWords verbs[] = {
    {"set", Verb::set, " --server --name --key ", true},
    {"get", Verb::get, " --server --name --reveal ", true},
    {"list", Verb::list, " --server --json ", false},
    {"rm", Verb::rm, " --server --name ", true},
    {"rotate", Verb::rotate, " --key ", false},
};

// Nothing that was given is repeated: it may be a value in the wrong place.
std::unexpected<Problem> usage(std::string message) {
  return std::unexpected(
      Problem{Problem::Kind::usage, std::move(message), "see capgate secret --help"});
}

Outcome<void> take_value(Request& request, std::string_view option, std::string_view value) {
  if (option == "--server") {
    if (!is_valid_server(value)) return usage("--server is no name of a server");
    request.server = value;
  } else if (option == "--name") {
    if (!is_valid_name(value)) {
      return usage("a name of a secret has letters, digits and _ . - / : @, up to 256 of them");
    }
    request.name = value;
  } else {
    request.key = parse_key_source(value);
    if (!request.key) {
      return usage("--key is passphrase, file:/absolute/path or keyring:NAME");
    }
  }
  return {};
}

}  // namespace

Outcome<Request> parse_request(std::span<const std::string_view> words) {
  const auto verb =
      words.empty() ? std::end(verbs) : std::ranges::find(verbs, words.front(), &VerbWords::word);
  if (verb == std::end(verbs)) {
    return usage("capgate-store is started by `capgate secret` and `capgate run`");
  }
  Request request{.verb = verb->verb};
  for (std::size_t at = 1; at < words.size(); ++at) {
    const std::string_view option = words[at];
    if (!option.starts_with("--") || option.contains(' ') ||
        !verb->options.contains(format(" {} ", option))) {
      return usage(format("{} does not take all of these words", verb->word));
    }
    if (option == "--json") {
      request.is_json = true;
    } else if (option == "--reveal") {
      request.reveals = true;
    } else if (++at == words.size()) {
      return usage(format("{} needs a value", option));
    } else {
      TRY(take_value(request, option, words[at]));
    }
  }
  if (verb->needs_name && request.name.empty()) return usage(format("{} needs --name", verb->word));
  return request;
}

}  // namespace capgate::store
