#include "seal/authority.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/format.h"
#include "seal/certificate.h"

namespace capgate::seal {
namespace {

using Names = std::vector<std::string>;

Authority made(const Names& names) {
  auto out = make_authority(names);
  EXPECT_TRUE(out) << out.error();
  return *std::move(out);
}

CertificatePtr parse(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  return CertificatePtr(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
}

KeyPtr key_of(const Authority& authority) {
  const auto der = authority.key_der();
  const auto* at = reinterpret_cast<const unsigned char*>(der->view().data());
  return KeyPtr(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(der->view().size())));
}

// What a strict client says of the leaf, which came with the authority's certificate: "ok", or
// OpenSSL's reason. Python 3.13 sets the same flag.
std::string verify(const Authority& authority, X509* leaf, const std::string& host,
                   X509* also_sent = nullptr) {
  const CertificatePtr anchor = parse(authority.anchor_der());
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  EXPECT_EQ(X509_STORE_add_cert(store.get(), anchor.get()), 1);
  const std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * list) { sk_X509_free(list); })>
      sent(sk_X509_new_null());
  sk_X509_push(sent.get(), authority.certificate());
  if (also_sent != nullptr) sk_X509_push(sent.get(), also_sent);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), X509_STORE_CTX_free);
  EXPECT_EQ(X509_STORE_CTX_init(context.get(), store.get(), leaf, sent.get()), 1);
  X509_VERIFY_PARAM* how = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_purpose(how, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set1_host(how, host.data(), host.size());
  if (X509_verify_cert(context.get()) == 1) return "ok";
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

// What somebody who got hold of the authority's key could sign.
CertificatePtr forge(const Authority& authority, const std::string& names) {
  const KeyPtr key = key_of(authority);
  CertificatePtr out(X509_new());
  X509_set_version(out.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(out.get()), 4711);
  X509_set_issuer_name(out.get(), X509_get_subject_name(authority.certificate()));
  X509_gmtime_adj(X509_getm_notBefore(out.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(out.get()), 3600);
  X509_set_pubkey(out.get(), key.get());
  X509V3_CTX context{};
  X509V3_set_ctx(&context, authority.certificate(), out.get(), nullptr, nullptr, 0);
  const auto add = [&](int nid, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_nconf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
    ASSERT_NE(extension, nullptr) << value;
    ASSERT_EQ(X509_add_ext(out.get(), extension.get(), -1), 1);
  };
  add(NID_basic_constraints, "critical,CA:FALSE");
  add(NID_key_usage, "critical,digitalSignature");
  add(NID_ext_key_usage, "serverAuth");
  add(NID_authority_key_identifier, "keyid:always");
  add(NID_subject_alt_name, "critical," + names);
  EXPECT_GT(X509_sign(out.get(), key.get(), EVP_sha256()), 0);
  return out;
}

std::string verify_issued(Authority& authority, const std::string& host) {
  const auto leaf = authority.issue(host);
  return leaf ? verify(authority, leaf->certificate, host) : leaf.error();
}

TEST(Authority, LeavesOfItsNamesAreTrustedByAStrictClient) {
  Authority authority = made({"api.github.com", "localhost", "x_y.example-1.org"});
  for (const std::string host : {"api.github.com", "localhost", "x_y.example-1.org"}) {
    EXPECT_EQ(verify_issued(authority, host), "ok") << host;
  }
  const auto leaf = authority.issue("localhost");
  ASSERT_TRUE(leaf);
  EXPECT_EQ(verify(authority, leaf->certificate, "api.github.com"), "hostname mismatch");
}

TEST(Authority, IssuesForNoOtherName) {
  Authority authority = made({"api.github.com"});
  for (const std::string host : {"github.com", "a.api.github.com", "", "API.github.com", "*"}) {
    EXPECT_FALSE(authority.issue(host)) << host;
  }
}

TEST(Authority, WhatItsKeySignsForOthersIsRefused) {
  const Authority authority = made({"api.github.com", "localhost"});
  const std::string own = "DNS:api.github.com";
  EXPECT_EQ(verify(authority, forge(authority, own).get(), "api.github.com"), "ok");
  for (const std::string_view other :
       {"DNS:example.org", "DNS:github.com", "DNS:xapi.github.com", "DNS:*.github.com",
        "email:a@example.org", "email:a@api.github.com", "URI:https://example.org/",
        "URI:https://api.github.com/"}) {
    const auto leaf = forge(authority, format("{},{}", own, other));
    EXPECT_EQ(verify(authority, leaf.get(), "api.github.com"), "permitted subtree violation")
        << other;
  }
}

TEST(Authority, AddressesAndWhatLiesBelowItsNamesAreRefused) {
  const Authority authority = made({"api.github.com", "localhost"});
  for (const std::string_view below :
       {"DNS:a.api.github.com", "DNS:*.localhost", "IP:127.0.0.1", "IP:::1"}) {
    const auto leaf = forge(authority, format("DNS:localhost,{}", below));
    EXPECT_EQ(verify(authority, leaf.get(), "localhost"), "excluded subtree violation") << below;
  }
}

bool is_critical(X509* certificate, int nid) {
  const int at = X509_get_ext_by_NID(certificate, nid, -1);
  return at >= 0 && X509_EXTENSION_get_critical(X509_get_ext(certificate, at)) == 1;
}

// A client that does not know name constraints must refuse the chain, not ignore them.
TEST(Authority, ItsConstraintsAreCritical) {
  const Authority authority = made({"localhost"});
  const CertificatePtr anchor = parse(authority.anchor_der());
  for (X509* certificate : {anchor.get(), authority.certificate()}) {
    EXPECT_TRUE(is_critical(certificate, NID_name_constraints));
    EXPECT_TRUE(is_critical(certificate, NID_basic_constraints));
    EXPECT_TRUE(is_critical(certificate, NID_key_usage));
    EXPECT_EQ(X509_get_key_usage(certificate), std::uint32_t{KU_KEY_CERT_SIGN});
  }
  EXPECT_EQ(X509_get_pathlen(anchor.get()), 1);
  EXPECT_EQ(X509_get_pathlen(authority.certificate()), 0);
}

TEST(Authority, LeavesAreForServersOnly) {
  Authority authority = made({"localhost"});
  X509* leaf = authority.issue("localhost")->certificate;
  EXPECT_EQ(X509_get_extended_key_usage(leaf), std::uint32_t{XKU_SSL_SERVER});
  EXPECT_EQ(X509_get_key_usage(leaf), std::uint32_t{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_check_ca(leaf), 0);
}

TEST(Authority, ANameBelowAnotherOneIsStillPermitted) {
  Authority authority = made({"github.com", "api.github.com"});
  EXPECT_EQ(verify_issued(authority, "github.com"), "ok");
  EXPECT_EQ(verify_issued(authority, "api.github.com"), "ok");
  const auto leaf = forge(authority, "DNS:a.api.github.com");
  EXPECT_EQ(verify(authority, leaf.get(), "a.api.github.com"), "excluded subtree violation");
}

TEST(Authority, HasNoAuthorityBelowIt) {
  const Authority authority = made({"localhost"});
  const KeyPtr key = key_of(authority);
  const KeyPtr own_key = *make_key();
  const Names names{"localhost"};
  CertificateDetails details{.role = Role::authority,
                             .subject = "below",
                             .names = names,
                             .begins = std::time(nullptr) - 60,
                             .ends = std::time(nullptr) + 3600,
                             .key = own_key.get(),
                             .issuer = authority.certificate(),
                             .issuer_key = key.get()};
  const CertificatePtr below = *make_certificate(details);
  details.role = Role::leaf;
  details.subject = {};
  details.issuer = below.get();
  details.issuer_key = own_key.get();
  const CertificatePtr leaf = *make_certificate(details);
  EXPECT_EQ(verify(authority, leaf.get(), "localhost", below.get()),
            "path length constraint exceeded");
}

TEST(Authority, ACopyReadInTheBrokerIssuesTheSame) {
  const Authority authority = made({"api.github.com", "localhost"});
  const auto key = authority.key_der();
  ASSERT_TRUE(key);
  auto again = read_authority(key->view(), authority.certificate_der());
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->certificate_der(), authority.certificate_der());
  EXPECT_EQ(again->key_der()->view(), key->view());
  EXPECT_EQ(again->anchor_der(), "");
  const auto leaf = again->issue("localhost");
  ASSERT_TRUE(leaf) << leaf.error();
  EXPECT_EQ(verify(authority, leaf->certificate, "localhost"), "ok");
  EXPECT_EQ(X509_check_private_key(leaf->certificate, leaf->key), 1);
  EXPECT_FALSE(again->issue("example.org"));
}

TEST(Authority, DamagedOnesAreNotRead) {
  const Authority authority = made({"localhost"});
  const Authority other = made({"localhost"});
  const auto key = authority.key_der();
  const std::string certificate = authority.certificate_der();
  EXPECT_FALSE(read_authority(key->view(), other.certificate_der()));
  EXPECT_FALSE(read_authority("", certificate));
  EXPECT_FALSE(read_authority(key->view(), ""));
  EXPECT_FALSE(read_authority(std::string(key->view()) + "x", certificate));
  EXPECT_FALSE(read_authority(key->view(), certificate + "x"));
  EXPECT_FALSE(read_authority(key->view().substr(0, 20), certificate));
}

TEST(Authority, NamesThatNoCertificateCanBeForAreRefused) {
  for (const std::string& name :
       Names{"", "*.example.org", "192.0.2.1", "::1", "EXAMPLE.org", "a..b", ".a", "a.", "a b",
             "a,DNS:b", std::string(254, 'a')}) {
    EXPECT_FALSE(make_authority(Names{name})) << name;
  }
  EXPECT_FALSE(make_authority(Names{}));
}

TEST(Authority, LeavesAreKeptButNotWithoutBound) {
  Names names;
  for (std::size_t i = 0; i < most_leaves + 1; ++i) names.push_back(format("n{}.example.org", i));
  Authority authority = made(names);
  const auto serial = [&](const std::string& name) {
    return ASN1_INTEGER_dup(X509_get_serialNumber(authority.issue(name)->certificate));
  };
  const auto same = [](ASN1_INTEGER* a, ASN1_INTEGER* b) {
    const bool out = ASN1_INTEGER_cmp(a, b) == 0;
    ASN1_INTEGER_free(b);
    return out;
  };
  ASN1_INTEGER* first = serial(names[0]);
  ASN1_INTEGER* second = serial(names[1]);
  EXPECT_TRUE(same(first, serial(names[0])));
  // One too many: the one that was not used for the longest time goes.
  for (std::size_t i = 2; i < names.size(); ++i) ASSERT_TRUE(authority.issue(names[i]));
  EXPECT_TRUE(same(first, serial(names[0])));
  EXPECT_FALSE(same(second, serial(names[1])));
  ASN1_INTEGER_free(first);
  ASN1_INTEGER_free(second);
}

TEST(Authority, EachOneHasKeysOfItsOwn) {
  const Authority a = made({"localhost"});
  const Authority b = made({"localhost"});
  EXPECT_NE(a.key_der()->view(), b.key_der()->view());
  EXPECT_NE(a.anchor_der(), b.anchor_der());
  // Not even the anchor's key is the authority's.
  const CertificatePtr anchor = parse(a.anchor_der());
  EXPECT_EQ(EVP_PKEY_eq(X509_get0_pubkey(anchor.get()), X509_get0_pubkey(a.certificate())), 0);
}

TEST(PemBundle, GivesTheCertificatesAndSkipsTheRest) {
  const Authority a = made({"a.example"});
  const Authority b = made({"b.example"});
  const std::string broken =
      "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"
      "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"
      "-----BEGIN PUBLIC KEY-----\naGVsbG8=\n-----END PUBLIC KEY-----\n";
  const auto list =
      read_pem_bundle("# roots\n" + a.anchor_pem() + broken + "text\n" + b.anchor_pem());
  EXPECT_EQ(list, (Names{a.anchor_der(), b.anchor_der()}));
  EXPECT_TRUE(read_pem_bundle("").empty());
  EXPECT_TRUE(read_pem_bundle("no certificate").empty());
  EXPECT_TRUE(read_pem_bundle("-----BEGIN CERTIFICATE-----\n").empty());
}

TEST(Jks, IsTheFormatThatJavaReads) {
  const auto store = write_jks(Names{"DER"});
  ASSERT_TRUE(store);
  using namespace std::string_literals;
  EXPECT_EQ(store->substr(0, store->size() - 20),
            "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1"
            "\0\0\0\2\0\x09"
            "capgate-0"
            "\0\0\0\0\0\0\0\0"
            "\0\5X.509\0\0\0\3"
            "DER"s);
  EXPECT_EQ(write_jks(Names{})->size(), 12U + 20U);
}

}  // namespace
}  // namespace capgate::seal
