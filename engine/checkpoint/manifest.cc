// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/manifest.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/storage/crc32c.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kEnd = "\"\n}\n";
constexpr std::string_view kChecksum = ",\n  \"crc32c\": \"";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kTail = kChecksum.size() + kDigits + kEnd.size();

std::string hex(std::uint32_t crc) {
  char text[kDigits + 1];
  std::snprintf(text, sizeof(text), "%08x", crc);
  return text;
}

std::uint32_t unhex(const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)); }

Json strings(const Manifest::Strings& strings) {
  Json json = Json::object();
  for (const auto& [key, value] : strings) json[key] = value;
  return json;
}

Manifest::Strings strings(const Json& json) {
  Manifest::Strings strings;
  for (const auto& [key, value] : json.items()) strings.emplace_back(key, value.get<std::string>());
  return strings;
}

// JSON has no NaN.
Json metrics(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
  return json;
}

Metrics metrics(const Json& json) {
  Metrics metrics;
  for (const auto& [name, value] : json.items()) {
    metrics.emplace_back(name, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return metrics;
}

Json files(const std::vector<FileRecord>& files) {
  Json json = Json::array();
  for (const auto& file : files)
    json.push_back({{"name", file.name}, {"bytes", file.bytes}, {"crc32c", hex(file.crc)}});
  return json;
}

std::vector<FileRecord> files(const Json& json) {
  std::vector<FileRecord> files;
  for (const auto& file : json) {
    files.push_back({file.at("name"), file.at("bytes"), unhex(file.at("crc32c").get<std::string>())});
  }
  return files;
}

Manifest from_json(const Json& json) {
  const auto& position = json.at("position");
  return {.position = {.step = json.at("step"),
                       .epoch = position.at("epoch"),
                       .batch = position.at("batch"),
                       .samples = position.value("samples", std::int64_t{-1})},
          .ranks = json.at("ranks"),
          .updates = json.at("updates"),
          .identity = strings(json.at("identity")),
          .strategy = json.value("strategy", std::string()),
          .metrics = metrics(json.at("readings")),
          .tested_at = json.at("tested_at"),
          .config = json.value("config", std::string()),
          .provenance = strings(json.at("provenance")),
          .files = files(json.at("files"))};
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  Json position{{"epoch", manifest.position.epoch}, {"batch", manifest.position.batch}};
  if (manifest.position.samples >= 0) position["samples"] = manifest.position.samples;
  const Json json{{"format", kFormat},
                  {"step", manifest.position.step},
                  {"position", position},
                  {"ranks", manifest.ranks},
                  {"updates", manifest.updates},
                  {"identity", strings(manifest.identity)},
                  {"strategy", manifest.strategy},
                  {"readings", metrics(manifest.metrics)},
                  {"tested_at", manifest.tested_at},
                  {"config", manifest.config},
                  {"provenance", strings(manifest.provenance)},
                  {"files", files(manifest.files)}};
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  return text + std::string(kChecksum) + hex(crc32c(text.data(), text.size())) + std::string(kEnd);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  if (text.size() < kTail || !text.ends_with(kEnd)) throw DataError(path + ": is truncated, or damaged at its end");
  const std::string body = text.substr(0, text.size() - kTail);
  const std::string tail = std::string(kChecksum) + hex(crc32c(body.data(), body.size())) + std::string(kEnd);
  if (text.substr(body.size()) != tail) throw DataError(path + ": is damaged: its checksum does not match");
  try {
    const Json json = parse_json(text, path).raw();
    const auto format = json.at("format").get<int>();
    if (format != kFormat) {
      throw DataError(path + ": has format " + std::to_string(format) + ", but this program reads format " +
                      std::to_string(kFormat));
    }
    return from_json(json);
  } catch (const DataError&) {
    throw;
  } catch (const std::exception& error) {
    throw DataError(path + ": " + error.what());
  }
}

}  // namespace phalanx
