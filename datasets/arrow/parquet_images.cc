// SPDX-License-Identifier: Apache-2.0
// Encoded images in Parquet and Arrow files, as Hugging Face datasets have them: a column of structures with a field
// "bytes", or of bytes, and a column of classes. A row group is read when one of its images is; the most recently used
// groups are kept. All classes are read at the start.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/arrow/columns.h"
#include "datasets/arrow/groups.h"
#include "datasets/arrow/table_files.h"
#include "datasets/dataset.h"
#include "datasets/images/decode.h"
#include "datasets/images/image_config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ParquetImagesConfig : TableFiles, ImageConfig {
  std::string image = "image";
  std::string target = "label";
  std::int64_t classes = 1000;
  std::int64_t groups = 16;

  template <class V>
  void visit(V& v) {
    TableFiles::visit(v);
    v("image", image, "column of JPEG or PNG images");
    v("target", target, "column of classes");
    v("classes", classes, "number of classes", config::at_least(1));
    v("groups", groups, "row groups that each split keeps in memory", config::at_least(1));
    ImageConfig::visit(v);
  }
};

class ParquetImages final : public ImageSource {
 public:
  ParquetImages(const ParquetImagesConfig& config, const std::vector<std::filesystem::path>& files)
      : column_(config.image), decoding_(config.decoding()), groups_(files), kept_(config.groups) {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto where = groups_.name(group, config.target);
      const at::Tensor labels = numbers_of(*groups_.read(group, config.target), /*whole=*/true, where);
      for (std::int64_t row = 0; row < labels.numel(); ++row) {
        const auto label = labels.const_data_ptr<std::int64_t>()[row];
        if (label < 0 || label >= config.classes) {
          throw DataError(where + ": class " + std::to_string(label) + " in row " + std::to_string(row) +
                          " of the group, expected 0 to " + std::to_string(config.classes - 1) + " (dataset.classes)");
        }
        labels_.push_back(label);
      }
    }
  }

  std::int64_t size() const override { return groups_.rows(); }
  std::int64_t label(std::int64_t index) const override { return labels_.at(static_cast<std::size_t>(index)); }

  at::Tensor image(std::int64_t index) const override {
    const auto [group, row] = groups_.place(index);
    const auto images =
        kept_.get(group, [&] { return ImageColumn(groups_.read(group, column_), groups_.name(group, column_)); });
    return decode_image(std::string(images->bytes(row)), decoding_, name(index));
  }

  std::string name(std::int64_t index) const override {
    const auto [group, row] = groups_.place(index);
    return groups_.name(group, column_) + ", row " + std::to_string(row);
  }

 private:
  std::string column_;
  DecodeOptions decoding_;
  RowGroups groups_;
  mutable LruCache<ImageColumn> kept_;
  std::vector<std::int64_t> labels_;
};

Splits load_parquet_images(const ParquetImagesConfig& config) {
  return config.splits("parquet_images", [&](const auto& files, bool training) {
    return config.samples(std::make_shared<ParquetImages>(config, files), config.classes, training);
  });
}

const bool parquet_images_registered = Datasets::global().add<ParquetImagesConfig>(
    "parquet_images", "JPEG and PNG images in Parquet or Arrow files", load_parquet_images);

}  // namespace
}  // namespace phalanx
