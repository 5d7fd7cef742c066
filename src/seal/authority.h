// The certificate authority of one sandbox: it vouches for the endpoints that carry a sealed secret
// and for nothing else, and it ends with the sandbox. Its key is never on disk.
//
//   Authority authority = TRY(make_authority(names));                  // once per sandbox
//   authority.anchor_pem()                                             // what is trusted inside
//   Authority again = TRY(read_authority(key_der, certificate_der));   // in each broker
//   Leaf leaf = TRY(again.issue("api.github.com"));
//
// Three certificates: programs inside trust the anchor, whose key signed the authority's
// certificate and was forgotten at once; the authority signs the leaves, and its certificate is
// sent to the client after each of them. The anchor is there because Java does not look at the
// constraints of what it trusts, only at those of certificates in between.
//
// ECDSA P-256. Anchor and authority permit exactly the DNS names given and exclude every other DNS
// name, every IP address, mail address and URI, critical (certificate.h). Leaves: one key for all
// of them, valid from an hour ago for a week, SAN alone; kept for at most `most_leaves` names.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "secrets/secret.h"

// As OpenSSL calls them. NOLINTNEXTLINE(readability-identifier-naming)
using EVP_PKEY = struct evp_pkey_st;
using X509 = struct x509_st;

namespace capgate::seal {

inline constexpr std::size_t most_leaves = 64;

struct Free {
  void operator()(EVP_PKEY* key) const;
  void operator()(X509* certificate) const;
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;
using CertificatePtr = std::unique_ptr<X509, Free>;

// Owned by the authority until its next issue(); OpenSSL counts references of whoever uses it.
struct Leaf {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
};

class Authority {
 public:
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority();

  [[nodiscard]] std::expected<secrets::Secret, std::string> key_der() const;
  [[nodiscard]] std::string certificate_der() const;
  // Sent after each leaf: no client can know it otherwise.
  [[nodiscard]] X509* certificate() const;
  // Empty where the authority was read: the broker does not need it.
  [[nodiscard]] std::string anchor_der() const;
  [[nodiscard]] std::string anchor_pem() const;
  // The error: not one of its names, or OpenSSL's.
  [[nodiscard]] std::expected<Leaf, std::string> issue(std::string_view name);

 private:
  friend std::expected<Authority, std::string> make_authority(std::span<const std::string> names);
  friend std::expected<Authority, std::string> read_authority(std::string_view key_der,
                                                              std::string_view certificate_der);
  struct Parts;
  explicit Authority(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

[[nodiscard]] std::expected<Authority, std::string> make_authority(
    std::span<const std::string> names);
[[nodiscard]] std::expected<Authority, std::string> read_authority(
    std::string_view key_der, std::string_view certificate_der);

// A Java key store (JKS, which every JDK reads) with these certificates (DER) as trusted entries,
// under the password that every JDK uses for its own: "changeit".
[[nodiscard]] std::expected<std::string, std::string> write_jks(
    std::span<const std::string> certificates);

// The certificates of a PEM bundle, as DER; text between them is skipped, and so is what is no
// sequence of ASN.1, as every certificate is.
[[nodiscard]] std::vector<std::string> read_pem_bundle(std::string_view pem);

}  // namespace capgate::seal
