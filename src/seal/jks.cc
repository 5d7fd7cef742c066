// The format of Sun's first key store, for trusted certificates alone. Numbers are big-endian:
//
//   magic, version, count; for each entry: tag 2, alias, time in ms, "X.509", size, certificate;
//   then SHA-1 of the password in UTF-16, a fixed phrase, and everything before.
//
// The digest protects nothing, as the password is known to everyone; the JDK checks it all the
// same where a program gives the password.
#include <openssl/evp.h>

#include "base/format.h"
#include "seal/authority.h"
#include "seal/certificate.h"

namespace capgate::seal {
namespace {

constexpr std::uint32_t magic = 0xfeedfeed;
constexpr std::uint32_t version = 2;
constexpr std::uint32_t trusted_certificate = 2;
constexpr std::string_view password = "changeit";
constexpr std::string_view phrase = "Mighty Aphrodite";

void put(std::string& out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = bytes; i > 0; --i) {
    out += static_cast<char>((value >> (8 * (i - 1))) & 0xffU);
  }
}

void put_text(std::string& out, std::string_view text) {
  put(out, text.size(), 2);
  out += text;
}

}  // namespace

std::expected<std::string, std::string> write_jks(std::span<const std::string> certificates) {
  std::string out;
  put(out, magic, 4);
  put(out, version, 4);
  put(out, certificates.size(), 4);
  for (std::size_t i = 0; i < certificates.size(); ++i) {
    put(out, trusted_certificate, 4);
    put_text(out, format("capgate-{}", i));
    put(out, 0, 8);  // no date: the same certificates are the same bytes
    put_text(out, "X.509");
    put(out, certificates[i].size(), 4);
    out += certificates[i];
  }
  std::string digested;
  for (const char c : password) put(digested, static_cast<unsigned char>(c), 2);
  digested += phrase;
  digested += out;
  unsigned char digest[EVP_MAX_MD_SIZE];
  std::size_t size = 0;
  if (EVP_Q_digest(nullptr, "SHA1", nullptr, digested.data(), digested.size(), digest, &size) !=
      1) {
    return openssl_error("cannot write a Java key store");
  }
  out.append(reinterpret_cast<const char*>(digest), size);
  return out;
}

}  // namespace capgate::seal
