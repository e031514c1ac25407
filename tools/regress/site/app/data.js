// SPDX-License-Identifier: Apache-2.0
// The pages of nightly runs. The data are scripts, because a page that was opened from disk may not read other files.
"use strict";

const received = new Map();  // values by name, as promises
const expected = new Map();  // functions that take a value that was asked for, by name

// Called by the data files.
function receive(name, value) {
  const take = expected.get(name);
  expected.delete(name);
  if (take) take(value);
}

// Returns a promise of the value of data/NAME.js. It is rejected if there is no such file.
function load(name) {
  if (received.has(name)) return received.get(name);
  const promise = new Promise((resolve, reject) => {
    const script = document.createElement("script");
    expected.set(name, resolve);
    script.src = `data/${name}.js?${forgotten}`;
    script.onload = () => script.remove();
    script.onerror = () => {
      script.remove();
      received.delete(name);
      reject(new Error(`This report has no ${name.replace("/", " ").replace("s ", " ")}.`));
    };
    document.head.append(script);
  });
  received.set(name, promise);
  return promise;
}

let forgotten = 0;  // part of addresses, so that a browser does not use a file that it has kept

// Makes load() read everything again.
function forget() {
  received.clear();
  ++forgotten;
}

// Makes an element. Properties that begin with "on" are listeners, others are attributes; children may be texts.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""));
  return element;
}

const about = (...children) => make("p", { class: "about" }, children);
const note = text => text ? make("p", { class: "note" }, text) : null;

function section(title, ...children) {
  const content = children.flat(Infinity).filter(child => child);
  return content.length ? make("section", {}, make("h2", {}, title), content) : null;
}

// Returns an address of this page: link("case", 3) or link({find: "gpt"}).
function link(...parts) {
  const query = typeof parts.at(-1) === "object" ? new URLSearchParams(parts.pop()).toString() : "";
  return "#/" + parts.map(encodeURIComponent).join("/") + (query ? "?" + query : "");
}
