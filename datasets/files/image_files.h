// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// An image and its class.
struct ImageFile {
  std::filesystem::path path;
  std::int64_t label = 0;  // index in ImageFolders::classes
};

/// The images of a folder, by split. A split is empty if the folder does not have it.
struct ImageFolders {
  std::vector<std::string> classes;  // sorted
  std::vector<ImageFile> train;
  std::vector<ImageFile> validation;
  std::vector<ImageFile> test;
};

/// Finds the images below `root`: ROOT/train/CLASS/FILE, and the same below `test` and below `val`, `valid` or
/// `validation`. The folders of `train` are the classes. Without a folder `train`, the folders of `root` are the
/// classes, and all images are training images. Images in subfolders of a class folder belong to the class.
///
/// If a split folder has a file val_annotations.txt, as in Tiny ImageNet, each of its lines begins with a file name of
/// the folder `images`, a tab and the class. A folder `test` that has only a folder `images`, which is not a class, is
/// ignored. Names that begin with a dot are ignored, too. Files are ordered by class, then by path.
///
/// Logs warnings with the number of images in formats that cannot be decoded, and for classes without images. Throws
/// DataError for a folder that cannot be read or is not a class of `train`, and for a split without images.
ImageFolders find_images(const std::filesystem::path& root);

/// Moves a share of the images of each class, rounded, from `train` to `test`: at least one image, but never all images
/// of the class. `seed` determines which ones. Both keep their order.
void hold_out_images(double share, std::int64_t seed, ImageFolders& folders);

}  // namespace phalanx
