// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/torch_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/tensor_memory.h"

namespace phalanx {
namespace {

constexpr std::string_view kPickle = "/data.pkl";
constexpr std::uint64_t kMaxSharing = 16;          // how often tensors may add up to the size of the whole file
constexpr std::uint64_t kAlwaysFine = 4ull << 20;  // bytes; smaller files count as this large

// Every zip archive begins with this magic number, even one that was cut off.
StoredZip open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path + ": " + std::strerror(errno));
  char start[512] = {};
  file.read(start, sizeof(start));
  const std::string_view text(start, static_cast<std::size_t>(file.gcount()));
  if (text.starts_with("PK\x03\x04")) return StoredZip(path);
  const bool pickled = text.starts_with(std::string_view("\x80\x02\x8a\x0a", 4));
  const bool tar = text.size() > 262 && text.substr(257, 5) == "ustar";
  if (!pickled && !tar) {
    throw DataError(path + ": byte 0: this is not a zip archive, which torch.save() writes; is it a file of weights?");
  }
  throw DataError(path +
                  ": is in the format of torch before 1.6; convert it with python3 -c \"import torch; "
                  "torch.save(torch.load('" +
                  path + "', weights_only=True), 'converted.pt')\"");
}

std::string root_of(const StoredZip& zip) {
  for (const auto& entry : zip.entries()) {
    const auto slash = entry.name.find('/');
    if (slash == std::string::npos || entry.name.substr(slash) != kPickle) continue;
    const std::string root = entry.name.substr(0, slash);
    if (zip.find(root + "/constants.pkl") != nullptr) {
      throw DataError(zip.path() + ": is a TorchScript program, which loading would execute; save model.state_dict()");
    }
    const auto* const order = zip.find(root + "/byteorder");
    if (order != nullptr && zip.read(*order) != "little") {
      throw DataError(zip.path() + ": byteorder is " + zip.read(*order) + ", but only little is supported");
    }
    return root;
  }
  throw DataError(zip.path() + ": has no data.pkl, so torch.save() did not write it");
}

// Several names may share a storage, as tied weights do, but each is read into its own memory. This limits the total.
void check_sharing(const std::string& path, const StoredZip& zip, const std::vector<PickledTensor>& tensors) {
  std::uint64_t held = 0, wanted = 0;
  for (const auto& entry : zip.entries()) held += entry.bytes;
  const std::uint64_t most = std::max(held, kAlwaysFine) * kMaxSharing;
  for (const auto& tensor : tensors) {
    const auto bytes = checked_product(tensor.shape, static_cast<std::int64_t>(c10::elementSize(tensor.dtype)));
    if (!bytes) throw DataError(path + ": tensor " + tensor.name + " has more bytes than can be counted");
    wanted += static_cast<std::uint64_t>(*bytes);
    if (wanted <= most) continue;
    throw DataError(path + ": its tensors share " + std::to_string(held) +
                    " bytes so often that they would take more than " + std::to_string(most) +
                    "; save contiguous copies of them");
  }
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : zip_(open(path)), root_(root_of(zip_)) {
  tensors_ = unpickle_state_dict(path, zip_.read(*zip_.find(root_ + std::string(kPickle))));
  for (const auto& tensor : tensors_) {
    const auto* const entry = zip_.find(root_ + "/data/" + tensor.storage);
    if (entry == nullptr) throw DataError(path + ": tensor " + tensor.name + " has no data/" + tensor.storage);
    const std::uint64_t size = c10::elementSize(tensor.dtype);
    if (entry->bytes % size != 0 || entry->bytes / size < static_cast<std::uint64_t>(tensor.storage_numel)) {
      throw DataError(path + ": data/" + tensor.storage + " has " + std::to_string(entry->bytes) +
                      " bytes, but tensor " + tensor.name + " is of " + std::to_string(tensor.storage_numel) +
                      " elements of " + c10::toString(tensor.dtype));
    }
  }
  check_sharing(path, zip_, tensors_);
}

at::Tensor TorchFile::read(const PickledTensor& tensor) const {
  const auto* const entry = zip_.find(root_ + "/data/" + tensor.storage);
  const auto elements = static_cast<std::int64_t>(entry->bytes / c10::elementSize(tensor.dtype));
  const at::Tensor storage = tensor_memory(zip_.path(), tensor.name, {elements}, tensor.dtype);
  if (elements > 0) zip_.read(*entry, static_cast<char*>(storage.data_ptr()));
  const at::Tensor view = storage.as_strided(tensor.shape, tensor.strides, tensor.offset);
  return view.is_contiguous() && view.numel() == elements ? view : view.clone(at::MemoryFormat::Contiguous);
}

void save_torch(const std::string& path, const NamedTensors& tensors) {
  std::vector<PickledTensor> described;
  for (const auto& [name, tensor] : tensors) {
    auto& one = described.emplace_back();
    one.name = name;
    one.dtype = tensor.scalar_type();
    one.shape = tensor.sizes().vec();
  }
  StoredZipWriter zip(path);
  zip.add("archive/data.pkl", pickle_state_dict(described));
  zip.add("archive/byteorder", "little");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor dense = tensors[i].second.detach().contiguous();
    zip.add("archive/data/" + std::to_string(i), {static_cast<const char*>(dense.data_ptr()), dense.nbytes()});
  }
  zip.add("archive/version", "3\n");
  write_atomically(path, zip.finish());
}

}  // namespace phalanx
