#include "framework/collectives/selection/native.h"

#include <array>
#include <stdexcept>

namespace phalanx {
namespace {

constexpr std::array kOps{Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter,
                          Op::kAllGather, Op::kGather, Op::kScatter,   Op::kAllToAll};

}  // namespace

std::span<const Op> selectable_ops() { return kOps; }

std::vector<std::string> selectable_op_names() {
  std::vector<std::string> names;
  for (const Op op : kOps) names.emplace_back(to_string(op));
  return names;
}

Op selectable_op(const std::string& name) {
  for (const Op op : kOps) {
    if (to_string(op) == name) return op;
  }
  return Op::kNone;
}

Work launch_native(Communicator& group, Op op, const Arguments& arguments) {
  const auto& [output, input, reduction, root, output_counts, input_counts] = arguments;
  switch (op) {
    case Op::kBroadcast:
      return group.broadcast(output, root);
    case Op::kReduce:
      return group.reduce(output, reduction, root);
    case Op::kAllReduce:
      return group.all_reduce(output, reduction);
    case Op::kReduceScatter:
      return group.reduce_scatter(output, input, reduction, input_counts);
    case Op::kAllGather:
      return group.all_gather(output, input, input_counts);
    case Op::kGather:
      return group.gather(output, input, root, input_counts);
    case Op::kScatter:
      return group.scatter(output, input, root, input_counts);
    case Op::kAllToAll:
      return group.all_to_all(output, input, output_counts, input_counts);
    default:
      throw std::invalid_argument(std::string(to_string(op)) + " is not done by arguments alone");
  }
}

}  // namespace phalanx
