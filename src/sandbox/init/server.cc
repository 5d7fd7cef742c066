// From a fork of init to the server: each step takes something away, and none gives it back.
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/socket.h>
#include <linux/stat.h>

#include "sandbox/init/init.h"

namespace capgate::sandbox::init {
namespace {

constexpr long stale = -116;
constexpr long not_permitted = -1;
constexpr long invalid = -22;
constexpr long at_empty_path = 0x1000;
constexpr int last_capability = 63;

// The program inside must be the one that the supervisor looked at, whatever links lead to it.
void open_program() {
  begin(Step::program);
  const long fd =
      must(Step::program, call(__NR_openat, AT_FDCWD, text(header->program), O_PATH | O_CLOEXEC));
  struct statx info{};
  must(Step::program, call(__NR_statx, fd, "", at_empty_path, STATX_INO, &info));
  const std::uint64_t device =
      (std::uint64_t{info.stx_dev_major} << 32U) | std::uint64_t{info.stx_dev_minor};
  if (device != header->program_device || info.stx_ino != header->program_inode) {
    fail(Step::program, -stale);
  }
  call(__NR_close, fd);
}

void set_limits() {
  begin(Step::limits);
  const auto* limits = items<orders::Limit>(header->limits);
  for (std::uint32_t i = 0; i < header->limits.count; ++i) {
    const std::uint64_t both[2] = {limits[i].value, limits[i].value};
    must(Step::limits, call(__NR_prlimit64, 0, limits[i].resource, both, nullptr), i);
  }
}

void drop_bounding_set() {
  begin(Step::bounding_set);
  for (int capability = 0; capability <= last_capability; ++capability) {
    const long result = call(__NR_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result == invalid) break;  // beyond the last one that this kernel has
    must(Step::bounding_set, result);
  }
}

void set_ids() {
  begin(Step::ids);
  if (header->drop_groups != 0) must(Step::ids, call(__NR_setgroups, 0, nullptr));
  const long gid = header->gid;
  const long uid = header->uid;
  must(Step::ids, call(__NR_setresgid, gid, gid, gid));
  must(Step::ids, call(__NR_setresuid, uid, uid, uid));
}

void drop_capabilities() {
  begin(Step::capabilities);
  must(Step::capabilities, call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2] = {};
  must(Step::capabilities, call(__NR_capset, &head, none));
}

// Own constants: Debian's header is older than most of this.
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
};

void apply_landlock() {
  begin(Step::landlock);
  // Paths are real ones. A link on the way was put there meanwhile, in a granted directory, and
  // would lead the rule to something else.
  const open_how how{.flags = O_PATH | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  const auto* rules = items<orders::LandlockRule>(header->landlock_rules);
  for (std::uint32_t i = 0; i < header->landlock_rules.count; ++i) {
    const long fd =
        must(Step::landlock, call(__NR_openat2, AT_FDCWD, text(rules[i].path), &how, sizeof(how)),
             rules[i].index);
    must(Step::landlock, allow_below(fd, rules[i].access), rules[i].index);
    call(__NR_close, fd);
  }
  must(Step::landlock, call(__NR_landlock_restrict_self, landlock_ruleset, 0));
  call(__NR_close, landlock_ruleset);
}

// Nothing but 0, 1 and 2 is left to the server. Until the exec the control socket can still tell of
// a failure.
void close_descriptors() {
  begin(Step::descriptors);
  constexpr long close_on_exec = 4;
  constexpr long last = ~0U;
  must(Step::descriptors, call(__NR_close_range, 3, last, close_on_exec));
}

// When init fails instead, this process dies with it.
void wait_for_init() {
  constexpr long futex_wait = 0;
  while (*init_is_ready == 0) {
    call(__NR_futex, reinterpret_cast<long>(init_is_ready), futex_wait, 0, nullptr, nullptr, 0);
  }
}

// The kernel's own answer, whatever the steps above believe.
void read_back() {
  begin(Step::read_back);
  std::uint32_t ids[3] = {};
  must(Step::read_back, call(__NR_getresuid, &ids[0], &ids[1], &ids[2]));
  for (const std::uint32_t id : ids) {
    if (id != header->uid) fail(Step::read_back, -not_permitted);
  }
  must(Step::read_back, call(__NR_getresgid, &ids[0], &ids[1], &ids[2]));
  for (const std::uint32_t id : ids) {
    if (id != header->gid) fail(Step::read_back, -not_permitted);
  }
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct held[2] = {};
  must(Step::read_back, call(__NR_capget, &head, held));
  for (const auto& half : held) {
    if ((half.effective | half.permitted | half.inheritable) != 0) {
      fail(Step::read_back, -not_permitted);
    }
  }
  if (call(__NR_prctl, PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0 ||
      call(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
    fail(Step::read_back, -not_permitted);
  }
}

void send_listener(long listener) {
  const orders::Report report{.kind = orders::Report::Kind::listener};
  must(Step::seccomp, send_descriptor(orders::control_fd, {&report, sizeof(report)}, listener, 0));
  call(__NR_close, listener);
}

void install_filter() {
  begin(Step::seccomp);
  const sock_fprog program{.len = static_cast<unsigned short>(header->filter.count),
                           .filter = const_cast<sock_filter*>(items<sock_filter>(header->filter))};
  const unsigned long flags = header->listen != 0 ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0UL;
  const long result =
      must(Step::seccomp, call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
  if (header->listen != 0) send_listener(result);
}

// The lists as execve wants them: pointers with a null at the end. They lie on the stack, whose
// limit bounds them as it would bound the server's.
[[noreturn]] void run_program() {
  const auto* arguments = items<Text>(header->arguments);
  const auto* environment = items<Text>(header->environment);
  const std::uint32_t argument_count = header->arguments.count;
  const std::uint32_t variable_count = header->environment.count;
  const char** pointers = static_cast<const char**>(
      __builtin_alloca((argument_count + variable_count + 2) * sizeof(char*)));
  const char** variables = pointers + argument_count + 1;
  for (std::uint32_t i = 0; i < argument_count; ++i) pointers[i] = text(arguments[i]);
  pointers[argument_count] = nullptr;
  for (std::uint32_t i = 0; i < variable_count; ++i) variables[i] = text(environment[i]);
  variables[variable_count] = nullptr;

  begin(Step::exec);
  // The filter is in force: only this call carries the token.
  const long error = call(__NR_execve, text(header->program), pointers, variables, header->token[0],
                          header->token[1], header->token[2]);
  fail(Step::exec, -error);
}

}  // namespace

int landlock_ruleset = -1;

void make_landlock_ruleset() {
  const std::uint64_t attribute[3] = {header->landlock_handled, 0, header->landlock_scoped};
  landlock_ruleset =
      static_cast<int>(must(Step::landlock, call(__NR_landlock_create_ruleset, attribute,
                                                 header->landlock_attribute_size, 0)));
}

long allow_below(long fd, std::uint64_t access) {
  const PathBeneath rule{.allowed_access = access, .parent_fd = static_cast<std::int32_t>(fd)};
  constexpr long path_beneath = 1;
  return call(__NR_landlock_add_rule, landlock_ruleset, path_beneath, &rule, 0);
}

void become_server() {
  open_program();
  set_limits();
  drop_bounding_set();
  set_ids();
  drop_capabilities();

  begin(Step::no_new_privs);
  must(Step::no_new_privs, call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));

  apply_landlock();
  close_descriptors();

  begin(Step::directory);
  must(Step::directory, call(__NR_chdir, text(header->directory)));

  read_back();
  wait_for_init();
  install_filter();
  run_program();
}

}  // namespace capgate::sandbox::init
