#include "seal/authority_mode.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "seal/authority.h"
#include "secrets/handover.h"
#include "sys/file.h"

namespace capgate::seal {
namespace {

using Done = std::expected<void, std::string>;

// Nobody may look at the key, not even after a crash.
Done hide_memory() {
  const rlimit none{};
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return std::unexpected(format("cannot hide its memory: {}", std::strerror(errno)));
  }
  return {};
}

std::expected<std::string, std::string> read_host_bundle() {
  auto text = sys::read_file("-", most_bundle_bytes);
  if (!text) {
    return std::unexpected(
        format("cannot read the host's certificates: {}", std::strerror(text.error().err)));
  }
  if (text->size() > most_bundle_bytes) {
    return std::unexpected(
        format("the host's certificates have more than {} bytes", most_bundle_bytes));
  }
  return *std::move(text);
}

Done write_file(int fd, std::string_view contents) {
  if (auto written = sys::write_all(fd, contents); !written) {
    return std::unexpected(
        format("cannot write the certificates: {}", std::strerror(written.error().err)));
  }
  return {};
}

// From pipe to pipe in the kernel: no second copy of the key is made.
Done pass_on(const sys::Fd& reader) {
  for (;;) {
    const ssize_t moved =
        ::splice(reader.get(), nullptr, handover_fd, nullptr, secrets::most_handed_bytes, 0);
    if (moved == 0) return {};
    if (moved < 0 && errno != EINTR) {
      return std::unexpected(format("cannot hand over the key: {}", std::strerror(errno)));
    }
  }
}

Done hand_over(const Authority& authority) {
  auto certificate = secrets::Secret::make(authority.certificate_der());
  if (!certificate) {
    return std::unexpected(format("cannot lock memory: {}", std::strerror(errno)));
  }
  std::vector<secrets::Handed> list;
  list.push_back({.name = std::string(secrets::authority_key), .value = TRY(authority.key_der())});
  list.push_back(
      {.name = std::string(secrets::authority_certificate), .value = *std::move(certificate)});
  return pass_on(TRY(secrets::write_handover(list)));
}

Done make_all(const std::vector<std::string>& names) {
  TRY(hide_memory());
  std::string bundle = TRY(read_host_bundle());
  const Authority authority = TRY(make_authority(names));
  std::vector<std::string> certificates = read_pem_bundle(bundle);
  certificates.push_back(authority.anchor_der());
  if (!bundle.empty() && !bundle.ends_with('\n')) bundle += '\n';
  bundle += authority.anchor_pem();
  const std::string key_store = TRY(write_jks(certificates));
  TRY(write_file(merged_bundle_fd, bundle));
  TRY(write_file(key_store_fd, key_store));
  return hand_over(authority);
}

}  // namespace

int run_authority(std::span<char*> names) {
  const auto done = make_all({names.begin(), names.end()});
  if (done) return 0;
  const auto told = sys::write_all(STDERR_FILENO, format("capgate-broker-tls: {}\n", done.error()));
  return told ? 1 : 2;
}

}  // namespace capgate::seal
