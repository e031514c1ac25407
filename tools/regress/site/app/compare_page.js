// SPDX-License-Identifier: Apache-2.0
// The comparison of two runs.

const runHead = data => make("a", { href: link("run", data.id) }, `run ${data.id}`);

const changeCell = (metric, before, after) => tinted(metric, before, after, percent(before, after));

function metricComparison(a, b) {
  const metrics = [...new Set([...Object.keys(a.metrics), ...Object.keys(b.metrics)])];
  return makeTable([
    { title: "metric", value: metric => metricTitle(metric) },
    { title: `run ${a.id}`, value: metric => a.metrics[metric], cell: metric => metricText(metric, a.metrics[metric]) },
    { title: `run ${b.id}`, value: metric => b.metrics[metric], cell: metric => metricText(metric, b.metrics[metric]) },
    { title: "change", value: metric => b.metrics[metric] / a.metrics[metric],
      cell: metric => changeCell(metric, a.metrics[metric], b.metrics[metric]) },
  ], metrics, "Metrics of both runs");
}

function stepTimeComparison(a, b) {
  if (!a.step_time || !b.step_time) return null;
  const rowsOf = data => [...data.step_time.phases, data.step_time.own_work, data.step_time.whole];
  const other = new Map(rowsOf(b).map(row => [row[0], row]));
  return makeTable([
    { title: "phase", value: row => row[0] },
    { title: `run ${a.id}`, value: row => row[1], cell: row => duration(row[1]) },
    { title: `run ${b.id}`, value: row => other.get(row[0])?.[1], cell: row => duration(other.get(row[0])?.[1]) },
    { title: "change", value: row => (other.get(row[0])?.[1] ?? NaN) / row[1],
      cell: row => changeCell("run/seconds", row[1], other.get(row[0])?.[1]) },
  ], rowsOf(a), "Time of a step of both runs");
}

function differences(title, a, b, names) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(key => a[key] !== b[key]);
  if (!keys.length) return null;
  const columns = [a, b].map((run, i) => ({ title: names[i], value: key => run[key] ?? "", left: true, wrap: true }));
  return makeTable([{ title, value: key => key }, ...columns], keys, `Differences of ${title}`);
}

async function comparePage([first, second]) {
  const overview = await load("overview"), [a, b] = await Promise.all([load(`runs/${first}`), load(`runs/${second}`)]);
  const configs = await Promise.all([a, b].map(run => run.config ? load(`configs/${run.config}`) : {}));
  const names = [a, b].map(run => `run ${run.id}`);
  const environments = [a, b].map(run => Object.fromEntries([...environmentRows(run),
    ["commit", findNight(overview, run.night).night[3]]]));
  const line = data => {
    const { night } = findNight(overview, data.night);
    const facts = [data.name, exitText(data.exit), time(night[1]), `commit ${shortCommit(night[3])}`];
    return about(runHead(data), ": " + facts.join(", "));
  };
  const same = about("The configs are the same.");
  return { title: `Runs ${first} and ${second}`, trail: [["case", a.name, a.case]], content: [
    make("h1", {}, a.name === b.name ? `${a.name}: two runs` : `${a.name} and ${b.name}`), line(a), line(b),
    make("p", {}, make("a", { href: link("compare", second, first) }, "Swap them")),
    section("Results", metricComparison(a, b)),
    section("Curves", curveCharts([{ name: names[0], data: a }, { name: names[1], data: b }])),
    section("Time of a step", stepTimeComparison(a, b)),
    section("Config differences", differences("config", ...configs, names) ?? same),
    section("Environment differences", differences("environment", ...environments, names))] };
}
