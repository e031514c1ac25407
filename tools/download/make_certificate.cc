// SPDX-License-Identifier: Apache-2.0
// Writes a private key and a self-signed certificate of localhost for tests: make_certificate FILE
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>

namespace {

constexpr long kSeconds = 3600;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int write(const char* path) {
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Free> certificate(X509_new());
  const std::unique_ptr<std::FILE, Free> file(std::fopen(path, "w"));
  if (!key || !certificate || !file) return 1;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kSeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kSeconds);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  const std::unique_ptr<X509_EXTENSION, Free> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost"));
  const bool done = names && X509_add_ext(certificate.get(), names.get(), -1) == 1 &&
                    X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0 &&
                    PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1 &&
                    PEM_write_X509(file.get(), certificate.get()) == 1;
  return done ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? write(argv[1]) : 2; }
