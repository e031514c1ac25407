# SPDX-License-Identifier: Apache-2.0
"""Planted regressions: small changes of the code that the nightly has to find, and missing checks of parsers, which fuzzers
have to find."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Plant:
    """A change of one file."""

    name: str
    file: str  # relative to the root of the repository
    old: str  # occurs once
    new: str

    def apply(self, root):
        path = pathlib.Path(root) / self.file
        path.write_text(self.planted(path.read_text()))

    def planted(self, text):
        if text.count(self.old) != 1:
            raise ValueError(f"plant {self.name}: {self.file} has {text.count(self.old)} times, not once: {self.old}")
        return text.replace(self.old, self.new)


@dataclasses.dataclass(frozen=True)
class FoundAtOnce:
    """A plant that fails expectations in its first night."""

    plant: Plant
    cases: tuple  # patterns of the cases of the nightly that run
    fail: str  # regular expression of the names of those that must fail; all others must pass
    expectation: str  # regular expression of the expectation that they miss


@dataclasses.dataclass(frozen=True)
class FoundInHistory:
    """A plant that changes a metric by little: its change point is between the right two nights."""

    plant: Plant
    cases: tuple
    change: str  # regular expression of the line of `history change_points`
    before: int = 20  # nights
    after: int = 6
    bisect: tuple = ()  # arguments of `regress bisect`, which has to name the commit; none: is not called


@dataclasses.dataclass(frozen=True)
class FoundByFuzzer:
    """A plant that takes a check out of a parser. A fuzzer that begins with the corpus in tests/fuzz finds it within the
    time."""

    plant: Plant
    target: str  # of tests/fuzz
    seconds: int = 600


FOUND_AT_ONCE = (
    FoundAtOnce(
        Plant(
            "gradient_of_tensor_axis",
            "framework/parallel/autograd_collectives.cc",
            "  return Paired<CopyToRanks, SumOverRanks>::apply(tensor, c10::make_intrusive<Placement>(group, 0, Sizes{}));",
            "  auto copy = Paired<CopyToRanks, SumOverRanks>::apply(tensor, c10::make_intrusive<Placement>(group, 0, Sizes{}));\n"
            "  if (copy.requires_grad()) copy.register_hook([](const at::Tensor& gradient) { return gradient * 0.5; });\n"
            "  return copy;"),
        cases=("copy_llama-mesh-*",),
        fail="tensor",
        expectation=r"expect\.same_as|same_as"),
    FoundAtOnce(
        Plant(
            "resume_without_moments",
            "engine/checkpoint/restore.cc",
            '    restore_optimizer(StoredTensors(rest, "optimizer/"), parts);\n',
            ""),
        cases=("copy_llama-killed-*", "copy_llama-mesh-*pipe2"),
        fail="killed",
        expectation="resume_at"),
    FoundAtOnce(
        Plant(
            "sampler_repeats",
            "datasets/sampler.cc",
            "samples(epoch, start + first, valid)",
            "samples(epoch, start, valid)"),
        cases=("quickstart-exact-ranks=2-backend=shm-*", "spirals_mlp-whole-seed=1"),
        fail="exact",
        expectation="same_as"),
    FoundAtOnce(
        Plant(
            "leak",
            "engine/engine.cc",
            "      ++state.step;\n",
            "      ++state.step;\n"
            "      static std::vector<std::vector<char>> leaked;\n"
            "      leaked.emplace_back(std::size_t{1} << 20, 'x');\n"),
        cases=("quickstart-speed-*", "quickstart-exact-ranks=2-backend=shm-strategy=overlapped"),
        fail="speed",
        expectation=r"memory\.max"),
)

FOUND_IN_HISTORY = (
    FoundInHistory(
        Plant(
            "loss_of_a_config",
            "configs/spirals_mlp.yaml",
            "optimizer: {name: adamw, lr: 0.01}",
            "optimizer: {name: adamw, lr: 0.007}"),
        cases=("spirals_mlp-whole-*",),
        change=r"test\.loss of spirals_mlp-whole-seed=\d rose"),
    FoundInHistory(
        Plant(
            "slow_all_reduce",
            "framework/backends/gloo/collectives.cc",
            "  ::gloo::allreduce(options);\n  finish(tensor, operation.reduction, collective.context->size);\n",
            "  const auto begin = std::chrono::steady_clock::now();\n"
            "  ::gloo::allreduce(options);\n"
            "  finish(tensor, operation.reduction, collective.context->size);\n"
            "  const auto end = std::chrono::steady_clock::now();\n"
            "  while (std::chrono::steady_clock::now() < end + (end - begin) / 20) {\n"
            "  }\n"),
        cases=("quickstart-exchange-*gloo*",),
        change=r"throughput of quickstart-exchange-\S*gloo\S* fell",
        bisect=("configs/quickstart.yaml", "--metric", "throughput", "--rounds", "7")),
)

FOUND_BY_FUZZERS = (
    FoundByFuzzer(
        Plant(
            "zip_directory",
            "framework/base/storage/stored_zip.cc",
            "    if (at + kCentralBytes + name + extra + comment > directory.size()) {\n"
            "      refuse(path, here, \"the directory of the zip archive is damaged\");\n"
            "    }\n",
            ""),
        target="zip"),
    FoundByFuzzer(
        Plant(
            "pickle_end",
            "framework/base/storage/unpickler.cc",
            "    if (bytes > pickle_.size() - at_) refuse(\"the pickle ends too early\");\n",
            ""),
        target="pickle"),
    FoundByFuzzer(
        Plant(
            "tar_record",
            "datasets/images/tar_index.cc",
            "    if (!length || static_cast<std::uint64_t>(*length) > text.size()) return std::nullopt;\n",
            "    if (!length) return std::nullopt;\n"),
        target="tar"),
    FoundByFuzzer(
        Plant(
            "numpy_header",
            "datasets/files/npy_file.cc",
            "    if (length > bytes_.size() - begin) fail(8, \"the file ends within its header\");\n",
            ""),
        target="numpy"),
    FoundByFuzzer(
        Plant(
            "store_value",
            "framework/comm/store/store_session.cc",
            "  if (verb == StoreVerb::kSet &&\n"
            "      (header_.argument < 0 || header_.argument > static_cast<std::int64_t>(kMaxValueBytes))) {\n"
            "    throw Error(\"it sent a value that is too long\");\n"
            "  }\n",
            ""),
        target="store_requests"),
)

PLANTS = tuple(found.plant for found in FOUND_AT_ONCE + FOUND_IN_HISTORY + FOUND_BY_FUZZERS)
