#include "sandbox/egress_place.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "core/host.h"
#include "sandbox/launch.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr int backlog = 4096;  // the kernel takes as many of them as it allows
constexpr std::string_view forwarder_name = "capgate-init";

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}
std::unexpected<Refusal> refuse_errno(std::string_view what, const std::string& path,
                                      std::string help) {
  return refuse(format("{} {}: {}", what, escape_for_terminal(path), std::strerror(errno)),
                std::move(help));
}

// ---- the directory ------------------------------------------------------------------------------

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Whoever may use the socket must get through the directory, and needs nothing else of it.
mode_t directory_mode(mode_t socket_mode) { return (socket_mode & 077) == 0 ? 0700 : 0711; }

// Whoever could write the directory could put a socket of their own in the place of ours.
std::expected<void, Refusal> check_directory(const MadeFiles& files, bool runs_programs) {
  struct stat info{};
  struct statvfs system{};
  if (::fstat(files.directory.get(), &info) != 0 ||
      ::fstatvfs(files.directory.get(), &system) != 0) {
    return refuse_errno("cannot look at", files.path, "name another directory");
  }
  const std::string shown = escape_for_terminal(files.path);
  const bool is_ours = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (!is_ours || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(
        format("others than you can write {}", shown),
        format("chmod go-w {}, or name a directory of yours that does not exist yet", shown));
  }
  if (runs_programs && (system.f_flag & ST_NOEXEC) != 0) {
    return refuse(format("no program can be run from {}: its file system is mounted noexec", shown),
                  "name a directory elsewhere, or leave the forwarder out with --no-forwarder");
  }
  if (::syscall(SYS_flock, files.directory.get(), LOCK_EX | LOCK_NB) != 0) {
    return refuse(format("another capgate egress listens in {}", shown),
                  "end it, or give this one a directory of its own");
  }
  return {};
}

std::expected<void, Refusal> open_directory(MadeFiles& files, const Where& where) {
  files.path = directory_of(where.path);
  const mode_t mode = directory_mode(where.mode);
  if (::mkdir(files.path.c_str(), mode) == 0) {
    files.is_made = true;
  } else if (errno != EEXIST) {
    return refuse_errno("cannot make", files.path, "make the directory that holds it first");
  }
  files.directory =
      sys::Fd(::open(files.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  // By its descriptor: the umask may have taken something away.
  if (files.directory.get() < 0 || (files.is_made && ::fchmod(files.directory.get(), mode) != 0)) {
    return refuse_errno("cannot open", files.path, "name a directory, not a link to one");
  }
  return check_directory(files, where.with_forwarder);
}

// ---- the socket ---------------------------------------------------------------------------------

// By way of the descriptor, so that a long path fits and the directory stays the one that was
// looked at.
std::expected<sockaddr_un, Refusal> address_of(const MadeFiles& files, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = format("/proc/self/fd/{}/{}", files.directory.get(), name);
  if (path.size() >= sizeof(address.sun_path)) {
    return refuse(format("{} is too long for the name of a socket", quoted(name)),
                  "name it egress.sock");
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// One that nobody listens at is what a killed service left.
std::expected<void, Refusal> remove_stale(const MadeFiles& files, const std::string& name,
                                          const sockaddr_un& address) {
  struct stat info{};
  if (::fstatat(files.directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  const std::string shown = escape_for_terminal(format("{}/{}", files.path, name));
  if (!S_ISSOCK(info.st_mode) || info.st_uid != ::geteuid()) {
    return refuse(format("{} is there already, and is no socket of yours", shown),
                  "remove it, or name another path");
  }
  const sys::Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (connected == 0 || errno != ECONNREFUSED) {
    return refuse(format("another program listens at {}", shown), "end it, or name another path");
  }
  if (::unlinkat(files.directory.get(), name.c_str(), 0) == 0) return {};
  return refuse_errno("cannot remove", shown, "remove it yourself");
}

std::expected<sys::Fd, Refusal> listen_unix(MadeFiles& files, const Where& where) {
  const std::size_t slash = where.path.rfind('/');
  const std::string name = slash == std::string::npos ? where.path : where.path.substr(slash + 1);
  const sockaddr_un address = TRY(address_of(files, name));
  if (auto removed = remove_stale(files, name, address); !removed) {
    return std::unexpected(std::move(removed).error());
  }
  sys::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Nobody connects before listen(), so there is no moment with another mode.
  if (fd.get() < 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return refuse_errno("cannot listen at", where.path, "name a path in a directory of yours");
  }
  files.socket = name;
  if (::fchmodat(files.directory.get(), name.c_str(), where.mode, 0) != 0 ||
      ::listen(fd.get(), backlog) != 0) {
    return refuse_errno("cannot listen at", where.path, "name a path in a directory of yours");
  }
  return fd;
}

// Another name first: sandboxes that still run the old one keep it.
std::expected<void, Refusal> place_forwarder(MadeFiles& files) {
  const std::string name(forwarder_name);
  const std::string fresh = format(".{}.new", forwarder_name);
  const int directory = files.directory.get();
  (void)::unlinkat(directory, fresh.c_str(), 0);
  {
    const sys::Fd file(::openat(directory, fresh.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500));
    if (file.get() < 0 || !sys::write_all(file.get(), init_program()) ||
        ::fchmod(file.get(), 0555) != 0) {
      (void)::unlinkat(directory, fresh.c_str(), 0);
      return refuse_errno("cannot write the forwarder in", files.path,
                          "make room there, or leave it out with --no-forwarder");
    }
  }
  if (::renameat(directory, fresh.c_str(), directory, name.c_str()) != 0) {
    (void)::unlinkat(directory, fresh.c_str(), 0);
    return refuse_errno("cannot write the forwarder in", files.path, "remove what is there");
  }
  files.forwarder = name;
  return {};
}

std::expected<EgressPlace, Refusal> open_unix(const Where& where) {
  EgressPlace out{.name = format("unix:{}", where.path)};
  if (auto opened = open_directory(out.files, where); !opened) {
    return std::unexpected(std::move(opened).error());
  }
  // Before the socket: whoever sees the socket finds the forwarder.
  if (where.with_forwarder) {
    if (auto placed = place_forwarder(out.files); !placed) {
      return std::unexpected(std::move(placed).error());
    }
    out.forwarder = format("{}/{}", out.files.path, out.files.forwarder);
  }
  out.listener = TRY(listen_unix(out.files, where));
  return out;
}

// ---- the port -----------------------------------------------------------------------------------

std::expected<EgressPlace, Refusal> open_tcp(const Where& where) {
  sockaddr_in ipv4{.sin_family = AF_INET, .sin_port = htons(where.port)};
  sockaddr_in6 ipv6{.sin6_family = AF_INET6, .sin6_port = htons(where.port)};
  const bool is_ipv6 = where.address.contains(':');
  auto* address = is_ipv6 ? reinterpret_cast<sockaddr*>(&ipv6) : reinterpret_cast<sockaddr*>(&ipv4);
  socklen_t size = is_ipv6 ? sizeof(ipv6) : sizeof(ipv4);
  void* const bytes = is_ipv6 ? static_cast<void*>(&ipv6.sin6_addr) : &ipv4.sin_addr;
  const std::string shown = is_ipv6 ? format("[{}]", where.address) : where.address;
  sys::Fd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (::inet_pton(address->sa_family, where.address.c_str(), bytes) != 1 || fd.get() < 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), backlog) != 0 ||
      ::getsockname(fd.get(), address, &size) != 0) {
    return refuse_errno("cannot listen at", format("{}:{}", shown, where.port),
                        "name another port, or 0 for one that is free");
  }
  const std::uint16_t port = ntohs(is_ipv6 ? ipv6.sin6_port : ipv4.sin_port);
  EgressPlace out{.name = format("tcp:{}:{}", shown, port)};
  out.listener = std::move(fd);
  return out;
}

std::expected<Where, Refusal> parse_tcp(std::string_view text, Reach reach) {
  const auto wrong = [&](std::string help) {
    return refuse(format("capgate egress does not listen at {}", quoted(text)), std::move(help));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("write tcp:127.0.0.1:PORT");
  const auto port = parse_decimal(text.substr(colon + 1));
  if (!port || *port > std::numeric_limits<std::uint16_t>::max()) {
    return wrong("write a port from 0 to 65535; 0 is one that is free");
  }
  const auto host = core::parse_host(text.substr(0, colon));
  using enum core::HostPattern::Kind;
  const bool is_address = host && (host->kind == ipv4 || host->kind == ipv6);
  const bool is_loopback = host && ((host->kind == ipv4 && host->address[0] == 127) ||
                                    (host->kind == ipv6 && core::is_localhost_address(*host)));
  if (!is_address || (!is_loopback && reach == Reach::loopback)) {
    return wrong(
        "only the loopback of this host: write tcp:127.0.0.1:PORT or tcp:[::1]:PORT; or "
        "add --expose to an address that other machines may reach");
  }
  return Where{
      .kind = Where::Kind::tcp, .address = host->text, .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace

std::expected<Where, Refusal> parse_where(std::string_view text, Reach reach) {
  if (text.starts_with("tcp:")) return parse_tcp(text.substr(4), reach);
  constexpr std::string_view prefix = "unix:";
  const std::string_view path = text.substr(std::min(text.size(), prefix.size()));
  if (!text.starts_with(prefix) || path.empty() || path.ends_with('/') || path.contains('\0')) {
    return refuse(format("--listen cannot be {}", quoted(text)),
                  "write unix:DIRECTORY/egress.sock or tcp:127.0.0.1:PORT");
  }
  return Where{.path = std::string(path)};
}

MadeFiles::~MadeFiles() {
  if (!socket.empty()) (void)::unlinkat(directory.get(), socket.c_str(), 0);
  if (!forwarder.empty()) (void)::unlinkat(directory.get(), forwarder.c_str(), 0);
  if (is_made && !path.empty()) (void)::rmdir(path.c_str());
}

std::expected<EgressPlace, Refusal> open_place(const Where& where) {
  return where.kind == Where::Kind::tcp ? open_tcp(where) : open_unix(where);
}

}  // namespace capgate::sandbox
