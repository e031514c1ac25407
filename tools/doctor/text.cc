// SPDX-License-Identifier: Apache-2.0
#include "framework/base/text.h"

#include <algorithm>
#include <map>

#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 20;
constexpr std::size_t kCell = 12;  // width of a cell in the table of operations

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

/// Breaks lines between words. `indent` columns of the first line are already used; the others begin with `indent`
/// spaces.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = indent, begin = 0;
  while (begin < text.size()) {
    const auto end = std::min(text.find(' ', begin), text.size());
    if (column > indent && column + 1 + (end - begin) > kColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return result + "\n";
}

/// Colors words if colors are enabled.
class Colorizer {
 public:
  explicit Colorizer(bool color) : color_(color) {}
  std::string title(const std::string& text) const { return "\n" + paint("1", text) + "\n"; }
  std::string good(const std::string& text) const { return paint("32", text); }
  std::string bad(const std::string& text) const { return paint("31", text); }
  std::string faint(const std::string& text) const { return paint("2", text); }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return color_ ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  }
  bool color_;
};

// Shortens a long path to its end, which is the most informative part.
std::string shortened(const std::string& path) {
  const std::size_t room = kColumns - kIndent - 20;
  return path.size() <= room ? path : "..." + path.substr(path.size() - room + 3);
}

std::string field(const std::string& name, const std::string& value) {
  return "  " + padded(name, kIndent - 2) + wrapped(value.empty() ? "unknown" : value, kIndent);
}

std::string limit(std::int64_t value, bool bytes) {
  if (value < 0) return "unlimited";
  return bytes ? format_bytes(value) : std::to_string(value);
}

std::string machine(const Machine& m, const Diagnosis& found, const Colorizer& colorizer) {
  std::string text = colorizer.title("Machine");
  text += field("host", m.host + ", " + m.distribution + ", " + m.kernel);
  text += field("cpu", m.cpu + (m.virtual_machine ? " (virtual)" : ""));
  text += field("cores", format_text("%d, of which %d for this process; %d NUMA node%s", m.cores, m.allowed_cores,
                                     m.numa_nodes, m.numa_nodes == 1 ? "" : "s"));
  text += field("memory", format_bytes(m.memory) + ", " + format_bytes(m.available_memory) + " available; /dev/shm " +
                              format_bytes(m.dev_shm));
  text +=
      field("limits", "open files " + limit(m.open_files, false) + ", locked memory " + limit(m.locked_memory, true));
  text += field("malloc", m.malloc);
  text += field("copying", format_text("%.1f GB/s with one core", found.copy_gb_s));
  if (found.matrix_peak > 0) {
    text += field("matrix products", format_text("%.1f GFLOP/s of float32 with one core", found.matrix_peak / 1e9));
  }
  return text;
}

std::string capabilities(const Diagnosis& found, const Colorizer& colorizer) {
  const auto yes = [&](bool is) { return is ? std::string("yes") : std::string("no"); };
  const auto& devices = found.machine.devices;
  std::string text = colorizer.title("Capabilities");
  text += field("cuda", found.cuda_devices < 0 ? "no" : std::to_string(found.cuda_devices) + " devices");
  text += field("nccl", yes(found.works("nccl")));
  text += field("gloo", yes(found.works("gloo")));
  text += field("mpi", yes(found.works("mpi")));
  text += field("cuda-aware mpi", found.cuda_aware_mpi);
  text += field("devices", devices.empty() ? "none: every rank computes on the CPU" : join(devices, ", "));
  text += field("device of a rank", "its local rank modulo the number of devices");
  text += field("nodes", found.nodes);
  text += field("started", found.launched);
  text += field("address", found.rank_address);
  return text;
}

std::string automatic(const Diagnosis& found, const Colorizer& colorizer) {
  if (found.automatic.empty()) return "";
  std::string text = colorizer.title("Backends that backend: auto chooses");
  for (const auto& row : found.automatic) {
    const bool here = row.ranks == found.automatic_here;
    text += field(row.backend, row.ranks + (here ? " (as these are): " : ": ") + row.reason);
  }
  return text;
}

std::string libraries(const Diagnosis& found, const Colorizer& colorizer) {
  std::string text = colorizer.title("Libraries");
  text += "  " + padded("", kIndent - 2) + padded("linked", 10) + padded("loaded", 10) + "from\n";
  for (const auto& library : found.libraries) {
    const std::string loaded = padded(library.loaded.empty() ? "-" : library.loaded, 10);
    const bool other = !library.loaded.empty() && library.loaded != library.linked;
    text += "  " + padded(library.name, kIndent - 2) + padded(library.linked, 10) +
            (other ? colorizer.bad(loaded) : loaded) + shortened(library.path) + "\n";
  }
  text += "  " + padded("compiler", kIndent - 2) + found.machine.compiler + "\n";
  for (const auto& built : found.torch_build) text += field("LibTorch's build", built);
  return text;
}

/// Numbers the reasons, so that the table stays narrow.
class Footnotes {
 public:
  std::string mark(const std::string& reason) {
    const auto found = std::ranges::find(reasons_, reason);
    const auto number = found - reasons_.begin() + 1;
    if (found == reasons_.end()) reasons_.push_back(reason);
    return "[" + std::to_string(number) + "]";
  }
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < reasons_.size(); ++i) text += format_text("  [%zu] ", i + 1) + wrapped(reasons_[i], 6);
    return text;
  }

 private:
  std::vector<std::string> reasons_;
};

// Removes trailing spaces.
std::string trimmed(const std::string& text) { return text.substr(0, text.find_last_not_of(' ') + 1); }

std::string table(const Diagnosis& found, const Colorizer& colorizer) {
  const std::string margin(kIndent, ' ');
  std::string names = margin, devices = margin, rows;
  Footnotes footnotes;
  for (const auto& backend : found.backends) {
    names += padded(backend.name, kCell);
    devices += padded(backend.device, kCell);
  }
  for (const auto& operation : found.operations) {
    rows += "  " + padded(operation, kIndent - 2);
    std::size_t spaces = 0;  // spaces between the previous cell and the next one
    for (const auto& backend : found.backends) {
      const std::string& status = backend.operations.at(operation);
      const std::string cell = status == "ok" ? status : footnotes.mark(status);
      const auto painted = status == "ok" ? colorizer.good(cell) : colorizer.bad(cell);
      rows += std::string(spaces, ' ') + painted;
      spaces = kCell - cell.size();
    }
    rows += "\n";
  }
  return colorizer.title("Operations, each run on 2 ranks with its result checked") + trimmed(names) + "\n" +
         colorizer.faint(trimmed(devices)) + "\n" + rows + footnotes.text();
}

std::string kernels(const Diagnosis& found, const Colorizer& colorizer) {
  std::string text =
      colorizer.title("Kernels for the CPU with kernels: auto (vector instructions: " + found.vectors + ")");
  for (const auto& row : found.kernels) {
    text += field(row.code, row.operators + " (" + row.tensors + "): " + row.reason);
  }
  return text;
}

std::string links(const Diagnosis& found, const Colorizer& colorizer) {
  std::string text = colorizer.title("Links");
  for (const auto* link :
       {found.cores.empty() ? nullptr : &found.cores.front(), found.cores.size() < 2 ? nullptr : &found.cores.back()}) {
    if (link == nullptr) continue;
    text += field(
        link == &found.cores.front() ? "nearest cores" : "farthest cores",
        format_text("%d and %d: round trip of a cache line %.0f ns", link->first, link->second, link->round_trip_ns));
  }
  for (const auto& backend : found.backends) {
    if (backend.round_trip_us <= 0) continue;
    text += field(backend.name, format_text("round trip %.2f us; 16 MB: messages %.2f GB/s, all_reduce %.2f GB/s",
                                            backend.round_trip_us, backend.message_gb_s, backend.all_reduce_gb_s));
  }
  return text;
}

std::string algorithms(const Diagnosis& found, const Colorizer& colorizer) {
  std::string text = colorizer.title("Algorithms over send and recv");
  for (const auto& [operation, all] : found.algorithms) {
    std::vector<std::string> names;
    for (const auto& algorithm : all) names.push_back(algorithm.name);
    text += field(operation, join(names, ", "));
  }
  return text;
}

std::string notes(const Diagnosis& found, const Colorizer& colorizer) {
  std::string text = colorizer.title("Notes");
  for (const auto& note : found.notes) text += "  - " + wrapped(note, 4);
  return found.notes.empty() ? text + "  none\n" : text;
}

}  // namespace

std::string to_text(const Diagnosis& found, bool color) {
  const Colorizer colorizer(color);
  const std::string text = machine(found.machine, found, colorizer) + capabilities(found, colorizer) +
                           automatic(found, colorizer) + libraries(found, colorizer) + table(found, colorizer) +
                           kernels(found, colorizer) + links(found, colorizer) + algorithms(found, colorizer) +
                           notes(found, colorizer);
  return text.substr(text.find_first_not_of("\n"));
}

}  // namespace phalanx::doctor
