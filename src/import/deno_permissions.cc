#include "import/deno_permissions.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace capgate::imports::deno {
namespace {

Rules::Item item(const Entry& entry, std::string_view subject) {
  return {.text = entry.text, .where = entry.where, .subject = subject};
}

// The program that a name or a path starts.
std::string_view program_of(std::string_view text) {
  return text.substr(text.find_last_of('/') + 1);
}

}  // namespace

Permission& Permissions::operator[](std::string_view kind) {
  const auto at = std::ranges::find(kind_names, kind) - kind_names.begin();
  return kinds_.at(static_cast<std::size_t>(at));
}

void Permissions::refuse_all(Span where) {
  in_.refuse(where, "all rights are no manifest",
             "name what the program needs: --allow-read=PATH --allow-net=HOST:PORT ...");
}

// Each is compared with each further down.
bool Permissions::is_short() {
  for (const Permission& permission : kinds_) {
    for (const auto* list : {&permission.allow, &permission.deny}) {
      if (list->size() <= Rules::most_rules) continue;
      in_.refuse(list->back().where,
                 format("there are more than {} rules of one kind", Rules::most_rules),
                 "name directories and domains instead of each file and host");
      return false;
    }
  }
  return true;
}

Checked<Imported> Permissions::finish() && {
  if (!is_short()) return std::move(in_).finish();
  deny_everything();
  files("read", Access::read);
  files("write", Access::write);
  network("net");
  network("import");
  environment();
  programs();
  libraries();
  if ((*this)["sys"].all || !(*this)["sys"].allow.empty()) {
    in_.out().dropped("sys",
                      "what the system tells about itself is not a capability: a sandbox shows "
                      "what it shows to everyone");
  }
  in_.out().unsaid("import",
                   "Deno reads its own modules and fetches them from a few hosts without "
                   "being asked: grant the directory of the program, and its cache");
  in_.out().unsaid("tools", "the flags are for a whole process: no tool is named");
  return std::move(in_).finish();
}

void Permissions::allowed_and_denied(std::string_view kind, std::string_view what) {
  in_.out().assumed(
      kind,
      format("{} is allowed and denied: the deny holds, and the manifest does not grant it", what));
}

// A deny without a value is a deny of everything of its kind.
void Permissions::deny_everything() {
  for (const std::string_view kind : kind_names) {
    Permission& permission = (*this)[kind];
    if (!permission.none) continue;
    if (permission.all || !permission.allow.empty()) allowed_and_denied(kind, kind);
    permission.all.reset();
    permission.allow.clear();
  }
  // Here who may write may read.
  if ((*this)["read"].none && (*this)["write"].all) return;
  if ((*this)["read"].none && !(*this)["write"].allow.empty()) {
    in_.out().assumed("write",
                      "reading is denied, and writing includes it here: the manifest grants "
                      "neither");
    (*this)["write"].allow.clear();
  }
}

void Permissions::files(std::string_view kind, Access access) {
  const Permission& permission = (*this)[kind];
  if (permission.all) {
    in_.refuse(*permission.all,
               format("every file may be {}", access == Access::read ? "read" : "written"),
               format("name the directories: --allow-{}=PATH", kind));
  }
  for (const Entry& entry : permission.allow) {
    if (!is_plain_path(entry)) continue;
    if (access == Access::write && !is_read(entry)) {
      in_.out().assumed("write",
                        format("{} may be written there and not read; writing includes reading "
                               "here",
                               quoted(entry.text)));
    }
    in_.allow_path(access, item(entry, kind));
  }
  for (const Entry& entry : permission.deny) {
    if (is_plain_path(entry)) in_.deny_path(access, item(entry, kind));
  }
}

bool Permissions::is_plain_path(const Entry& entry) {
  if (!entry.text.starts_with('~') && !entry.text.contains("${") &&
      find_any(entry.text, "*?[]{}") == std::string_view::npos) {
    return true;
  }
  in_.complain(entry.where, "Deno takes paths as they are, without ~, variables and wildcards",
               "write the path out");
  return false;
}

bool Permissions::is_read(const Entry& entry) {
  return std::ranges::any_of((*this)["read"].allow, [&](const Entry& read) {
    return core::is_at_or_below(entry.text, read.text);
  });
}

void Permissions::network(std::string_view kind) {
  const Permission& permission = (*this)[kind];
  if (permission.all) {
    in_.allow_endpoint({}, {.text = "*", .where = *permission.all, .subject = kind});
  }
  for (const Entry& entry : permission.allow) {
    const auto endpoint = in_.endpoint(item(entry, kind));
    if (!endpoint) continue;
    const std::string host = print(endpoint->host);
    if (host == "0.0.0.0" || host == "[::]") {
      in_.out().dropped(
          kind, format("{} is where the program listens: add net:listen:PORT", quoted(entry.text)));
      continue;
    }
    in_.allow_endpoint(*endpoint, item(entry, kind));
  }
  for (const Entry& entry : permission.deny) in_.deny_host(item(entry, kind));
}

void Permissions::environment() {
  const Permission& permission = (*this)["env"];
  if (permission.all) {
    in_.out().assumed("env",
                      "every variable may be read there; the manifest grants none. Add "
                      "env:read:NAME and env:inject:NAME");
  }
  for (const Entry& entry : permission.allow) {
    if (entry.text.contains('*')) {
      in_.out().dropped("env", format("{} is no name of one variable: add each of them as "
                                      "env:read:NAME",
                                      quoted(entry.text)));
      continue;
    }
    const bool denied = std::ranges::any_of(permission.deny, [&](const Entry& deny) {
      return core::matches_glob(entry.text, deny.text);
    });
    if (denied) {
      allowed_and_denied("env", quoted(entry.text));
    } else {
      in_.allow_variable(core::EnvCapability::Action::read, item(entry, "env"));
    }
  }
}

// A manifest names programs, and a deny may name the file: it is the one that the name stands for.
void Permissions::programs() {
  const Permission& permission = (*this)["run"];
  if (permission.all) {
    in_.refuse(*permission.all, "every program may be started", "name them: --allow-run=git");
  }
  for (const Entry& entry : permission.allow) {
    const bool denied = std::ranges::any_of(permission.deny, [&](const Entry& deny) {
      return program_of(deny.text) == program_of(entry.text);
    });
    if (denied) {
      allowed_and_denied("run", quoted(entry.text));
    } else {
      in_.allow_program(item(entry, "run"));
    }
  }
}

// A library that is loaded is read, and stays in the sandbox.
void Permissions::libraries() {
  const Permission& permission = (*this)["ffi"];
  if (permission.all) {
    in_.out().dropped("ffi",
                      "which libraries are loaded is not said: grant each with fs:read:PATH");
  }
  for (const Entry& entry : permission.allow) {
    if (is_plain_path(entry)) in_.allow_path(Access::read, item(entry, "ffi"));
  }
  if (permission.allow.empty()) return;  // whatever is denied, no library is loaded
  for (const Entry& entry : permission.deny) {
    if (is_plain_path(entry)) in_.deny_path(Access::read, item(entry, "ffi"));
  }
}

}  // namespace capgate::imports::deno
