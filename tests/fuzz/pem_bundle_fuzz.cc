// Any bytes as a bundle of certificates: read_pem_bundle returns whole DER sequences, which read
// the same when they are written as PEM again; and no text behind a certificate hides it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/digest.h"
#include "seal/authority.h"

namespace {

using namespace capgate;

std::string pem_of(std::string_view der) {
  constexpr std::size_t line = 64;
  const std::string text = base64(der);
  std::string out = "-----BEGIN CERTIFICATE-----\n";
  for (std::size_t at = 0; at < text.size(); at += line) out += text.substr(at, line) + "\n";
  return out + "-----END CERTIFICATE-----\n";
}

// The tag of a sequence, then a definite length that ends where the bytes end.
bool is_whole_sequence(std::string_view der) {
  const auto byte = [&](std::size_t at) -> std::size_t {
    return static_cast<unsigned char>(der[at]);
  };
  if (der.size() < 2 || byte(0) != 0x30) return false;
  if (byte(1) < 0x80) return der.size() == 2 + byte(1);
  const std::size_t digits = byte(1) - 0x80;
  if (digits == 0 || der.size() < 2 + digits) return false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (length >= SIZE_MAX >> 8U) return false;
    length = length * 256 + byte(2 + i);
  }
  return der.size() - 2 - digits == length;
}

void check_java_store(std::span<const std::string> certificates) {
  const auto store = seal::write_jks(certificates);
  CAPGATE_ASSERT(store.has_value());
  std::size_t at = 0;
  for (const std::string& certificate : certificates) {
    at = store->find(certificate, at);
    CAPGATE_ASSERT(at != std::string::npos);
    at += certificate.size();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> certificates = seal::read_pem_bundle(text);
  std::string again;
  for (const std::string& certificate : certificates) {
    CAPGATE_ASSERT(is_whole_sequence(certificate));
    again += pem_of(certificate);
  }
  CAPGATE_ASSERT(seal::read_pem_bundle(again) == certificates);
  check_java_store(certificates);

  static const std::string first("\x30\x03\x02\x01\x07", 5);
  std::vector<std::string> behind_first = certificates;
  behind_first.insert(behind_first.begin(), first);
  CAPGATE_ASSERT(seal::read_pem_bundle(pem_of(first) + std::string(text)) == behind_first);
  return 0;
}
