#include "lower/seatbelt_base.h"

namespace capgate::lower::seatbelt {
namespace {

constexpr std::string_view process_rules[] = {
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
};

// Not kern.proc.all, which lists every process, nor kern.bootargs.
constexpr std::string_view sysctl_rules[] = {
    R"((allow sysctl-read
  (sysctl-name "hw.activecpu") (sysctl-name "hw.byteorder") (sysctl-name "hw.cacheconfig")
  (sysctl-name "hw.cachelinesize_compat") (sysctl-name "hw.cpufamily") (sysctl-name "hw.cputype")
  (sysctl-name "hw.l1dcachesize_compat") (sysctl-name "hw.l1icachesize_compat")
  (sysctl-name "hw.l2cachesize_compat") (sysctl-name "hw.l3cachesize_compat")
  (sysctl-name "hw.logicalcpu") (sysctl-name "hw.logicalcpu_max") (sysctl-name "hw.machine")
  (sysctl-name "hw.memsize") (sysctl-name "hw.model") (sysctl-name "hw.ncpu")
  (sysctl-name "hw.nperflevels") (sysctl-name "hw.packages") (sysctl-name "hw.pagesize")
  (sysctl-name "hw.pagesize_compat") (sysctl-name "hw.physicalcpu")
  (sysctl-name "hw.physicalcpu_max") (sysctl-name "hw.tbfrequency_compat")
  (sysctl-name "hw.vectorunit")
  (sysctl-name-prefix "hw.busfrequency") (sysctl-name-prefix "hw.cpufrequency")
  (sysctl-name-prefix "hw.optional.arm") (sysctl-name-prefix "hw.perflevel")
  (sysctl-name "kern.argmax") (sysctl-name "kern.hostname") (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc") (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease") (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status") (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel") (sysctl-name "kern.sysv.semmns")
  (sysctl-name "kern.usrstack64") (sysctl-name "kern.version")
  (sysctl-name-prefix "kern.proc.pgrp.") (sysctl-name-prefix "kern.proc.pid.")
  (sysctl-name "machdep.cpu.brand_string") (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg")))",
    R"((allow sysctl-write (sysctl-name "kern.grade_cputype") (sysctl-name "kern.tcsm_enable")))",
};

// Not launchservicesd and lsd (they start programs outside), SecurityServer and securityd (keys),
// cfprefsd (preferences, past the file rules), pasteboard, tccd, mDNSResponder (names leave by it).
constexpr std::string_view service_rules[] = {
    R"((allow mach-lookup
  (global-name "com.apple.PowerManagement.control")
  (global-name "com.apple.system.opendirectoryd.libinfo")))",
    "(allow ipc-posix-sem)",
    R"((allow ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-unlink
  (ipc-posix-name-regex "^/__KMP_REGISTERED_LIB_[0-9]+$")))",
    R"((allow iokit-open (iokit-registry-entry-class "RootDomainUserClient")))",
};

constexpr std::string_view device_rules[] = {
    R"((allow file-read* file-test-existence file-write-data
  (require-all (literal "/dev/null") (vnode-type CHARACTER-DEVICE))))",
    R"((allow file-read* file-test-existence
  (literal "/dev/autofs_nowait") (literal "/dev/random") (literal "/dev/urandom")
  (literal "/dev/zero") (subpath "/dev/fd")))",
    R"((allow file-write-data (subpath "/dev/fd")))",
    R"((allow file-read* file-test-existence file-write-data file-ioctl
  (literal "/dev/dtracehelper")))",
};

constexpr std::string_view system_rules[] = {
    R"((allow file-read* file-test-existence
  (literal "/")
  (subpath "/Library/Apple") (subpath "/System/Library/Frameworks")
  (subpath "/System/Library/PrivateFrameworks") (subpath "/System/Library/SubFrameworks")
  (subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/Cryptexes")
  (subpath "/bin") (subpath "/usr/bin") (subpath "/usr/lib") (subpath "/usr/libexec")
  (subpath "/usr/share") (subpath "/private/var/db/dyld") (subpath "/private/var/db/timezone")
  (literal "/System/Library/CoreServices/SystemVersion.plist")
  (literal "/private/etc/hosts") (literal "/private/etc/localtime")
  (literal "/private/etc/passwd") (literal "/private/etc/protocols")
  (literal "/private/etc/resolv.conf") (literal "/private/etc/services")
  (literal "/private/var/select/sh") (subpath "/private/etc/ssl")))",
    R"((allow file-map-executable
  (subpath "/Library/Apple") (subpath "/System/Library/Frameworks")
  (subpath "/System/Library/PrivateFrameworks") (subpath "/System/Library/SubFrameworks")
  (subpath "/System/Volumes/Preboot/Cryptexes") (subpath "/System/Cryptexes")
  (subpath "/bin") (subpath "/usr/bin") (subpath "/usr/lib") (subpath "/usr/libexec")))",
    // The links at the root, and what lies on the way to the above: names, not contents.
    R"((allow file-read-metadata file-test-existence
  (literal "/Library") (literal "/System") (literal "/System/Library")
  (literal "/System/Library/CoreServices") (literal "/System/Volumes")
  (literal "/System/Volumes/Data") (literal "/System/Volumes/Data/private")
  (literal "/System/Volumes/Preboot") (literal "/dev") (literal "/etc") (literal "/private")
  (literal "/private/etc") (literal "/private/tmp") (literal "/private/var")
  (literal "/private/var/db") (literal "/private/var/select") (literal "/tmp") (literal "/usr")
  (literal "/var")))",
};

constexpr BaseRules all_rules[] = {
    {"processes: only those of the same sandbox", process_rules},
    {"system values, by name", sysctl_rules},
    {"system services, by name: none that opens, prints or holds keys", service_rules},
    {"devices without state", device_rules},
    {"the system's own programs, libraries and time zones", system_rules},
};

}  // namespace

std::span<const BaseRules> base_rules() { return all_rules; }

}  // namespace capgate::lower::seatbelt
