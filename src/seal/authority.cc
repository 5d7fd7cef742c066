#include "seal/authority.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <list>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "seal/certificate.h"

namespace capgate::seal {
namespace {

constexpr std::time_t hour = 3600;
constexpr std::time_t day = 24 * hour;
constexpr std::time_t leaf_life = 7 * day;
constexpr std::time_t renewed_before_its_end = day;
// Longer than any sandbox runs: what ends it is that its key is gone.
constexpr std::time_t authority_life = day * 365 * 10;
constexpr std::size_t most_names = 256;

// A name as the policy has it: lower case, no wildcard, no address, no dot at its end.
bool is_plain_name(std::string_view name) {
  const bool is_written_right = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  const bool ends_in_a_letter = !name.empty() && !(name.back() >= '0' && name.back() <= '9');
  return is_written_right && ends_in_a_letter && name.size() <= 253 && !name.starts_with('.') &&
         !name.ends_with('.') && !name.contains("..");
}

// Different in each sandbox: a bundle may hold the anchor of the sandbox that we run in.
std::expected<std::string, std::string> make_suffix() {
  std::uint32_t number = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number)) != 1) {
    return openssl_error("no random numbers");
  }
  return format("{:08x}", number);
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Null: damaged.
CertificatePtr read_certificate(std::string_view der) {
  const unsigned char* at = bytes_of(der);
  CertificatePtr out(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  return at == bytes_of(der) + der.size() ? std::move(out) : nullptr;
}

}  // namespace

struct Authority::Parts {
  struct Issued {
    std::string name;
    CertificatePtr certificate;
    std::time_t renewed_at = 0;
  };
  KeyPtr key;
  CertificatePtr certificate;
  CertificatePtr anchor;  // only where it was made
  KeyPtr leaf_key;
  std::vector<std::string> names;
  std::list<Issued> leaves;  // what was used last comes first
};

Authority::Authority(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

std::expected<secrets::Secret, std::string> Authority::key_der() const {
  const int size = i2d_PrivateKey(parts_->key.get(), nullptr);
  if (size <= 0) return openssl_error("cannot write the authority's key");
  auto out = secrets::Secret::room(static_cast<std::size_t>(size));
  if (!out) return std::unexpected(format("cannot lock memory: {}", std::strerror(errno)));
  auto* at = reinterpret_cast<unsigned char*>(out->bytes().data());
  if (i2d_PrivateKey(parts_->key.get(), &at) != size) {
    return openssl_error("cannot write the authority's key");
  }
  return *std::move(out);
}

std::string Authority::certificate_der() const { return to_der(parts_->certificate.get()); }
X509* Authority::certificate() const { return parts_->certificate.get(); }

std::string Authority::anchor_der() const {
  return parts_->anchor ? to_der(parts_->anchor.get()) : std::string();
}
std::string Authority::anchor_pem() const {
  return parts_->anchor ? to_pem(parts_->anchor.get()) : std::string();
}

std::expected<Leaf, std::string> Authority::issue(std::string_view name) {
  auto& leaves = parts_->leaves;
  const std::time_t now = std::time(nullptr);
  const auto found = std::ranges::find(leaves, name, &Parts::Issued::name);
  if (found != leaves.end() && now < found->renewed_at) {
    leaves.splice(leaves.begin(), leaves, found);
    return Leaf{leaves.front().certificate.get(), parts_->leaf_key.get()};
  }
  const auto known = std::ranges::find(parts_->names, name);
  if (known == parts_->names.end()) {
    return std::unexpected(
        format("{} is no name of this authority", escape_for_terminal(std::string(name))));
  }
  const auto made = TRY(make_certificate({.role = Role::leaf,
                                          .subject = {},
                                          .names = std::span(&*known, 1),
                                          .begins = now - hour,
                                          .ends = now + leaf_life,
                                          .key = parts_->leaf_key.get(),
                                          .issuer = parts_->certificate.get(),
                                          .issuer_key = parts_->key.get()}));
  // OpenSSL keeps the encoding of a certificate that was read. One that was made is encoded anew in
  // every handshake.
  CertificatePtr leaf = read_certificate(to_der(made.get()));
  if (!leaf) return openssl_error("cannot make a certificate");
  if (found != leaves.end()) leaves.erase(found);
  if (leaves.size() >= most_leaves) leaves.pop_back();
  leaves.push_front({.name = *known,
                     .certificate = std::move(leaf),
                     .renewed_at = now + leaf_life - renewed_before_its_end});
  return Leaf{leaves.front().certificate.get(), parts_->leaf_key.get()};
}

std::expected<Authority, std::string> make_authority(std::span<const std::string> names) {
  auto parts = std::make_unique<Authority::Parts>();
  for (const std::string& name : names) {
    if (!is_plain_name(name)) {
      return std::unexpected(
          format("{} is no name that a certificate can be for", escape_for_terminal(name)));
    }
    if (!contains(parts->names, name)) parts->names.push_back(name);
  }
  if (parts->names.empty() || parts->names.size() > most_names) {
    return std::unexpected(format("an authority has 1 to {} names", most_names));
  }
  const std::string suffix = TRY(make_suffix());
  const KeyPtr anchor_key = TRY(make_key());  // forgotten when this function ends
  parts->key = TRY(make_key());
  parts->leaf_key = TRY(make_key());
  const std::time_t now = std::time(nullptr);
  parts->anchor = TRY(make_certificate({.role = Role::anchor,
                                        .subject = format("capgate sandbox {}", suffix),
                                        .names = parts->names,
                                        .begins = now - hour,
                                        .ends = now + authority_life,
                                        .key = anchor_key.get()}));
  parts->certificate =
      TRY(make_certificate({.role = Role::authority,
                            .subject = format("capgate sealed endpoints {}", suffix),
                            .names = parts->names,
                            .begins = now - hour,
                            .ends = now + authority_life,
                            .key = parts->key.get(),
                            .issuer = parts->anchor.get(),
                            .issuer_key = anchor_key.get()}));
  return Authority(std::move(parts));
}

std::expected<Authority, std::string> read_authority(std::string_view key_der,
                                                     std::string_view certificate_der) {
  auto parts = std::make_unique<Authority::Parts>();
  const unsigned char* at = bytes_of(key_der);
  parts->key.reset(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(key_der.size())));
  if (!parts->key || at != bytes_of(key_der) + key_der.size()) {
    return openssl_error("the authority's key is damaged");
  }
  parts->certificate = read_certificate(certificate_der);
  if (!parts->certificate) return openssl_error("the authority's certificate is damaged");
  if (X509_check_private_key(parts->certificate.get(), parts->key.get()) != 1) {
    return openssl_error("the authority's key is not that of its certificate");
  }
  parts->names = permitted_names(parts->certificate.get());
  if (parts->names.empty()) {
    return std::unexpected(std::string("the authority's certificate has no names"));
  }
  parts->leaf_key = TRY(make_key());
  return Authority(std::move(parts));
}

}  // namespace capgate::seal
