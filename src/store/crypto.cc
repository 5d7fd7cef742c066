#include "store/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <memory>
#include <optional>

#include "base/assert.h"

namespace capgate::store {
namespace {

using secrets::Secret;

constexpr std::uint64_t scrypt_block = 8;
constexpr std::string_view extract_label = "capgate secrets key";

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, Release<EVP_CIPHER_CTX_free>>;
using Kdf = std::unique_ptr<EVP_KDF, Release<EVP_KDF_free>>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, Release<EVP_KDF_CTX_free>>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::span<char> room) {
  return reinterpret_cast<unsigned char*>(room.data());
}

bool fits(std::string_view text) { return text.size() < (std::size_t{1} << 30); }

// Everything but the final step, which is where sealing and opening differ.
CipherContext begin(bool is_sealing, const Secret& key, std::string_view nonce,
                    std::string_view associated) {
  CAPGATE_ASSERT(key.view().size() == key_size && nonce.size() == nonce_size);
  CipherContext context(EVP_CIPHER_CTX_new());
  int written = 0;
  if (!context || !fits(associated) ||
      EVP_CipherInit_ex2(context.get(), EVP_aes_256_gcm(), bytes_of(key.view()), bytes_of(nonce),
                         is_sealing ? 1 : 0, nullptr) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &written, bytes_of(associated),
                       static_cast<int>(associated.size())) != 1) {
    return nullptr;
  }
  return context;
}

// An empty text is nothing to update with: a null pointer would mean more associated data.
bool update(EVP_CIPHER_CTX* context, std::span<char> to, std::string_view from) {
  if (from.empty()) return true;
  int written = 0;
  return EVP_CipherUpdate(context, bytes_of(to), &written, bytes_of(from),
                          static_cast<int>(from.size())) == 1 &&
         static_cast<std::size_t>(written) == from.size();
}

bool finish(EVP_CIPHER_CTX* context) {
  unsigned char none[EVP_MAX_BLOCK_LENGTH];
  int written = 0;
  return EVP_CipherFinal_ex(context, none, &written) == 1 && written == 0;
}

std::expected<Secret, Failure> derive(const char* algorithm, const OSSL_PARAM* parameters) {
  const Kdf kdf(EVP_KDF_fetch(nullptr, algorithm, nullptr));
  const KdfContext context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  auto key = Secret::room(key_size);
  if (!key) return std::unexpected(Failure::memory);
  if (!context ||
      EVP_KDF_derive(context.get(), bytes_of(key->bytes()), key_size, parameters) != 1) {
    return std::unexpected(Failure::library);
  }
  return *std::move(key);
}

OSSL_PARAM octets(const char* name, std::string_view text) {
  // OpenSSL only reads it, but its parameters are not const.
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(text.data()), text.size());
}

}  // namespace

Problem problem_of(Failure failure) {
  if (failure == Failure::memory) {
    return {Problem::Kind::unavailable, "no memory can be locked for a secret",
            "raise the limit of locked memory (ulimit -l) to at least 1024"};
  }
  return {Problem::Kind::internal, "OpenSSL fails where it must not", "try it again"};
}

std::expected<Sealed, Failure> seal(const Secret& key, std::string_view associated,
                                    std::string_view plain) {
  auto nonce = random_bytes(nonce_size);
  if (!nonce) return std::unexpected(nonce.error());
  Sealed out{.nonce = *std::move(nonce), .bytes = std::string(plain.size() + tag_size, '\0')};
  const CipherContext context = begin(true, key, out.nonce, associated);
  const std::span<char> room(out.bytes);
  if (!context || !fits(plain) || !update(context.get(), room, plain) || !finish(context.get()) ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, tag_size,
                          room.subspan(plain.size()).data()) != 1) {
    return std::unexpected(Failure::library);
  }
  return out;
}

std::expected<Secret, Failure> open(const Secret& key, const Sealed& sealed,
                                    std::string_view associated) {
  if (sealed.nonce.size() != nonce_size || sealed.bytes.size() < tag_size || !fits(sealed.bytes)) {
    return std::unexpected(Failure::forged);
  }
  const std::string_view body =
      std::string_view(sealed.bytes).substr(0, sealed.bytes.size() - tag_size);
  std::string tag = sealed.bytes.substr(body.size());
  auto plain = Secret::room(body.size());
  if (!plain) return std::unexpected(Failure::memory);
  const CipherContext context = begin(false, key, sealed.nonce, associated);
  if (!context || !update(context.get(), plain->bytes(), body) ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, tag_size, tag.data()) != 1) {
    return std::unexpected(Failure::library);
  }
  if (!finish(context.get())) return std::unexpected(Failure::forged);
  return *std::move(plain);
}

std::expected<Secret, Failure> random_key() {
  auto key = Secret::room(key_size);
  if (!key) return std::unexpected(Failure::memory);
  if (RAND_priv_bytes(bytes_of(key->bytes()), key_size) != 1) {
    return std::unexpected(Failure::library);
  }
  return *std::move(key);
}

std::expected<std::string, Failure> random_bytes(std::size_t size) {
  std::string out(size, '\0');
  if (RAND_bytes(bytes_of(std::span<char>(out)), static_cast<int>(size)) != 1) {
    return std::unexpected(Failure::library);
  }
  return out;
}

std::expected<Secret, Failure> stretch(std::string_view passphrase, std::string_view salt,
                                       std::uint64_t cost) {
  std::uint64_t n = cost;
  std::uint64_t r = scrypt_block;
  std::uint64_t p = 1;
  // OpenSSL refuses what needs more than this: the table itself, and a little for the rest.
  std::uint64_t most_memory = 128 * r * (n + 32);
  const OSSL_PARAM parameters[] = {
      octets(OSSL_KDF_PARAM_PASSWORD, passphrase),
      octets(OSSL_KDF_PARAM_SALT, salt),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_R, &r),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_P, &p),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most_memory),
      OSSL_PARAM_construct_end(),
  };
  return derive("SCRYPT", parameters);
}

std::expected<Secret, Failure> extract(std::string_view material, std::string_view salt) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, material),
      octets(OSSL_KDF_PARAM_SALT, salt),
      octets(OSSL_KDF_PARAM_INFO, extract_label),
      OSSL_PARAM_construct_end(),
  };
  return derive("HKDF", parameters);
}

bool start_crypto() { return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1; }

}  // namespace capgate::store
