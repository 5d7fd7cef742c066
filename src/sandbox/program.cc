#include "sandbox/program.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"
#include "lower/common.h"

namespace capgate::sandbox {
namespace {

constexpr int most_interpreters = 4;
constexpr int most_links = 40;

// Programs that are useless without others of their own, which lie outside the program directories.
struct Helpers {
  std::string_view name;
  std::string_view directory;
};
constexpr Helpers helper_directories[] = {
    {"chromium", "/usr/lib/chromium"},       {"git", "/usr/lib/git-core"},
    {"git", "/usr/libexec/git-core"},        {"firefox", "/usr/lib/firefox"},
    {"firefox-esr", "/usr/lib/firefox-esr"},
};

std::string directory_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_executable(const std::string& path) {
  return is_file(path) && ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

std::expected<std::string, Refusal> look_up(std::string_view name, std::string_view path,
                                            const Caller& caller) {
  const auto refuse = [&](int code, std::string_view why) {
    return std::unexpected(Refusal{.message = format("{}: {}", quoted(name), why),
                                   .help = "check the command after --",
                                   .exit_code = code});
  };
  if (name.empty()) return refuse(127, "is no command");
  if (name.contains('/')) {
    std::string full =
        name.starts_with('/') ? std::string(name) : caller.directory + "/" + std::string(name);
    if (is_executable(full)) return full;
    if (::access(full.c_str(), F_OK) != 0) return refuse(127, "no such file");
    return refuse(126, "is not an executable file");
  }
  bool found = false;
  for (const std::string_view directory : split(path, ':')) {
    if (!directory.starts_with('/')) continue;  // a relative entry would run whatever lies here
    std::string full = format("{}/{}", directory, name);
    if (is_executable(full)) return full;
    found |= is_file(full);
  }
  return found ? refuse(126, "is not executable") : refuse(127, "command not found");
}

// "python3.11" is a python.
bool is_interpreter(std::string_view name) {
  constexpr std::string_view interpreters[] = {"bun",  "deno", "java", "julia",  "lua", "node",
                                               "perl", "php",  "pypy", "python", "ruby"};
  const std::string_view base = name.substr(0, name.find_first_of("-.0123456789"));
  return contains(interpreters, base);
}

class Finder {
 public:
  Finder(const Caller& caller, Shebang shebang) : caller_(caller), shebang_(shebang) {}

  std::expected<Program, Refusal> find(std::string path, std::vector<std::string> arguments) {
    for (int depth = 0;; ++depth) {
      const std::string real = follow_links(path);
      const sys::Fd file(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
      if (file.get() < 0) return unreadable(path, errno);
      std::string start(4096, '\0');
      const ssize_t size = ::pread(file.get(), start.data(), start.size(), 0);
      if (size < 0) return unreadable(path, errno);
      start.resize(static_cast<std::size_t>(size));
      if (start.starts_with("#!")) {
        if (depth == most_interpreters) return unreadable(path, ELOOP);
        program_.readable.push_back(real);
        const Script script{.path = path, .real = real, .inside = inside_name(path, real)};
        auto next = interpreter(start, script, arguments);
        if (!next) return std::unexpected(std::move(next).error());
        path = *std::move(next);
        continue;
      }
      const auto identity = identify(file.get());
      if (!identity) return unreadable(path, identity.error());
      program_.file = inside_name(path, real);
      program_.identity = *identity;
      program_.arguments = std::move(arguments);
      program_.executables.push_back(real);
      add_loader(file.get(), start);
      add_prefix(program_.file);
      if (real != program_.file) add_prefix(real);
      return std::move(program_);
    }
  }

 private:
  static std::unexpected<Refusal> unreadable(std::string_view path, int error) {
    return std::unexpected(
        Refusal{.message = format("{}: {}", escape_for_terminal(path), std::strerror(error)),
                .help = "capgate must read a program to know what it needs",
                .exit_code = 126});
  }

  // Every link from the name to the file, so that the name works inside, too. As the kernel walks:
  // ".." after a link leads where the link led.
  std::string follow_links(const std::string& path) {
    std::string at;
    std::string rest = path;
    int links = 0;
    while (!rest.empty()) {
      const std::size_t slash = rest.find('/');
      const std::string name = rest.substr(0, slash);
      rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
      if (name.empty() || name == ".") continue;
      if (name == "..") {
        at.resize(at.empty() ? 0 : at.rfind('/'));
        continue;
      }
      const std::string place = format("{}/{}", at, name);
      std::string target(4096, '\0');
      const ssize_t size = ::readlink(place.c_str(), target.data(), target.size());
      if (size < 0 || ++links > most_links) {
        at = place;
        continue;
      }
      target.resize(static_cast<std::size_t>(size));
      program_.links.emplace_back(place, target);
      if (target.starts_with('/')) at.clear();
      rest = format("{}/{}", target, rest);
    }
    return at;
  }

  // The name under which a file is known inside: as it was given, unless that name only means
  // something on the way ("./a/../b").
  static std::string inside_name(const std::string& path, const std::string& real) {
    return plain_path(path) == path ? path : real;
  }

  struct Script {
    std::string path;    // as it was named
    std::string real;    // without links
    std::string inside;  // as it is named inside
  };

  static bool is_of_the_system(std::string_view path) {
    constexpr std::string_view places[] = {"/usr", "/bin", "/sbin", "/nix/store"};
    return std::ranges::any_of(
        places, [&](std::string_view place) { return core::is_at_or_below(path, place); });
  }

  // A relative name depends on where the caller happens to stand.
  std::expected<void, Refusal> allow_interpreter(const std::string& name,
                                                 const Script& script) const {
    if (shebang_ == Shebang::any || !name.contains('/')) return {};
    const std::string plain = plain_path(name);
    const bool is_beside = directory_of(plain) == directory_of(script.real) ||
                           directory_of(plain) == directory_of(plain_path(script.path));
    if (name.starts_with('/') && (is_of_the_system(plain) || is_beside)) return {};
    return std::unexpected(Refusal{
        .message = format("the first line of {} names the interpreter {}, which is neither the "
                          "system's nor beside it",
                          escape_for_terminal(script.inside), quoted(name)),
        .help = format("if it is meant, name it yourself: --allow 'fs:read:{0}' -- INTERPRETER {0}",
                       escape_for_terminal(script.inside)),
        .exit_code = 126});
  }

  // "#!/usr/bin/env -S node --flag": the program to run instead; `arguments` become its own.
  std::expected<std::string, Refusal> interpreter(std::string_view start, const Script& script,
                                                  std::vector<std::string>& arguments) {
    const std::string_view line = trim(start.substr(2, start.find('\n') - 2));
    const std::size_t space = line.find_first_of(" \t");
    std::string_view name = line.substr(0, space);
    std::string_view rest = space == std::string_view::npos ? "" : trim(line.substr(space));
    std::vector<std::string> words;
    if (name_of(name) == "env") {
      bool splits = false;
      if (rest.starts_with("-S")) {
        rest = trim(rest.substr(2));
        splits = true;
      }
      const std::size_t end = rest.find_first_of(" \t");
      if (rest.starts_with('-') || rest.substr(0, end).contains('=') || rest.empty() ||
          (end != std::string_view::npos && !splits) ||
          (splits && rest.find_first_of("\"'\\$#") != std::string_view::npos)) {
        return std::unexpected(
            Refusal{.message = format("{}: {} is not understood",
                                      escape_for_terminal(script.inside), quoted(line)),
                    .help = "name the interpreter on the command line",
                    .exit_code = 126});
      }
      name = rest.substr(0, end);
      if (end != std::string_view::npos) {
        std::string arguments_of_env(rest.substr(end));
        std::ranges::replace(arguments_of_env, '\t', ' ');
        for (const std::string_view word : split(arguments_of_env, ' ')) {
          if (!word.empty()) words.emplace_back(word);
        }
      }
    } else if (!rest.empty()) {
      words.emplace_back(rest);  // the kernel passes it as one word
    }
    if (auto allowed = allow_interpreter(std::string(name), script); !allowed) {
      return std::unexpected(std::move(allowed).error());
    }
    std::string file = TRY(look_up(name, caller_.path, caller_));
    words.insert(words.begin(), file);
    words.push_back(script.inside);
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    arguments = std::move(words);
    return file;
  }

  // The dynamic loader is run by the kernel, so it must be executable, too.
  void add_loader(int file, std::string_view start) {
    Elf64_Ehdr head{};
    if (start.size() < sizeof(head)) return;
    std::memcpy(&head, start.substr(0, sizeof(head)).data(), sizeof(head));
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) {
      return;
    }
    for (unsigned i = 0; i < head.e_phnum && i < 64; ++i) {
      Elf64_Phdr part{};
      const auto at = static_cast<off_t>(head.e_phoff + i * sizeof(part));
      if (::pread(file, &part, sizeof(part), at) != sizeof(part)) return;
      if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz > 4096) continue;
      std::string loader(part.p_filesz, '\0');
      const auto size =
          ::pread(file, loader.data(), loader.size(), static_cast<off_t>(part.p_offset));
      if (size != static_cast<ssize_t>(loader.size())) return;
      program_.executables.push_back(follow_links(loader.c_str()));
      return;
    }
  }

  // DIR of DIR/bin/python3, where an interpreter has its library. Not where it would open a home
  // directory or credentials: then the program has to do with its file.
  void add_prefix(std::string_view path) {
    const std::string directory = directory_of(path);
    if (name_of(directory) != "bin" || !is_interpreter(name_of(path))) return;
    std::string prefix = directory_of(directory);
    if (!identify(prefix + "/lib") && !identify(prefix + "/pyvenv.cfg")) return;
    if (prefix == "/" || core::is_at_or_below(prefix, "/usr") ||
        core::is_at_or_below(prefix, "/nix/store")) {
      return;
    }
    if (core::refused_scope(prefix, caller_.home) ||
        !core::credentials_below(prefix, caller_.home).empty() ||
        core::credential_at(prefix, caller_.home) != nullptr) {
      program_.notes.push_back(
          format("program: {} alone is visible, not the directory {} around it",
                 escape_for_terminal(path), escape_for_terminal(prefix)));
      return;
    }
    if (!contains(program_.prefixes, prefix)) program_.prefixes.push_back(std::move(prefix));
  }

  const Caller& caller_;
  Shebang shebang_;
  Program program_;
};

}  // namespace

std::expected<Program, Refusal> find_program(const std::vector<std::string>& command,
                                             const Caller& caller, Shebang shebang) {
  std::string path = TRY(look_up(command.front(), caller.path, caller));
  return Finder(caller, shebang).find(std::move(path), command);
}

std::expected<Program, Refusal> find_spawned(const std::string& name, const Caller& caller) {
  auto path = look_up(name, lower::sandbox_path, caller);
  if (!path) {
    return std::unexpected(Refusal{
        .message =
            format("exec:spawn:{}: there is no such program in {}", name, lower::sandbox_path),
        .help = "install it, or remove the capability"});
  }
  Program program = TRY(Finder(caller, Shebang::trusted_place).find(*std::move(path), {name}));
  // The kernel runs a script before it runs the script's interpreter.
  program.executables.insert(program.executables.end(), program.readable.begin(),
                             program.readable.end());
  for (const Helpers& helpers : helper_directories) {
    if (helpers.name != name || !identify(std::string(helpers.directory))) continue;
    program.executable_directories.emplace_back(helpers.directory);
  }
  return program;
}

}  // namespace capgate::sandbox
