#include "engine/fingerprint.h"

#include <openssl/evp.h>

#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr size_t kSmallTensorBytes = size_t{64} << 10;

// SHA-256 with the library's errors turned into CHECKs: it can only fail when memory runs out.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    CHECK(context_ != nullptr);
    CHECK_EQ(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr), 1);
  }
  void Add(std::span<const std::byte> bytes) {
    CHECK_EQ(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()), 1);
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  std::array<uint8_t, 32> Finish() {
    std::array<uint8_t, 32> digest{};
    CHECK_EQ(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr), 1);
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::array<uint8_t, 32> FingerprintOf(const Checkpoint& checkpoint, const ModelConfig& config) {
  Sha256 hash;
  hash.Add(config.canonical_text);
  for (const SafetensorsFile& file : checkpoint.files()) hash.Add(file.header());
  for (const auto& [name, stored] : checkpoint.tensors()) {
    if (stored.view.bytes.size() <= kSmallTensorBytes) hash.Add(stored.view.bytes);
  }
  return hash.Finish();
}

}  // namespace deepinfer
