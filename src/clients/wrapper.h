// The words that `wrap` puts before a command: capgate run --profile NAME [OPTION...] --
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace capgate::clients {

struct Wrapper {
  std::string profile;
  std::size_t profile_word = 0;  // the word that holds its name
  std::size_t size = 0;          // how many words it takes, the last one being "--"
};

// capgate is any path whose file name it is. Without "--" or the name there is no wrapper: such a
// command is someone's own.
[[nodiscard]] std::optional<Wrapper> find_wrapper(std::span<const std::string> words);

}  // namespace capgate::clients
