#include "engine/meters/meters.h"

#include <ATen/ops/empty.h>

namespace phalanx {
namespace {

Tally measure_loss(const Batch& batch, const Step::Result& result) {
  const auto weight = static_cast<double>(batch.valid);
  return {batch.valid == 0 ? 0 : result.loss.item<double>() * weight, weight};
}

Tally measure_accuracy(const Batch& batch, const Step::Result& result) {
  if (batch.valid == 0) return {};
  const at::Tensor guess = result.output.narrow(0, 0, batch.valid).argmax(-1);
  const at::Tensor hits = guess.eq(batch.target.narrow(0, 0, batch.valid)).sum();
  return {hits.item<double>(), static_cast<double>(batch.valid)};
}

}  // namespace

Meter loss_meter() { return {"loss", measure_loss}; }
Meter accuracy_meter() { return {"accuracy", measure_accuracy}; }

void Meters::add(const Batch& batch, const Step::Result& result) {
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    const Tally tally = meters_[i].measure(batch, result);
    tallies_[i].sum += tally.sum;
    tallies_[i].weight += tally.weight;
  }
}

Readings Meters::take(Communicator& group) {
  const auto count = static_cast<std::int64_t>(meters_.size());
  at::Tensor totals = at::empty({count, 2}, at::kDouble);
  auto* cells = totals.data_ptr<double>();
  for (const auto& tally : tallies_) {
    *cells++ = tally.sum;
    *cells++ = tally.weight;
  }
  group.all_reduce(totals, Reduction::kSum).wait();
  tallies_.assign(meters_.size(), {});

  Readings readings;
  const auto* total = totals.data_ptr<double>();
  for (const auto& meter : meters_) {
    readings.emplace_back(meter.name, total[1] > 0 ? total[0] / total[1] : 0);
    total += 2;
  }
  return readings;
}

}  // namespace phalanx
