// SPDX-License-Identifier: Apache-2.0
// Jobs that are running, where `phalanx dashboard` serves the page. It sends their state as server-sent events.

let jobs = null;  // null: this page is not served by the dashboard

function rankTable(job) {
  return makeTable([
    { title: "rank", value: row => row.rank },
    { title: "own work", value: row => row.own_work, cell: row => duration(row.own_work) },
    ...job.phases.map((phase, i) => (
      { title: phase, value: row => row.seconds[i], cell: row => duration(row.seconds[i]) })),
  ], job.ranks, `Ranks of ${job.name}`);
}

function jobCard(job) {
  const share = job.steps
    ? make("progress", { max: String(job.steps), value: String(job.step), "aria-label": "progress" }) : null;
  const facts = [job.steps ? `step ${job.step} of ${job.steps}` : `step ${job.step}`,
    metricText("run/throughput", job.throughput),
    ...job.metrics.map(([name, value]) => `${name.replace("/", " ")} ${metricText(name, value)}`),
    `measured ${duration(Math.max(0, Math.round(job.age)))} ago`];
  const remember = event => event.target.open ? openJobs.add(job.folder) : openJobs.delete(job.folder);
  return make("article", { class: "job" }, make("h3", {}, job.name), about(job.folder),
    share, make("p", {}, facts.join(" · ")), job.straggler ? make("p", {}, job.straggler) : null,
    job.waits.map(note), make("details", { class: "small", open: openJobs.has(job.folder), ontoggle: remember },
      make("summary", {}, `${job.ranks.length} ranks`), rankTable(job)));
}

const openJobs = new Set();

// Returns the section of running jobs, which follows the events while it is on the page.
function runningNow() {
  if (jobs === null) return null;
  const place = make("section", { id: "running" });
  fillRunning(place);
  return place;
}

function fillRunning(place) {
  const content = jobs.length ? jobs.map(jobCard) : [about("No job is running.")];
  place.replaceChildren(make("h2", {}, "Running now"), ...content);
}

function listen(address) {
  jobs = [];
  const events = new EventSource(address);
  events.addEventListener("jobs", event => {
    jobs = JSON.parse(event.data);
    const place = document.getElementById("running");
    if (place && !place.contains(document.activeElement)) fillRunning(place);
  });
  events.addEventListener("site", () => {
    forget();
    if (!document.activeElement?.matches("input, select")) show({ again: true });
  });
}
