// SPDX-License-Identifier: Apache-2.0
// How values are shown.

const STATES = {
  p: ["passed", "✓"], f: ["failed", "✗"], e: ["error", "!"], s: ["skipped", "–"], q: ["quarantined", "q"],
  r: ["running", "▸"], l: ["planned", "·"], "?": ["unknown", "?"], ".": ["not in this night", ""],
};
const letterOf = state => Object.keys(STATES).find(letter => STATES[letter][0] === state) ?? "?";
const badge = state => make("span", { class: `state ${letterOf(state)}` }, state);

// Formats are made once, because making one takes longer than using it.
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short" });
const timeFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit",
  minute: "2-digit" });
const day = seconds => dayFormat.format(new Date(seconds * 1000));
const time = seconds => timeFormat.format(new Date(seconds * 1000));
const shortCommit = commit => commit.slice(0, 9);

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1e-3) return number(seconds * 1e6) + " µs";
  if (seconds < 1) return number(seconds * 1e3) + " ms";
  if (seconds < 60) return number(seconds) + " s";
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
  if (whole < 3600) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function number(value) {
  if (value === null || value === undefined) return "none";
  if (Math.abs(value) >= 1e6) return Number((value / 1e6).toPrecision(4)) + " M";
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) value /= 1024, ++unit;
  return Number(value.toPrecision(4)) + " " + units[unit];
}

// A metric is called SPLIT/NAME. Those of "run" are about the whole run, and those of "case" compare runs of the case.
const metricTitle = metric => metric.replace(/^(run|case)\//, "").replace("/", " ").replaceAll("_", " ");
const metricName = metric => metric.slice(metric.indexOf("/") + 1);

function metricText(metric, value) {
  if (value === null || value === undefined) return "none";
  const name = metricName(metric);
  if (/memory|^bytes/.test(name)) return bytes(value);
  if (name === "accuracy") return Number((100 * value).toPrecision(4)) + " %";
  if (/throughput|samples_per_second/.test(name)) return number(value) + " samples/s";
  if (/seconds$/.test(name)) return duration(value);
  return number(value);
}

// Returns a text in the color of a change for the better or the worse.
const tinted = (metric, before, after, text) => make("span", { class: verdict(metric, before, after) || null }, text);

// Returns what is known about the tree from which a night was built.
const treeOf = night => `commit ${night[3]}` + (night[4] ? " with changes that are not committed" : "");

// Returns a short text of a value, for the axis of a chart.
function axisText(metric) {
  const name = metricName(metric);
  if (/memory|^bytes/.test(name)) return value => bytes(Number(value.toPrecision(3)));
  return name === "accuracy" ? value => `${Number((100 * value).toPrecision(3))} %` : shortNumber;
}

// Returns 1 if higher values of a metric are better, -1 if lower ones are, and 0 if that is unknown.
function better(metric) {
  const name = metricName(metric);
  if (/accuracy|throughput|samples_per_second|efficiency|auc|precision|recall|ndcg|f1/.test(name)) return 1;
  return /loss|seconds|memory|bytes|collectives|error|mse|perplexity/.test(name) ? -1 : 0;
}

function percent(before, after) {
  if (!before || after === null || after === undefined) return "";
  const change = 100 * (after / before - 1);
  return (change > 0 ? "+" : "") + Number(change.toPrecision(2)) + " %";
}

// Returns the class of a change of a metric: "good", "worse", or none where it cannot be told or is below one percent.
function verdict(metric, before, after) {
  if (Math.abs(after / before - 1) < 0.01) return "";
  const sign = Math.sign(after - before) * better(metric);
  return sign > 0 ? "good" : sign < 0 ? "worse" : "";
}
