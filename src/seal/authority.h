// The certificate authority of one sandbox: it vouches for the endpoints that carry a sealed secret
// and for nothing else, and it ends with the sandbox. Its key is never on disk.
//
//   const Authority authority = TRY(make_authority({"api.github.com"}));      // once per sandbox
//   const Authority again = TRY(read_authority(key_der, certificate_der));    // in each broker
//   Leaf leaf = TRY(again.issue("api.github.com"));
//
// ECDSA P-256. The certificate permits exactly the DNS names given and excludes every IP address,
// mail address and URI, critical, path length 0. Leaves: one key for all of them, valid from an
// hour ago for at most a week, SAN alone; kept for at most `most_leaves` names.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "secrets/secret.h"

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

struct Leaf {
  X509* certificate = nullptr;  // owned by the authority
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
  [[nodiscard]] std::string certificate_pem() const;
  [[nodiscard]] X509* certificate() const;
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
[[nodiscard]] std::string write_jks(std::span<const std::string> certificates);

// The certificates of a PEM bundle, as DER; text between them is skipped.
[[nodiscard]] std::vector<std::string> read_pem_bundle(std::string_view pem);

}  // namespace capgate::seal
