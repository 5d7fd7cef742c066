#include "seal/certificate.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <climits>

#include "base/format.h"

namespace capgate::seal {
namespace {

template <auto free_it>
struct With {
  template <typename T>
  void operator()(T* pointer) const {
    free_it(pointer);
  }
};
using ConstraintsPtr = std::unique_ptr<NAME_CONSTRAINTS, With<NAME_CONSTRAINTS_free>>;
using SubtreePtr = std::unique_ptr<GENERAL_SUBTREE, With<GENERAL_SUBTREE_free>>;
using NamePtr = std::unique_ptr<GENERAL_NAME, With<GENERAL_NAME_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, With<GENERAL_NAMES_free>>;
using StringPtr = std::unique_ptr<ASN1_STRING, With<ASN1_STRING_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, With<X509_EXTENSION_free>>;
using BioPtr = std::unique_ptr<BIO, With<BIO_free>>;

constexpr std::string_view nobodys_host = "capgate.invalid";
constexpr std::string_view nobodys_mail = "nobody@capgate.invalid";

StringPtr make_string(int type, std::string_view value) {
  StringPtr out(ASN1_STRING_type_new(type));
  if (!out || value.size() > INT_MAX ||
      ASN1_STRING_set(out.get(), value.data(), static_cast<int>(value.size())) != 1) {
    return nullptr;
  }
  return out;
}

// Its value moves into `name`.
bool set_name(GENERAL_NAME* name, int type, std::string_view value) {
  StringPtr text = make_string(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING, value);
  if (!text) return false;
  GENERAL_NAME_set0_value(name, type, text.release());
  return true;
}

bool add_subtree(STACK_OF(GENERAL_SUBTREE) * &list, int type, std::string_view value) {
  if (list == nullptr) list = sk_GENERAL_SUBTREE_new_null();
  SubtreePtr subtree(GENERAL_SUBTREE_new());
  if (list == nullptr || !subtree || !set_name(subtree->base, type, value)) return false;
  if (sk_GENERAL_SUBTREE_push(list, subtree.get()) <= 0) return false;
  [[maybe_unused]] const auto* of_the_list = subtree.release();
  return true;
}

// The reasons are in the header.
bool add_constraints(X509* certificate, std::span<const std::string> names) {
  const ConstraintsPtr constraints(NAME_CONSTRAINTS_new());
  if (!constraints) return false;
  auto*& permitted = constraints->permittedSubtrees;
  auto*& excluded = constraints->excludedSubtrees;
  for (const std::string& name : names) {
    if (!add_subtree(permitted, GEN_DNS, name)) return false;
    const std::string below = "." + name;
    const bool has_names_below = std::ranges::any_of(
        names, [&](const std::string& other) { return other.ends_with(below); });
    if (!has_names_below && !add_subtree(excluded, GEN_DNS, below)) return false;
  }
  const std::string every_ipv4(2 * std::size_t{4}, '\0');  // an address and its mask
  const std::string every_ipv6(2 * std::size_t{16}, '\0');
  return add_subtree(permitted, GEN_EMAIL, nobodys_mail) &&
         add_subtree(permitted, GEN_URI, nobodys_host) &&
         add_subtree(excluded, GEN_IPADD, every_ipv4) &&
         add_subtree(excluded, GEN_IPADD, every_ipv6) &&
         X509_add1_ext_i2d(certificate, NID_name_constraints, constraints.get(), 1,
                           X509V3_ADD_APPEND) == 1;
}

// Critical, since there is no subject: that is what strict clients ask for.
bool add_own_names(X509* certificate, std::span<const std::string> names) {
  const NamesPtr list(GENERAL_NAMES_new());
  if (!list) return false;
  for (const std::string& text : names) {
    NamePtr name(GENERAL_NAME_new());
    if (!name || !set_name(name.get(), GEN_DNS, text) ||
        sk_GENERAL_NAME_push(list.get(), name.get()) <= 0) {
      return false;
    }
    [[maybe_unused]] const auto* of_the_list = name.release();
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, list.get(), 1, X509V3_ADD_APPEND) ==
         1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_nconf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_extensions(X509* certificate, X509* issuer, const CertificateDetails& details) {
  const auto add = [&](int nid, const char* value) {
    return add_extension(certificate, issuer, nid, value);
  };
  if (details.issuer != nullptr && !add(NID_authority_key_identifier, "keyid:always")) return false;
  switch (details.role) {
    case Role::anchor:
    case Role::authority:
      return add(NID_basic_constraints, details.role == Role::anchor
                                            ? "critical,CA:TRUE,pathlen:1"
                                            : "critical,CA:TRUE,pathlen:0") &&
             add(NID_key_usage, "critical,keyCertSign") &&
             add(NID_subject_key_identifier, "hash") && add_constraints(certificate, details.names);
    case Role::leaf:
      return add(NID_basic_constraints, "critical,CA:FALSE") &&
             add(NID_key_usage, "critical,digitalSignature") &&
             add(NID_ext_key_usage, "serverAuth") && add_own_names(certificate, details.names);
  }
  return false;
}

bool set_subject(X509* certificate, const CertificateDetails& details) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  if (details.subject.empty()) return subject != nullptr;
  const auto* text = reinterpret_cast<const unsigned char*>(details.subject.data());
  return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, text,
                                    static_cast<int>(details.subject.size()), -1, 0) == 1;
}

bool set_serial(X509* certificate) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1) return false;
  constexpr std::uint64_t always_eight_bytes = std::uint64_t{1} << 62U;
  serial = (serial >> 2U) | always_eight_bytes;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1;
}

std::string name_text(const GENERAL_NAME* name) {
  int type = -1;
  const void* value = GENERAL_NAME_get0_value(name, &type);
  if (type != GEN_DNS || value == nullptr) return {};
  const auto* text = static_cast<const ASN1_STRING*>(value);
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

}  // namespace

void Free::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
void Free::operator()(X509* certificate) const { X509_free(certificate); }

std::unexpected<std::string> openssl_error(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = format("{}: {}", what, reason == nullptr ? "no reason given" : reason);
  ERR_clear_error();
  return std::unexpected(std::move(text));
}

std::expected<KeyPtr, std::string> make_key() {
  KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  if (!key) return openssl_error("cannot make a key");
  return key;
}

std::expected<CertificatePtr, std::string> make_certificate(const CertificateDetails& details) {
  CertificatePtr out(X509_new());
  X509* certificate = out.get();
  if (certificate == nullptr) return openssl_error("cannot make a certificate");
  X509* issuer = details.issuer == nullptr ? certificate : details.issuer;
  EVP_PKEY* signer = details.issuer == nullptr ? details.key : details.issuer_key;
  const bool is_made = X509_set_version(certificate, X509_VERSION_3) == 1 &&
                       set_serial(certificate) && set_subject(certificate, details) &&
                       X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
                       ASN1_TIME_set(X509_getm_notBefore(certificate), details.begins) != nullptr &&
                       ASN1_TIME_set(X509_getm_notAfter(certificate), details.ends) != nullptr &&
                       X509_set_pubkey(certificate, details.key) == 1 &&
                       add_extensions(certificate, issuer, details) &&
                       X509_sign(certificate, signer, EVP_sha256()) > 0;
  if (!is_made) return openssl_error("cannot make a certificate");
  return out;
}

std::vector<std::string> permitted_names(X509* certificate) {
  const ConstraintsPtr constraints(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(certificate, NID_name_constraints, nullptr, nullptr)));
  std::vector<std::string> out;
  if (!constraints) return out;
  const auto* permitted = constraints->permittedSubtrees;
  for (int i = 0; i < sk_GENERAL_SUBTREE_num(permitted); ++i) {
    std::string name = name_text(sk_GENERAL_SUBTREE_value(permitted, i)->base);
    if (!name.empty()) out.push_back(std::move(name));
  }
  return out;
}

std::string to_der(X509* certificate) {
  const int size = i2d_X509(certificate, nullptr);
  if (size <= 0) return {};
  std::string out(static_cast<std::size_t>(size), '\0');
  auto* at = reinterpret_cast<unsigned char*>(out.data());
  return i2d_X509(certificate, &at) == size ? out : std::string();
}

std::string to_pem(X509* certificate) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), certificate) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return size <= 0 ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

}  // namespace capgate::seal
