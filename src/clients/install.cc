#include "clients/install.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "clients/installer.h"
#include "clients/names.h"
#include "clients/tree.h"
#include "sys/file.h"

namespace capgate::clients {
namespace {

std::unexpected<StoreProblem> failed(const std::string& path, int error) {
  return refuse(format("{}: {}", escape_for_terminal(path), std::strerror(error)),
                "set XDG_DATA_HOME to a directory of yours");
}

// The header of flock(2) has the name of one of ours.
bool take_lock(int file, int how) { return ::syscall(SYS_flock, file, how) == 0; }

void tell(const InstallOptions& options, std::string_view step) {
  if (options.progress) options.progress(step);
}

std::vector<std::string> names_in(const std::string& directory) {
  return names_inside(directory, ".");
}

// Held while anything in the store changes. The kernel lets go of it when this process ends.
Stored<sys::Fd> lock_store(const Store& store, const InstallOptions& options) {
  const auto made = sys::make_directories(store.base);
  if (!made) return failed(made.error().subject, made.error().err);
  const std::string path = store.base + "/install.lock";
  sys::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return failed(path, errno);
  if (take_lock(file.get(), LOCK_EX | LOCK_NB)) return file;
  tell(options, "waiting for another install");
  while (!take_lock(file.get(), LOCK_EX)) {
    if (errno != EINTR) return failed(path, errno);
  }
  return file;
}

// Whatever is there was left by an install that did not end.
Stored<void> clear_staging(const Store& store) {
  if (remove_tree(store.staging())) return {};
  return failed(store.staging(), errno);
}

// The commit: a reader sees the old lock or the new one.
Stored<void> replace_lock(const Store& store, const Lock& lock) {
  const std::string next = store.lock_file() + ".new";
  if (::unlink(next.c_str()) != 0 && errno != ENOENT) return failed(next, errno);
  if (auto done = write_text(next, print(lock)); !done) return done;
  const sys::Fd file(::open(next.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0 || ::fsync(file.get()) != 0) return failed(next, errno);
  if (::rename(next.c_str(), store.lock_file().c_str()) != 0) return failed(next, errno);
  return {};
}

bool is_used(const Store& store, const Lock& lock, const std::string& directory) {
  return std::ranges::any_of(lock.packages, [&](const LockedPackage& locked) {
    return store.directory_of(locked) == directory;
  });
}

// A server that runs from a tree holds a shared lock on it.
bool is_free(const std::string& directory) {
  const sys::Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return opened.get() >= 0 && take_lock(opened.get(), LOCK_EX | LOCK_NB);
}

// Trees that the lock does not name any more. First out of sight, so that nobody starts from half
// of one.
void sweep(const Store& store, const Lock& lock) {
  const std::string grave = store.staging() + "/removed";
  for (const char* const registry : {"npm", "pypi"}) {
    const std::string all = format("{}/packages/{}", store.base, registry);
    for (const std::string& name : names_in(all)) {
      const std::string package = format("{}/{}", all, name);
      for (const std::string& version : names_in(package)) {
        const std::string tree = format("{}/{}", package, version);
        if (is_used(store, lock, tree) || !is_free(tree)) continue;
        if (!sys::make_directories(store.staging())) return;
        if (::rename(tree.c_str(), grave.c_str()) == 0) (void)remove_tree(grave);
      }
      (void)::rmdir(package.c_str());
    }
  }
}

// The tree at its place. One that is there already is the same one, unless someone changed it.
Stored<void> move_tree(const Store& store, const Work& work, const LockedPackage& locked) {
  const std::string place = store.directory_of(locked);
  const std::string parent = place.substr(0, place.rfind('/'));
  if (const auto made = sys::make_directories(parent); !made) {
    return failed(made.error().subject, made.error().err);
  }
  struct stat info{};
  if (::lstat(place.c_str(), &info) == 0) {
    if (check_installed(store, locked)) return {};
    if (::rename(place.c_str(), (work.staging + "/replaced").c_str()) != 0) {
      return failed(place, errno);
    }
  }
  if (::rename(work.tree().c_str(), place.c_str()) != 0) return failed(place, errno);
  return {};
}

Stored<LockedPackage> make_tree(const Work& work) {
  if (const auto made = sys::make_directories(work.tree()); !made) {
    return failed(made.error().subject, made.error().err);
  }
  Fetched fetched =
      TRY(work.package.registry == Package::Registry::npm ? fetch_npm(work) : fetch_pypi(work));
  tell(work.options, "checking what was installed");
  if (auto done = settle_tree(work.tree()); !done) return std::unexpected(std::move(done).error());
  return LockedPackage{.package = work.package,
                       .version = std::move(fetched.version),
                       .integrity = std::move(fetched.integrity),
                       .tree = TRY(hash_tree(work.tree())),
                       .runtime = std::move(fetched.runtime),
                       .scripts = work.options.scripts};
}

// Every program of the package is a command of its own; without a name it may be none.
Installed describe(const Store& store, const LockedPackage& locked) {
  const auto found =
      find_installed(store, {.package = locked.package, .executable = "", .arguments = {}});
  if (found && *found) return **found;
  return {.locked = locked, .directory = store.directory_of(locked), .command = {}};
}

}  // namespace

Stored<Installed> install(const Store& store, const Package& package,
                          const InstallOptions& options) {
  if (!is_name(package) || !is_range(package.range)) {
    return refuse(format("{} is no package", quoted(print(package))),
                  "write npm:NAME@RANGE or pypi:NAME==VERSION");
  }
  const sys::Fd held = TRY(lock_store(store, options));
  if (auto done = clear_staging(store); !done) return std::unexpected(std::move(done).error());
  Lock lock = TRY(read_lock(store));
  const LockedPackage* found = find_locked(lock, package);
  const bool lacks_scripts = found != nullptr && options.scripts && !found->scripts;
  if (found != nullptr && !options.again && !lacks_scripts) {
    struct stat info{};
    if (::lstat(store.directory_of(*found).c_str(), &info) == 0) return describe(store, *found);
  }
  const Work work{.package = package, .options = options, .staging = store.staging() + "/work"};
  const LockedPackage made = TRY(make_tree(work));
  // What the registry says is written only if it can be read again, with the other packages.
  if (!parse_lock(print(Lock{.packages = {made}}))) {
    return refuse(
        format("what the registry says of {} cannot be kept in capgate.lock", print(package)),
        "its version and its hash must be plain and short");
  }
  if (auto done = move_tree(store, work, made); !done) {
    return std::unexpected(std::move(done).error());
  }
  std::erase_if(lock.packages, [&](const auto& locked) { return locked.package == package; });
  lock.packages.push_back(made);
  if (auto done = replace_lock(store, lock); !done) return std::unexpected(std::move(done).error());
  sweep(store, lock);
  (void)clear_staging(store).has_value();  // what stays is removed by the next install
  return describe(store, made);
}

Stored<bool> remove_installed(const Store& store, const Package& package) {
  const sys::Fd held = TRY(lock_store(store, {}));
  Lock lock = TRY(read_lock(store));
  const auto gone = std::erase_if(lock.packages, [&](const LockedPackage& locked) {
    return locked.package.registry == package.registry && locked.package.name == package.name &&
           (package.range.empty() || locked.package.range == package.range);
  });
  if (gone == 0) return false;
  if (auto done = replace_lock(store, lock); !done) return std::unexpected(std::move(done).error());
  sweep(store, lock);
  (void)clear_staging(store).has_value();  // what stays is removed by the next install
  return true;
}

}  // namespace capgate::clients
