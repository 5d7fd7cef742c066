#include "clients/wrapper.h"

#include <string_view>

namespace capgate::clients {
namespace {

constexpr std::string_view flag = "--profile";
constexpr std::string_view joined_flag = "--profile=";

bool is_capgate(std::string_view program) {
  return program.substr(program.find_last_of('/') + 1) == "capgate";
}

}  // namespace

std::optional<Wrapper> find_wrapper(std::span<const std::string> words) {
  if (words.size() < 2 || !is_capgate(words[0]) || words[1] != "run") return {};
  Wrapper found;
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--") {
      found.size = at + 1;
      break;
    }
    if (word.starts_with(joined_flag)) {
      found.profile = word.substr(joined_flag.size());
      found.profile_word = at;
    } else if (word == flag && at + 1 < words.size() && words[at + 1] != "--") {
      found.profile = words[++at];
      found.profile_word = at;
    }
  }
  if (found.size == 0 || found.profile.empty()) return {};
  return found;
}

}  // namespace capgate::clients
