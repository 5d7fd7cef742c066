// Keys and certificates of an authority (authority.h), made with OpenSSL.
//
// What a CA of ours may vouch for, written so that the libraries that check it really hold it:
//
//   permitted  DNS host            each name. This alone would permit what is below it, too:
//   excluded   DNS .host           so that is excluded. OpenSSL, GnuTLS, Go and Java accept the
//                                  host itself then, and nothing below it. Left out for a host
//                                  that has another of the names below it, as exclusions win
//   excluded   IP 0.0.0.0/0, ::/0  honoured by all of them
//   permitted  mail and URI        of a host that cannot exist: whatever is permitted excludes all
//              capgate.invalid     others. An excluded empty name would say it directly, but
//                                  OpenSSL takes it for "none" and Java refuses the certificate
//
// Known gap: GnuTLS does not look at permitted URIs. No TLS client takes a URI for a host.
#pragma once

#include <ctime>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "seal/authority.h"

namespace capgate::seal {

enum class Role : unsigned char { anchor, authority, leaf };

struct CertificateDetails {
  Role role = Role::leaf;
  std::string subject;                 // a common name; a leaf has none
  std::span<const std::string> names;  // that it may vouch for, or its own
  std::time_t begins = 0;
  std::time_t ends = 0;
  EVP_PKEY* key = nullptr;
  X509* issuer = nullptr;  // none: it signs itself
  EVP_PKEY* issuer_key = nullptr;
};

[[nodiscard]] std::expected<KeyPtr, std::string> make_key();
[[nodiscard]] std::expected<CertificatePtr, std::string> make_certificate(
    const CertificateDetails& details);

// The names that a CA of ours permits; empty if it is none.
[[nodiscard]] std::vector<std::string> permitted_names(X509* certificate);

[[nodiscard]] std::string to_der(X509* certificate);
[[nodiscard]] std::string to_pem(X509* certificate);

// "what: OpenSSL's reason", and OpenSSL's queue of errors is empty.
[[nodiscard]] std::unexpected<std::string> openssl_error(std::string_view what);

}  // namespace capgate::seal
