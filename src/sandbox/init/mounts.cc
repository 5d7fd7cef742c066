// The sandbox's file tree: built beside the host's, then made the root.
//
// Sources are paths of the host and are opened before the pivot; targets are looked up below the
// new root and never through a symbolic link, since some of them lie inside granted directories,
// whose contents are not ours.
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>

#include "sandbox/init/init.h"

namespace capgate::sandbox::init {
namespace {

using orders::Mount;
using orders::MountKind;

constexpr long at_empty_path = 0x1000;
constexpr long at_recursive = 0x8000;
constexpr long no_device = -19;
constexpr long stale = -116;
constexpr long not_found = -2;

int new_root = -1;
int empty_directory =
    -1;  // sources of covers, in the new root; in the end below the mount of /proc
int empty_file = -1;
constexpr const char* cover_directory = ".empty-directory";
constexpr const char* cover_file = ".empty-file";

long close(long fd) { return call(__NR_close, fd); }

// Below the new root; the final component may be anything but a symbolic link.
long open_target(const char* path) {
  const open_how how{.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                     .mode = 0,
                     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  return call(__NR_openat2, new_root, path, &how, sizeof(how));
}

// The descriptor must show what the supervisor saw: same device, inode and type.
long check_identity(long fd, const Mount& mount) {
  struct statx info{};
  const long result = call(__NR_statx, fd, "", at_empty_path, STATX_TYPE | STATX_INO, &info);
  if (result < 0) return result;
  const std::uint64_t device =
      (std::uint64_t{info.stx_dev_major} << 32U) | std::uint64_t{info.stx_dev_minor};
  const bool same = device == mount.device && info.stx_ino == mount.inode &&
                    (info.stx_mode & S_IFMT) == (mount.mode & S_IFMT);
  return same ? 0 : stale;
}

// Without following a link at the end.
long clone_path(const char* path) {
  constexpr long no_follow = 0x100;
  return call(__NR_open_tree, AT_FDCWD, path,
              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | no_follow | at_recursive);
}

long clone_tree(long fd) {
  return call(__NR_open_tree, fd, "",
              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | at_empty_path | at_recursive);
}

long set_attributes(long tree, std::uint64_t attributes) {
  const mount_attr attr{.attr_set = attributes, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  return call(__NR_mount_setattr, tree, "", at_empty_path | at_recursive, &attr, sizeof(attr));
}

// Puts a detached mount on the target and closes both.
long attach(long tree, long target) {
  const long result = call(__NR_move_mount, tree, "", target, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  close(tree);
  close(target);
  return result;
}

long make_file_system(const char* type, const char* size, const char* inodes, const char* mode,
                      std::uint64_t attributes) {
  const long context = call(__NR_fsopen, type, FSOPEN_CLOEXEC);
  if (context < 0) return context;
  long result = 0;
  const auto set = [&](const char* key, const char* value) {
    if (result >= 0 && value != nullptr) {
      result = call(__NR_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0);
    }
  };
  set("size", size);
  set("nr_inodes", inodes);
  set("mode", mode);
  if (result >= 0) result = call(__NR_fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
  if (result >= 0) result = call(__NR_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  close(context);
  return result;
}

// Decimal, or octal for modes. The buffer holds 24 characters.
const char* digits(std::uint64_t value, unsigned base, char* buffer) {
  char* at = buffer + 23;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + value % base);
    value /= base;
  } while (value != 0);
  return at;
}

// A path whose parent is part of a private file system that init made.
const char* below_root(const Mount& mount) { return text(mount.target) + 1; }

long make_file(const Mount& mount) {
  const long file = call(__NR_openat, new_root, below_root(mount),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mount.mode);
  if (file < 0) return file;
  long result = 0;
  for (std::uint32_t at = 0; at < mount.source.size && result >= 0;) {
    result = call(__NR_write, file, text(mount.source) + at, mount.source.size - at);
    at += static_cast<std::uint32_t>(result);
  }
  close(file);
  return result;
}

long mount_tmpfs(const Mount& mount) {
  char size[24];
  char inodes[24];
  char mode[24];
  const long tree = make_file_system("tmpfs", digits(mount.size, 10, size),
                                     digits(orders::tmpfs_inodes(mount.size), 10, inodes),
                                     digits(mount.mode, 8, mode), mount.attributes);
  if (tree < 0) return tree;
  const long target = open_target(text(mount.target));
  return target < 0 ? target : attach(tree, target);
}

long mount_proc(const Mount& mount) {
  const long tree = make_file_system("proc", nullptr, nullptr, nullptr, mount.attributes);
  if (tree < 0) return tree;
  const long target = open_target(text(mount.target));
  if (target < 0) return target;
  // Out of sight, and not removed: the kernel mounts nothing that has no name.
  long moved = call(__NR_renameat2, new_root, cover_directory, target, cover_directory, 0);
  if (moved >= 0) moved = call(__NR_fchmodat, target, cover_directory, 0555);
  if (moved >= 0) moved = call(__NR_renameat2, new_root, cover_file, target, cover_file, 0);
  if (moved < 0) return moved;
  return attach(tree, target);
}

// Where init made every directory above the target there is no link to be led astray by.
long attach_at(long tree, const Mount& mount) {
  if (mount.access != 0) {
    if (const long allowed = allow_below(tree, mount.access); allowed < 0) return allowed;
  }
  if ((mount.flags & orders::in_private) != 0) {
    const long result =
        call(__NR_move_mount, tree, "", new_root, below_root(mount), MOVE_MOUNT_F_EMPTY_PATH);
    close(tree);
    return result;
  }
  const long target = open_target(text(mount.target));
  return target < 0 ? target : attach(tree, target);
}

long mount_bind(const Mount& mount) {
  const long tree = clone_path(text(mount.source));
  if (tree < 0) return tree;
  // The root of the clone is the very inode that was looked up.
  if (const long same = check_identity(tree, mount); same < 0) return same;
  if (const long set = set_attributes(tree, mount.attributes); set < 0) return set;
  return attach_at(tree, mount);
}

long mount_tree(const Mount& mount) { return attach_at(mount.fd, mount); }

long mount_pin(const Mount& mount) {
  const long target = open_target(text(mount.target));
  if (target < 0) return target;
  if (const long same = check_identity(target, mount); same < 0) return same;
  const long tree = clone_tree(target);
  if (tree < 0) return tree;
  if (const long set = set_attributes(tree, mount.attributes); set < 0) return set;
  return attach(tree, target);
}

// With a source, a file that was made before.
long cover_source(const Mount& mount) {
  if (mount.source.size > 0) return open_target(text(mount.source));
  return (mount.mode & S_IFMT) == S_IFDIR ? empty_directory : empty_file;
}

long mount_cover(const Mount& mount) {
  const long target = open_target(text(mount.target));
  if (target == not_found && (mount.flags & orders::optional) != 0) return 0;
  if (target < 0) return target;
  // Over a file of the kernel's, which has no identity that the supervisor could have seen.
  const bool is_kernels = (mount.flags & orders::optional) != 0;
  if (!is_kernels) {
    if (const long same = check_identity(target, mount); same < 0) return same;
  }
  const long source = cover_source(mount);
  if (source < 0) return source;
  const long tree = clone_tree(source);
  if (tree < 0) return tree;
  if (const long set = set_attributes(tree, mount.attributes); set < 0) return set;
  return attach(tree, target);
}

long add_attributes(const Mount& mount) {
  const long target = open_target(text(mount.target));
  if (target < 0) return target;
  const mount_attr attr{
      .attr_set = mount.attributes, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  const long result = call(__NR_mount_setattr, target, "", at_empty_path, &attr, sizeof(attr));
  close(target);
  return result;
}

long carry_out(const Mount& mount) {
  switch (mount.kind) {
    case MountKind::directory: return call(__NR_mkdirat, new_root, below_root(mount), mount.mode);
    case MountKind::file: return make_file(mount);
    case MountKind::symlink:
      return call(__NR_symlinkat, text(mount.source), new_root, below_root(mount));
    case MountKind::tmpfs: return mount_tmpfs(mount);
    case MountKind::proc: return mount_proc(mount);
    case MountKind::bind: return mount_bind(mount);
    case MountKind::tree: return mount_tree(mount);
    case MountKind::pin: return mount_pin(mount);
    case MountKind::cover: return mount_cover(mount);
    case MountKind::attributes: return add_attributes(mount);
  }
  return no_device;
}

// Everything is built in a mount that hangs over the host's /proc, as this mount namespace has it:
// a directory that every host has and below which nothing can be granted.
void mount_new_root() {
  begin(Step::new_root);
  char size[24];
  char inodes[24];
  const long tree = make_file_system("tmpfs", digits(header->root_bytes, 10, size),
                                     digits(header->root_inodes, 10, inodes), "755",
                                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  new_root = static_cast<int>(must(Step::new_root, tree));
  must(Step::new_root,
       call(__NR_move_mount, new_root, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH));
  must(Step::new_root, call(__NR_mkdirat, new_root, cover_directory, 0755));
  must(Step::new_root, call(__NR_mknodat, new_root, cover_file, S_IFREG | 0444, 0));
}

long open_cover(const char* name) {
  return must(Step::new_root, call(__NR_openat, new_root, name, O_PATH | O_CLOEXEC | O_NOFOLLOW));
}

void pivot() {
  begin(Step::pivot);
  must(Step::pivot, call(__NR_fchdir, new_root));
  must(Step::pivot, call(__NR_pivot_root, ".", "."));
  constexpr long detach = 2;
  must(Step::pivot, call(__NR_umount2, ".", detach));
  must(Step::pivot, call(__NR_chdir, "/"));
  const mount_attr read_only{
      .attr_set = MOUNT_ATTR_RDONLY, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  must(Step::pivot, call(__NR_mount_setattr, AT_FDCWD, "/", 0, &read_only, sizeof(read_only)));
}

void send_cover(std::uint32_t index, long cover) {
  const orders::Report report{.kind = orders::Report::Kind::cover, .index = index};
  must(Step::pivot, send_descriptor(orders::control_fd, {&report, sizeof(report)}, cover, 0));
}

}  // namespace

void build_mounts() {
  begin(Step::private_tree);
  // Private, not slave: a mount that the host makes later below a grant would appear in the sandbox
  // without nosuid, nodev and read-only. A clone of a private mount is private.
  constexpr long private_mount = 1L << 18;
  constexpr long recursive = 1L << 14;
  must(Step::private_tree,
       call(__NR_mount, nullptr, "/", nullptr, private_mount | recursive, nullptr));

  mount_new_root();
  empty_directory = static_cast<int>(open_cover(cover_directory));
  empty_file = static_cast<int>(open_cover(cover_file));

  make_landlock_ruleset();
  begin(Step::mounts);
  const Mount* mounts = items<Mount>(header->mounts);
  for (std::uint32_t i = 0; i < header->mounts.count; ++i) {
    must(Step::mounts, carry_out(mounts[i]), i);
  }
  pivot();
  if (header->sends_covers == 0) return;
  send_cover(0, empty_directory);
  send_cover(1, empty_file);
}

}  // namespace capgate::sandbox::init
