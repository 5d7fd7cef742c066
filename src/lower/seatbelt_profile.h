// The profile itself: a deny-default .sb file in which the last matching rule wins, so that what
// must stay closed comes last, and only a grant that names such a path comes after it.
//
//   (allow file-read* file-test-existence (subpath (param "FS_1")))
//   (deny file-read* file-test-existence file-write* (regex "^/w/\\.[eE][nN][vV](/.*)?$"))
//
// Paths of the caller are parameters (-D), which need no quoting. Only regular expressions hold
// them, escaped, since those take no parameter.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lower/artifact.h"
#include "lower/seatbelt_paths.h"

namespace capgate::lower::seatbelt {

inline constexpr std::string_view profile_name = "server.sb";

// The -D parameters, each value once.
class Parameters {
 public:
  // (param "KEY"), the key being PREFIX_n for the n-th value with that prefix.
  std::string reference(std::string_view prefix, std::string_view value);
  void define(std::string_view key, std::string_view value) { items_.emplace_back(key, value); }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& items() const {
    return items_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> items_;
  // The number of each value, by its prefix.
  std::map<std::string, std::map<std::string, std::size_t, std::less<>>, std::less<>> numbers_;
};

struct Socket {
  std::string path;  // canonical
  const core::Origins* origins = nullptr;
};

struct Profile {
  File file;
  Parameters parameters;  // TMPDIR is not among them: only the launcher knows it
};

[[nodiscard]] Profile make_profile(const Input& input, const Programs& programs,
                                   const std::vector<Socket>& sockets);

}  // namespace capgate::lower::seatbelt
