#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>

#include "seal/authority.h"

namespace capgate::seal {
namespace {

struct FreePem {
  void operator()(BIO* memory) const { BIO_free_all(memory); }
  void operator()(char* bytes) const { OPENSSL_free(bytes); }
  void operator()(unsigned char* bytes) const { OPENSSL_free(bytes); }
};

// A sequence from the first to the last byte. More is not looked at: to decode every root's key
// would take most of the time that an authority takes.
bool is_sequence(const unsigned char* der, long size) {
  const unsigned char* at = der;
  long length = 0;
  int tag = 0;
  int kind = 0;
  const int form = ASN1_get_object(&at, &length, &tag, &kind, size);
  return form == V_ASN1_CONSTRUCTED && tag == V_ASN1_SEQUENCE && at + length == der + size;
}

}  // namespace

std::vector<std::string> read_pem_bundle(std::string_view pem) {
  std::vector<std::string> out;
  if (pem.empty() || pem.size() > INT_MAX) return out;
  const std::unique_ptr<BIO, FreePem> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (memory && BIO_pending(memory.get()) > 0) {
    char* raw_name = nullptr;
    char* raw_header = nullptr;
    unsigned char* raw_data = nullptr;
    long size = 0;
    // What fails has been read past: the next block is looked for behind it.
    const bool is_read = PEM_read_bio(memory.get(), &raw_name, &raw_header, &raw_data, &size) == 1;
    const std::unique_ptr<char, FreePem> name(raw_name);
    const std::unique_ptr<char, FreePem> header(raw_header);
    const std::unique_ptr<unsigned char, FreePem> data(raw_data);
    if (!is_read) continue;
    const std::string_view kind = name.get();
    if ((kind == PEM_STRING_X509 || kind == PEM_STRING_X509_OLD) && is_sequence(data.get(), size)) {
      out.emplace_back(reinterpret_cast<const char*>(data.get()), static_cast<std::size_t>(size));
    }
  }
  ERR_clear_error();
  return out;
}

}  // namespace capgate::seal
