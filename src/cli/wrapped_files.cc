#include "cli/wrapped_files.h"

#include <dirent.h>
#include <unistd.h>

#include <climits>
#include <memory>

#include "base/digest.h"
#include "base/format.h"
#include "cli/caller.h"
#include "clients/config_files.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

std::string directory() { return state_base() + "/wrapped"; }

std::string note_of(const std::string& target) {
  return format("{}/{}", directory(), sha256_hex(target));
}

struct Closing {
  void operator()(DIR* listing) const { (void)::closedir(listing); }
};

}  // namespace

std::expected<void, clients::FileProblem> note_wrapped(const std::string& target) {
  const std::string note = note_of(target);
  if (::access(note.c_str(), F_OK) == 0) return {};
  return clients::create_file(note, target);
}

void forget_wrapped(const std::string& target) { (void)::unlink(note_of(target).c_str()); }

std::vector<std::string> wrapped_files() {
  std::vector<std::string> out;
  const std::string base = directory();
  const std::unique_ptr<DIR, Closing> listing(::opendir(base.c_str()));
  if (listing == nullptr) return out;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_name[0] == '.') continue;
    auto target = sys::read_file(format("{}/{}", base, entry->d_name), PATH_MAX);
    if (target && target->starts_with('/')) out.push_back(*std::move(target));
  }
  return out;
}

// The words, not their meaning: too many files count rather than one too few.
bool is_without_wrapper(const std::string& path) {
  const auto text = clients::read_regular_file(path, clients::Links::are_followed);
  return text && !(text->contains("capgate") && text->contains("--profile"));
}

}  // namespace capgate::cli
