// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/optim/slice_optimizer.h"

namespace phalanx {

/// An optimizer that treats every element independently. A subclass defines its state and how a range of elements is
/// updated. On the CPU, ranges are short enough to stay in a core's cache, where their gradients are then zeroed, so
/// that memory is traversed once; threads share the ranges. On a device, a range is as long as possible, since each one
/// costs kernel launches. The new value of an element depends, to the last bit, only on the element itself: not on the
/// borders of slices, nor on its neighbours, nor on the number of threads.
class ElementwiseOptimizer : public SliceOptimizer {
 public:
  using SliceOptimizer::SliceOptimizer;

  void attach(std::vector<Slice> slices) final;
  void update() final { update_all(std::nullopt); }
  bool can_skip_on_device() const final { return has_updated(); }
  void update_unless(const at::Tensor& skip) final;
  void exclude(const std::set<std::string>& parameters) final;
  std::string why_not_recorded() const final;
  void record(const std::optional<at::Tensor>& skip) final;
  void prepare_replay() final;
  void replayed() final;

 protected:
  /// The tensors for the same n elements; on the CPU, n is a multiple of 64. All tensors are [n].
  struct Range {
    at::Tensor values, gradients;
    std::vector<at::Tensor> state;  // by kind
  };

  /// The settings that all elements of a group share.
  struct Rates : GroupRates {
    const at::Tensor& update_tensor;  // the update as a tensor, [], for LibTorch's fused kernels, on the values' device
    const std::optional<at::Tensor>& skip;  // see update_unless(); the found_inf of LibTorch's fused kernels
    const at::Tensor* on_device;            // if not null, the learning rate, [] float32, which must be used then

    /// Calls `update` with the learning rate, either the number or the tensor.
    template <class Update>
    void with_learning_rate(const Update& update) const {
      on_device == nullptr ? update(learning_rate) : update(*on_device);
    }
  };

  /// Updates a range. Called without autograd, by several threads at a time with different ranges. May overwrite the
  /// gradients, which are zeroed afterwards.
  virtual void update_range(const Range& range, const Rates& rates) const = 0;

  /// Returns true if update_range() changes nothing when Rates::skip is 1. Otherwise its changes are undone, which
  /// costs a copy of the range, as long as it is updated.
  virtual bool skips() const { return false; }

  /// Returns true if update_range() uses Rates::with_learning_rate(), and numbers of the host only if they do not
  /// change from update to update.
  virtual bool records() const { return false; }

 private:
  // A range, or the end of a slice that is too short for one, which is updated in a copy.
  struct Piece {
    std::size_t group;
    Range range;
    std::optional<Range> original{};
  };

  // The arguments that all pieces of an update share.
  struct Update {
    const at::Tensor& number;  // Rates::update_tensor
    const std::optional<at::Tensor>& skip;
    bool recorded;
  };

  // The numbers that recorded updates read: [] float32, at addresses that do not change.
  struct Recorded {
    at::Tensor number{};              // of the update; undefined before prepare_replay()
    std::vector<at::Tensor> rates{};  // learning rates by group
    std::vector<double> written{};    // the same, as they were written
    bool skips = false;               // recorded updates may be skipped
  };

  void make_pieces();
  void make_pieces(std::size_t slice);
  void add_pieces(std::size_t slice, std::size_t group, std::int64_t begin, std::int64_t end);
  Range range_of(std::size_t slice, std::int64_t begin, std::int64_t end) const;
  void update_all(const std::optional<at::Tensor>& skip);
  void update_pieces(const Update& update, std::int64_t begin, std::int64_t end) const;
  Rates rates_for(const Piece& piece, const Update& update) const;
  void update_piece(const Piece& piece, const Rates& rates) const;
  void update_or_undo(const Range& range, const Rates& rates) const;

  std::vector<Piece> pieces_;                   // of the parameters that are updated
  std::vector<at::Tensor> excluded_gradients_;  // of the others
  Recorded recorded_;
};

}  // namespace phalanx
