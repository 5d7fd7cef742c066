// capgate-broker-tls: the broker of a sandbox with sealed secrets. Started by capgate, not by
// people.
//
//   capgate-broker-tls --authority HOST...   once per sandbox, before it (seal/authority_mode.h)
//   capgate-broker-tls                       like capgate-broker, with secrets in descriptor 6
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "base/format.h"
#include "broker/run.h"
#include "egress/wire.h"
#include "seal/authority_mode.h"
#include "seal/terminator.h"
#include "secrets/handover.h"

namespace capgate::broker {
namespace {

namespace wire = egress::wire;

struct Handover {
  std::vector<secrets::Handed> values;
  secrets::Handed key;
  secrets::Handed certificate;
};

// Out of the pipe, which is empty and closed then.
std::expected<Handover, std::string> take_handover() {
  const sys::Fd pipe(wire::secrets_fd);
  auto list = secrets::read_handover(pipe);
  if (!list) return std::unexpected(std::move(list).error());
  Handover out;
  for (secrets::Handed& one : *list) {
    if (one.name == secrets::authority_key) {
      out.key = std::move(one);
    } else if (one.name == secrets::authority_certificate) {
      out.certificate = std::move(one);
    } else {
      out.values.push_back(std::move(one));
    }
  }
  return out;
}

sys::Fd renewal_channel() {
  if (::fcntl(wire::renewal_fd, F_GETFD) < 0) return {};
  (void)::fcntl(wire::renewal_fd, F_SETFL, O_NONBLOCK);
  return sys::Fd(wire::renewal_fd);
}

std::expected<Extras, std::string> set_up(egress::Broker& broker) {
  auto handover = take_handover();
  if (!handover) return std::unexpected(format("the secrets: {}", handover.error()));
  auto authority =
      seal::read_authority(handover->key.value.view(), handover->certificate.value.view());
  if (!authority) return std::unexpected(format("the authority: {}", authority.error()));
  const egress::Policy& policy = broker.policy();
  const seal::Roots roots{.file = policy.roots_file, .directory = policy.roots_directory};
  // The broker need not be the user who started capgate.
  if (!roots.file.empty() && ::access(roots.file.c_str(), R_OK) != 0) {
    return std::unexpected(format("SSL_CERT_FILE, {}, cannot be read by user {}: {}", roots.file,
                                  ::getuid(), std::strerror(errno)));
  }
  auto terminator = std::make_shared<seal::SealTerminator>(
      seal::SealTerminator::Parts{broker.loop(), policy, broker.journal()}, *std::move(authority),
      roots, seal::Values(broker.loop(), std::move(handover->values), renewal_channel()));
  broker.use(*terminator);
  Extras out;
  out.begin = [raw = terminator.get()] { raw->begin(); };
  out.kept = std::move(terminator);
  out.needs = {.readable = places_of(roots), .locked_memory = true};
  return out;
}

}  // namespace
}  // namespace capgate::broker

int main(int count, char** arguments) {
  using namespace capgate;
  // Of the host's configuration nothing is wanted, least of all engines.
  if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) != 1) return 1;
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return 1;
  const std::span all(arguments, static_cast<std::size_t>(count));
  if (count > 1 && std::string_view(all[1]) == "--authority") {
    return seal::run_authority(all.subspan(2));
  }
  return broker::main_of_broker(count, arguments, broker::set_up);
}
