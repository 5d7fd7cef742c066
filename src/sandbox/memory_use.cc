#include "sandbox/memory_use.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::size_t small_file = 65536;
// The longest table of mappings: vm.max_map_count lines of 100 characters, twice.
constexpr std::size_t long_file = 16U << 20U;

struct Sum {
  std::uint64_t own = 0;              // private pages and page tables
  std::uint64_t resident_shared = 0;  // counted again for each process that maps it
  SharedMappings mapped;
};

std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = trim(text.substr(at + key.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

std::vector<pid_t> numbered_entries(const std::string& directory) {
  std::vector<pid_t> out;
  DIR* listing = ::opendir(directory.c_str());
  if (listing == nullptr) return out;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number > 0) out.push_back(number);
  }
  ::closedir(listing);
  return out;
}

void add_descendants(pid_t pid, Sum& sum) {
  const std::string base = format("/proc/{}", pid);
  const std::string status = sys::read_file(base + "/status", small_file).value_or("");
  constexpr std::uint64_t kibi = 1024;
  // With the line's start: the first line holds a name that the process chose.
  sum.own += (number_after(status, "\nRssAnon:") + number_after(status, "\nVmPTE:")) * kibi;
  sum.resident_shared += number_after(status, "\nRssShmem:") * kibi;
  add_shared_mappings(sys::read_file(base + "/maps", long_file).value_or(""), sum.mapped);
  // Each thread has children of its own.
  for (const pid_t thread : numbered_entries(base + "/task")) {
    const std::string children =
        sys::read_file(format("{}/task/{}/children", base, thread), small_file).value_or("");
    for (const std::string_view child : split(children, ' ')) {
      pid_t number = 0;
      std::from_chars(child.data(), child.data() + child.size(), number);
      if (number > 0) add_descendants(number, sum);
    }
  }
}

}  // namespace

// "7f01a000-7f01b000 rw-s 00000000 00:01 1234    /dev/zero (deleted)"
void add_shared_mappings(std::string_view maps, SharedMappings& into) {
  for (const std::string_view line : EachPart(maps, '\n')) {
    if (!line.ends_with("/dev/zero (deleted)") || !line.contains(" rw-s ")) continue;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t inode = 0;
    const auto fields = split(line, ' ');
    if (fields.size() < 5) continue;
    const auto range = split(fields[0], '-');
    if (range.size() != 2) continue;
    std::from_chars(range[0].data(), range[0].data() + range[0].size(), begin, 16);
    std::from_chars(range[1].data(), range[1].data() + range[1].size(), end, 16);
    if (end < begin) continue;
    std::uint64_t offset = 0;
    std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), offset, 16);
    std::from_chars(fields[4].data(), fields[4].data() + fields[4].size(), inode);
    std::uint64_t& largest = into[inode];
    largest = std::max(largest, offset + (end - begin));
  }
}

std::uint64_t memory_of_descendants(pid_t pid) {
  Sum sum;
  add_descendants(pid, sum);
  std::uint64_t mapped = 0;
  for (const auto& [inode, size] : sum.mapped) mapped += size;
  return sum.own + std::max(sum.resident_shared, mapped);
}

}  // namespace capgate::sandbox
