#include "cli/audit_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/exit.h"
#include "egress/audit.h"

namespace capgate::cli {
namespace {

namespace fs = std::filesystem;

// Lines that cannot be read: the first few are said one by one.
class Skipped {
 public:
  Skipped(const std::string& path, Output& output)
      : path_(escape_for_terminal(path)), output_(output) {}

  void add(std::uint64_t line, const egress::AuditMistake& mistake) {
    if (++count_ <= most_said) {
      output_.err += format("capgate: {}:{}: left out, byte {}: {}\n", path_, line,
                            mistake.offset + 1, mistake.message);
    }
  }
  ~Skipped() {
    if (count_ > most_said) {
      output_.err += format("capgate: {}: {} more were left out\n", path_, count_ - most_said);
    }
  }
  Skipped(const Skipped&) = delete;
  Skipped(Skipped&&) = delete;
  Skipped& operator=(const Skipped&) = delete;
  Skipped& operator=(Skipped&&) = delete;

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  static constexpr std::uint64_t most_said = 5;
  std::string path_;
  Output& output_;
  std::uint64_t count_ = 0;
};

int not_an_audit_log(const std::string& path, Output& output) {
  output.err += format("capgate: {} is not an audit log\nhelp: see docs/audit.md for the format\n",
                       escape_for_terminal(path));
  return Exit::unreadable;
}

struct End {
  std::uint64_t size = 0;
  bool is_line_end = true;  // the last byte is a newline
};

sys::Sys<End> find_end(const sys::Fd& file, const std::string& path) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) {
    return std::unexpected(sys::SysError{"fstat", errno, path});
  }
  if (S_ISDIR(info.st_mode)) return std::unexpected(sys::SysError{"read", EISDIR, path});
  if (!S_ISREG(info.st_mode)) return std::unexpected(sys::SysError{"pread", ESPIPE, path});
  char last = '\n';
  if (info.st_size > 0 && ::pread(file.get(), &last, 1, info.st_size - 1) < 0) {
    return std::unexpected(sys::SysError{"pread", errno, path});
  }
  return End{.size = static_cast<std::uint64_t>(info.st_size), .is_line_end = last == '\n'};
}

}  // namespace

std::vector<std::string> find_audit_files() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(audit_directory(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;  // removed meanwhile
    if (entry->path().extension() != ".jsonl" || !entry->is_regular_file(ignored)) continue;
    found.emplace_back(entry->last_write_time(ignored), entry->path().string());
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

sys::Sys<sys::LineReader> open_audit_file(const std::string& path, std::uint64_t offset) {
  sys::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return std::unexpected(sys::SysError{"open", errno, path});
  return sys::LineReader(std::move(file), egress::longest_audit_line, offset);
}

int cannot_read(const std::string& path, const sys::SysError& error, Output& output) {
  output.err +=
      format("capgate: cannot read {}: {}\n", escape_for_terminal(path), sys::reason(error));
  return Exit::unreadable;
}

std::expected<void, int> each_record(const std::string& path,
                                     const std::function<void(AuditEntry)>& visit, Output& output) {
  auto lines = open_audit_file(path);
  if (!lines) return std::unexpected(cannot_read(path, lines.error(), output));
  Skipped skipped(path, output);
  std::uint64_t number = 0;
  bool is_log = false;
  for (;;) {
    const auto line = lines->next();
    if (!line) return std::unexpected(cannot_read(path, line.error(), output));
    // What is not ended is being written just now, or was cut by a crash: verify tells of it.
    if (!*line || !(*line)->is_ended) break;
    ++number;
    auto record = egress::read_audit_line((*line)->text);
    if (record) {
      is_log = true;
      visit({.record = *std::move(record), .line = std::string((*line)->text)});
      continue;
    }
    skipped.add(number, record.error());
    // One line may have been cut by a crash; the next one goes on.
    if (!is_log && skipped.count() > 1) break;
  }
  if (!is_log && number > 0) return std::unexpected(not_an_audit_log(path, output));
  return {};
}

std::expected<LastRecords, int> last_records(const std::string& path, const AuditFilter& filter,
                                             std::uint64_t most, Output& output) {
  const auto lines = open_audit_file(path);
  if (!lines) return std::unexpected(cannot_read(path, lines.error(), output));
  const auto end = find_end(lines->file(), path);
  if (!end) return std::unexpected(cannot_read(path, end.error(), output));
  LastRecords last{.end = end->size};
  if (end->size == 0) return last;

  bool is_ended = end->is_line_end;
  bool is_log = false;
  std::uint64_t unreadable = 0;
  const auto visit = [&](std::string_view line) {
    if (!std::exchange(is_ended, true)) {  // what is being written just now is for later
      last.end -= line.size();
      return true;
    }
    auto record = egress::read_audit_line(line);
    is_log |= record.has_value();
    if (!record) return ++unreadable < 2 || is_log;
    if (most > 0 && matches(filter, *record)) {
      last.entries.push_back({.record = *std::move(record), .line = std::string(line)});
    }
    return last.entries.size() < most;
  };
  const auto done =
      sys::each_line_backwards(lines->file().get(), end->size - (end->is_line_end ? 1 : 0),
                               egress::longest_audit_line, visit);
  if (!done) return std::unexpected(cannot_read(path, done.error(), output));
  if (!is_log && (unreadable > 0 || !*done)) {
    return std::unexpected(not_an_audit_log(path, output));
  }
  if (unreadable > 0) {
    output.err +=
        format("capgate: {}: {} unreadable lines were left out\nhelp: see capgate audit verify\n",
               escape_for_terminal(path), unreadable);
  }
  std::ranges::reverse(last.entries);
  return last;
}

}  // namespace capgate::cli
