// SPDX-License-Identifier: Apache-2.0
// The page of one run.

const parsed = text => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

// Returns the curves of runs as charts, one for each metric: `runs` are {name, data}. With one run, its splits are the
// series of a chart; with several, the runs are.
function curveCharts(runs) {
  const keys = [...new Set(runs.flatMap(run => Object.keys(run.data.curves ?? {})))];
  const title = { samples_per_second: "throughput", learning_rate: "learning rate" };
  const titleOf = key => title[metricName(key)] ?? metricName(key).replaceAll("_", " ");
  const textOf = key => value => metricText(key, value);
  if (runs.length > 1) {
    const wanted = keys.filter(key => !/^(validation|test)\/(samples_per_second|learning_rate)/.test(key));
    return charts(wanted.map(key => drawChart({
      title: `${key.split("/")[0]} ${titleOf(key)}`, text: textOf(key), axis: axisText(key),
      series: runs.map(run => ({ name: run.name, points: run.data.curves?.[key] ?? [] })) })));
  }
  const names = [...new Set(keys.map(metricName))];
  return charts(names.map(name => {
    const splits = ["train", "validation", "test"].filter(split => keys.includes(`${split}/${name}`));
    const drawn = /samples_per_second|learning_rate/.test(name) ? splits.slice(0, 1) : splits;
    return drawChart({ title: titleOf(`x/${name}`), text: textOf(`x/${name}`), axis: axisText(`x/${name}`),
      stretches: runs[0].data.stretches,
      series: drawn.map(split => ({ name: split, points: runs[0].data.curves[`${split}/${name}`] })) });
  }));
}

function stepTime(data) {
  if (!data.step_time) return null;
  const { phases, own_work: work, whole, straggler } = data.step_time;
  const by = (seconds, rank) => `${duration(seconds)} · rank ${rank}`;
  const rows = [...phases, work, whole];
  const bar = make("div", { class: "share", "aria-hidden": "true" },
    phases.map((phase, i) => make("i", { class: `s${i}`, style: `flex:${phase[1] * 1e3}` })));
  const legend = make("div", { class: "legend" },
    phases.map((phase, i) => make("span", { class: `s${i}` }, make("i"), phase[0])));
  const table = makeTable([
    { title: "phase", value: row => row[0] }, { title: "mean", value: row => row[1], cell: row => duration(row[1]) },
    { title: "share", value: row => row[1], cell: row => `${Math.round(100 * row[1] / whole[1])} %` },
    { title: "least", value: row => row[2], cell: row => by(row[2], row[3]) },
    { title: "most", value: row => row[4], cell: row => by(row[4], row[5]) },
  ], rows, "Time of a step by phase");
  const curve = drawChart({ title: "time of a step", unit: " ms", stacked: true, stretches: data.stretches,
    series: phases.map(([name]) => ({ name, points: data.phases?.[name] ?? [] })) });
  const calm = !straggler.includes("is the straggler");
  return [bar, legend, table, make("p", { class: `note${calm ? " calm" : ""}` }, straggler + "."), charts([curve])];
}

function wordsTable(rows, caption) {
  const given = rows.filter(([, value]) => value !== "" && value !== null);
  const body = make("tbody", {}, given.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value))));
  return make("div", { class: "wide", role: "region", "aria-label": caption }, make("table", { class: "words" }, body));
}

function environmentRows(data) {
  const rows = [["config", data.config_file], ["overrides", [parsed(data.overrides)].flat().join(" ")],
    ["ranks", String(data.ranks)], ["hosts", String(data.hosts)]];
  if (!data.environment) return rows;
  const { hardware, cores, hosts, versions } = data.environment;
  rows.push(["hardware", `${hardware}, ${cores} cores`], ["host names", [parsed(hosts)].flat().join(", ")]);
  const all = parsed(versions);
  if (typeof all === "object") rows.push(...Object.entries(all).map(([name, version]) => [name, String(version)]));
  return rows;
}

const artefactList = artefacts => artefacts?.length ? make("ul", {}, artefacts.map(([name, href]) =>
  make("li", {}, href ? make("a", { href }, name) : `${name} (no longer there)`))) : null;

// Returns the runs of a case that can be compared, newest first: [[number, text]].
async function runsOfCase(overview, id) {
  const { metrics } = await load(`cases/${id}`), runs = new Map();
  for (const nights of Object.values(metrics)) {
    for (const [night, values] of nights) values.forEach(([run]) => runs.set(run, findNight(overview, night).night));
  }
  return [...runs].sort(([a], [b]) => b - a)
    .map(([run, night]) => [run, `run ${run}, ${day(night[1])}, ${shortCommit(night[3])}`]);
}

function compareForm(run, others) {
  const choices = others.filter(([other]) => other !== run);
  if (!choices.length) return null;
  const before = choices.find(([other]) => other < run) ?? choices[0];
  const input = make("select", { "aria-label": "another run" }, choices.map(([other, text]) =>
    make("option", { value: String(other), selected: other === before[0] }, text)));
  return make("form", { class: "filters", onsubmit: event => {
    event.preventDefault();
    location.hash = link("compare", String(run), input.value);
  } }, make("label", {}, "Compare with", input), make("button", {}, "Compare"));
}

async function runPage([id]) {
  const overview = await load("overview"), data = await load(`runs/${id}`);
  const { suite, night } = findNight(overview, data.night), others = await runsOfCase(overview, data.case);
  const metrics = Object.entries(data.metrics);
  const keyMetrics = data.key_metrics ??
    metrics.map(([metric, value]) => [metricTitle(metric), metricText(metric, value)]);
  const trail = [["", suite.name, { suite: suite.name }], ["case", data.name, data.case],
    ["night", day(night[1]), night[0]]];
  return { title: `${data.name}, run ${id}`, trail, content: [
    make("h1", {}, data.name, " ", badge(data.state)),
    data.subject ? make("p", { class: "subject" }, data.subject) : null,
    about(`Run ${id} of `, make("a", { href: link("night", night[0]) }, time(night[1])),
      `, commit ${shortCommit(night[3])}: ${exitText(data.exit)}, ${startText(data)}, ${duration(data.seconds)}`),
    [...new Set([data.reason, data.error, data.problem])].map(note),
    tiles(keyMetrics.slice(0, 10).map(([name, text]) => [text, name])), compareForm(data.id, others),
    section("Expectations", data.expectations.length ? expectationTable(data.expectations) : null),
    section("Curves", curveCharts([{ name: `run ${id}`, data }])),
    section("Where the time of a step goes", stepTime(data)),
    section("Stalls", stallList(data.stalls)), section("Logs", logTails(data.logs)),
    section("Environment", wordsTable(environmentRows(data), "Environment")),
    section("Files", artefactList(data.artefacts))] };
}
