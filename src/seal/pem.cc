#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>

#include "seal/authority.h"

namespace capgate::seal {
namespace {

struct FreeBytes {
  void operator()(char* bytes) const { OPENSSL_free(bytes); }
  void operator()(unsigned char* bytes) const { OPENSSL_free(bytes); }
};

// One that does not parse would keep Java from reading any of a key store.
bool is_certificate(const unsigned char* der, long size) {
  const unsigned char* at = der;
  const CertificatePtr parsed(d2i_X509(nullptr, &at, size));
  return parsed && at == der + size;
}

}  // namespace

std::vector<std::string> read_pem_bundle(std::string_view pem) {
  std::vector<std::string> out;
  if (pem.empty() || pem.size() > INT_MAX) return out;
  const std::unique_ptr<BIO, decltype([](BIO* bio) { (void)BIO_free(bio); })> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (memory && BIO_pending(memory.get()) > 0) {
    char* raw_name = nullptr;
    char* raw_header = nullptr;
    unsigned char* raw_data = nullptr;
    long size = 0;
    // What fails has been read past: the next block is looked for behind it.
    const bool is_read = PEM_read_bio(memory.get(), &raw_name, &raw_header, &raw_data, &size) == 1;
    const std::unique_ptr<char, FreeBytes> name(raw_name);
    const std::unique_ptr<char, FreeBytes> header(raw_header);
    const std::unique_ptr<unsigned char, FreeBytes> data(raw_data);
    if (!is_read) continue;
    const std::string_view kind = name.get();
    if ((kind == PEM_STRING_X509 || kind == PEM_STRING_X509_OLD) &&
        is_certificate(data.get(), size)) {
      out.emplace_back(reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(size));
    }
  }
  ERR_clear_error();
  return out;
}

}  // namespace capgate::seal
