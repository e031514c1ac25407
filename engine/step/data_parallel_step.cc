// SPDX-License-Identifier: Apache-2.0
#include "engine/step/data_parallel_step.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/step/merged_results.h"
#include "framework/base/parts.h"
#include "models/model.h"
#include "models/trainable_parameters.h"

namespace phalanx {

DataParallelStep::DataParallelStep(const FirstReplica& first, std::vector<Replica> others, Communicator& memory,
                                   std::int64_t bucket_bytes, std::int64_t parts)
    : first_(first),
      others_(std::move(others)),
      share_(static_cast<int>(others_.size()) + 1),
      threads_(static_cast<int>(others_.size()), /*numa_node_id=*/-1,
               [threads = at::get_num_threads()] { at::set_num_threads(threads); }) {
  for (const auto& replica : others_) {
    other_parameters_.emplace_back(trainable_parameters(*replica.model), memory, bucket_bytes, parts);
  }
}

// The first replica's parameters may have been moved since the last step.
void DataParallelStep::prepare() {
  for (const auto& other : other_parameters_) {
    for (std::size_t i = 0; i < other.buckets().size(); ++i) {
      const auto& values = first_.parameters.buckets()[i].values;
      if (other.buckets()[i].values.data_ptr() != values.data_ptr()) view_values(other.buckets()[i], values);
    }
  }
  copy_buffers();
}

// The limit is set once: LibTorch's threads that have had work spin on their own cores while they wait for more.
DataParallelStep::ThreadShare::ThreadShare(int among) : before_(at::get_num_threads()) {
  at::set_num_threads(std::max(1, before_ / among));
}

DataParallelStep::ThreadShare::~ThreadShare() { at::set_num_threads(before_); }

Step::Result DataParallelStep::run(const Batch& batch, const Watch& watch) {
  prepare();
  const Result whole = scatter(batch, [](Step& step, const Batch& part) { return step.run(part, ignore_stages); });
  add_gradients();
  report_step(watch, whole);
  return whole;
}

Step::Result DataParallelStep::evaluate(const Batch& batch, const Watch& watch) {
  prepare();
  const Result whole = scatter(batch, [](Step& step, const Batch& part) { return step.evaluate(part, ignore_stages); });
  report_evaluation(watch, whole);
  return whole;
}

// Parts are made of rows, including padding: a share without samples has one row, for the first replica.
Step::Result DataParallelStep::scatter(const Batch& batch, const OneStep& one) {
  const auto replicas = static_cast<std::int64_t>(others_.size()) + 1;
  const std::int64_t rows = batch.rows(), used = std::min(rows, replicas);
  std::vector<Batch> parts;
  for (std::int64_t i = 0; i < used; ++i) {
    parts.push_back(rows_of(batch, part_begin(rows, used, i), part_begin(rows, used, i + 1)));
  }
  std::vector<Result> results(used);
  std::vector<std::exception_ptr> failures(used);
  const auto run_part = [&](std::int64_t i, Step& step) {
    try {
      results[i] = one(step, parts[i]);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  for (std::int64_t i = 1; i < used; ++i) {
    threads_.run([&, i] { run_part(i, *others_[i - 1].step); });
  }
  run_part(0, first_.step);
  if (used > 1) threads_.waitWorkComplete();
  MergedResults whole;
  for (std::int64_t i = 0; i < used; ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    whole.add(results[i]);
  }
  return whole.whole();
}

void DataParallelStep::copy_buffers() {
  const at::NoGradGuard no_grad;
  const auto from = first_.model.buffers();
  for (const auto& replica : others_) {
    const auto to = replica.model->buffers();
    for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
  }
}

void DataParallelStep::add_gradients() {
  const at::NoGradGuard no_grad;
  for (const auto& other : other_parameters_) {
    for (std::size_t i = 0; i < other.buckets().size(); ++i) {
      first_.parameters.buckets()[i].gradients.add_(other.buckets()[i].gradients);
      other.buckets()[i].gradients.zero_();
    }
  }
}

}  // namespace phalanx
