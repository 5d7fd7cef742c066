#include "clients/installer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "secrets/command.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

constexpr std::chrono::seconds longest_install{900};
constexpr std::chrono::seconds longest_question{30};
constexpr std::size_t largest_bundle = std::size_t{4} << 20U;

constexpr const char* host_bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL
    "/etc/ssl/cert.pem",                                  // OpenSSL's own name
};

std::string read_bundle(const std::string& path) {
  auto text = sys::read_file(path, largest_bundle);
  if (!text || text->size() > largest_bundle || !text->contains("-----BEGIN CERTIFICATE-----")) {
    return "";
  }
  return *std::move(text) + "\n";
}

}  // namespace

std::string variable_of(const Work& work, std::string_view name) {
  const char* value = secrets::find_variable(name, work.options.environment);
  return value == nullptr ? "" : value;
}

Stored<std::string> find_tool(const Work& work, const std::string& name, std::string_view help) {
  std::string found = secrets::find_in_path(name, {format("PATH={}", work.options.path)});
  if (found.empty()) {
    return refuse(
        format("{} is needed to install {}, and is not in PATH", name, print(work.package)),
        std::string(help));
  }
  return found;
}

Stored<std::string> ask_tool(const Work& work, std::vector<std::string> words) {
  auto ended = run_tool({.words = std::move(words),
                         .environment = work.options.environment,
                         .directory = work.options.home,
                         .limit = longest_question});
  if (!ended) return std::unexpected(std::move(ended).error());
  if (ended->status != 0) return refuse(last_words(ended->err), "");
  return ended->out;
}

Stored<ToolEnd> run_confined(const Work& work, const Confined& confined) {
  std::vector<std::string> words{work.options.capgate, "run", "--allow",
                                 fs_capability("write", work.staging)};
  for (const std::string& capability : confined.capabilities) {
    words.insert(words.end(), {"--allow", capability});
  }
  words.emplace_back("--");
  words.insert(words.end(), confined.command.begin(), confined.command.end());
  const auto tell = [&] {
    if (work.options.progress) work.options.progress(confined.step);
  };
  return run_tool({.words = std::move(words),
                   .environment = work.options.environment,
                   .directory = work.staging,
                   .limit = longest_install,
                   .while_waiting = tell});
}

std::string fs_capability(std::string_view action, std::string_view directory) {
  std::string escaped;
  for (const char c : directory) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return format("fs:{}:\"{}/**\"", action, escaped);
}

std::string write_certificates(const Work& work, const std::vector<std::string>& more) {
  std::string all;
  for (const char* const path : host_bundles) {
    if (all = read_bundle(path); !all.empty()) break;
  }
  if (all.empty()) return "";
  for (const std::string& path : more) {
    if (path.starts_with('/')) all += read_bundle(path);
  }
  const std::string out = work.staging + "/certificates.pem";
  return write_text(out, all) ? out : "";
}

Stored<void> write_text(const std::string& path, std::string_view text) {
  const sys::Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() >= 0 && sys::write_all(file.get(), text)) return {};
  return refuse(format("cannot write {}: {}", escape_for_terminal(path), std::strerror(errno)),
                "check the directory and its file system");
}

std::string last_words(std::string_view err) {
  constexpr std::size_t most_lines = 8;
  std::vector<std::string_view> lines;
  for (const std::string_view line : split(trim(err), '\n')) {
    if (!trim(line).empty()) lines.push_back(trim(line));
  }
  std::string out;
  const std::size_t first = lines.size() > most_lines ? lines.size() - most_lines : 0;
  for (std::size_t i = first; i < lines.size(); ++i) {
    out += format("{}{}", out.empty() ? "" : "\n  ", escape_for_terminal(lines[i].substr(0, 300)));
  }
  return out.empty() ? "it said nothing" : out;
}

}  // namespace capgate::clients
