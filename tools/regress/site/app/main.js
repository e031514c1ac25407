// SPDX-License-Identifier: Apache-2.0
// Shows the page that the address names: "#/run/12", "#/?find=gpt". Addresses hold numbers of the database and names of
// cases, so they stay the same when nights are added.

const PAGES = { "": overviewPage, night: nightPage, case: casePage, run: runPage, compare: comparePage };

function parseAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map(decodeURIComponent);
  return { name, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

let shown = 0;       // how often a page was shown
let shownAfter = 0;  // milliseconds from the start of the navigation to the first page, with its layout

async function show({ again = false } = {}) {
  const mine = ++shown, main = document.getElementById("main"), { name, parts, query } = parseAddress();
  let page;
  try {
    if (!PAGES[name]) throw new Error(`This report has no page "${name}".`);
    page = await PAGES[name](parts, query);
  } catch (error) {
    page = { title: "Not found", content: [make("h1", {}, "Not found"), make("p", {}, error.message),
      make("p", {}, make("a", { href: "#/" }, "All nights"))] };
  }
  if (mine !== shown) return;  // another page was asked for in the meantime
  const scroll = again ? window.scrollY : 0;
  document.title = page.title;
  const trail = (page.trail ?? []).map(([kind, text, target]) =>
    make("a", { href: kind ? link(kind, target) : link(target) }, text));
  if (name) trail.push(make("b", { "aria-current": "page" }, name === "run" ? `run ${parts[0]}` : page.title));
  document.getElementById("trail").replaceChildren(...trail);
  main.replaceChildren(...page.content.flat().filter(child => child));
  if (mine === 1) {
    main.getBoundingClientRect();
    shownAfter = performance.now();
  }
  document.body.dataset.shown = String(mine);
  if (!again && mine > 1) main.focus({ preventScroll: true });
  showEnds(main);
  window.scrollTo(0, scroll);
}

if (document.body.dataset.events) listen(document.body.dataset.events);
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  document.getElementById("main").focus();
});
window.addEventListener("hashchange", () => show());
show();
