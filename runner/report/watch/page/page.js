// Asks for the state once a second and shows it. Names of columns and parties are text, never markup.
"use strict";

const INTERVAL = 1000;
const SVG = "http://www.w3.org/2000/svg";
const WORDS = { running: "running", finished: "finished", ended: "ended without results", "nothing yet": "no run yet" };
const UNKNOWN = "not known here";
const MAX_LETTERS = 26;
const MAX_LEVEL = 12; // columns whose names are not turned
const MAX_LINE = 14; // letters of such a name on one line
const MANY = 40; // pairs whose lines are drawn lighter
const $ = (id) => document.getElementById(id);
let seen = new Set();

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shape(name, attributes, className, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (className) made.setAttribute("class", className);
  if (text !== undefined) made.textContent = text;
  return made;
}

function bytes(count) {
  if (count < 1e5) return `${(count / 1e3).toFixed(1)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(2)} MB` : `${(count / 1e9).toFixed(2)} GB`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

function short(number) {
  return Number(number.toPrecision(3)).toString();
}

function phases(state) {
  const items = state.phases.filter((phase) => phase.name !== "align" || phase.events || state.phase === "align");
  $("phases").replaceChildren(...items.map((phase) => {
    const current = phase.name === state.phase && state.state === "running";
    const past = state.state === "finished" || (phase.events > 0 && !current);
    const item = element("li", phase.name, current ? "now" : past ? "done" : "");
    if (current) item.setAttribute("aria-current", "step");
    return item;
  }));
}

// A long name as two lines, cut at a word within it that begins near its middle.
function lines(name) {
  if (name.length <= MAX_LINE) return [name];
  const places = [...name.matchAll(/(?<=[_\s.-])(?=\S)|(?<=[a-z0-9])(?=[A-Z])/g)].map((match) => match.index);
  const middle = Math.ceil(name.length / 2), far = (place) => Math.abs(place - middle);
  const cut = places.filter((place) => far(place) <= middle / 2).sort((one, other) => far(one) - far(other))[0] ?? middle;
  return [name.slice(0, cut), name.slice(cut)];
}

function graph(state) {
  const columns = state.study.columns || [];
  const tied = new Map();
  for (const [one, other, count] of state.edges) {
    tied.set(one, (tied.get(one) || 0) + count);
    tied.set(other, (tied.get(other) || 0) + count);
  }
  $("graph").toggleAttribute("hidden", columns.length === 0);
  const level = columns.length <= MAX_LEVEL;
  const short = (name) => (name.length > MAX_LETTERS ? `${name.slice(0, MAX_LETTERS - 1)}…` : name);
  const labels = new Map(columns.map((name) => [name, level ? lines(short(name)) : [short(name)]]));
  const letters = Math.max(6, ...[...labels.values()].flat().map((line) => line.length));
  const radius = columns.length > 30 ? 150 : columns.length > 20 ? 135 : 115, room = 20 + 7.6 * letters; // for labels
  const width = 2 * (radius + room), height = 2 * (radius + (level ? 36 : room));
  const place = new Map(columns.map((name, number) => {
    const angle = (2 * Math.PI * number) / Math.max(columns.length, 1) - Math.PI / 2;
    return [name, [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle), angle]];
  }));
  const fresh = new Set();
  const parts = state.edges.filter(([one, other]) => place.has(one) && place.has(other)).map(([one, other, count]) => {
    const [x1, y1] = place.get(one), [x2, y2] = place.get(other), key = JSON.stringify([one, other]);
    fresh.add(key);
    return shape("line", { x1, y1, x2, y2, "stroke-width": Math.min((state.edges.length > MANY ? 0.4 : 1.2) + count, 6) }, seen.size && !seen.has(key) ? "new" : "");
  });
  seen = fresh;
  for (const [name, [x, y, angle]] of place) {
    parts.push(shape("circle", { cx: x, cy: y, r: columns.length > 30 ? 3 : 5 }, tied.has(name) ? "tied" : ""));
    const label = labels.get(name), across = Math.cos(angle), right = across >= 0;
    if (level) {
      const anchor = Math.abs(across) < 0.2 ? "middle" : right ? "start" : "end", more = 14 * (label.length - 1);
      const beside = anchor === "middle" ? 0 : right ? 10 : -10;
      const below = anchor !== "middle" ? 4 - more / 2 : Math.sin(angle) < 0 ? -11 - more : 20;
      label.forEach((line, number) => parts.push(shape("text", { x: x + beside, y: y + below + 14 * number, "text-anchor": anchor }, "", line)));
      continue;
    }
    const turn = (angle * 180) / Math.PI + (right ? 0 : 180);
    parts.push(shape("text", {
      x: right ? 10 : -10, y: 4, "text-anchor": right ? "start" : "end", transform: `translate(${x} ${y}) rotate(${turn})`,
    }, "", label[0]));
  }
  $("graph").setAttribute("viewBox", `0 0 ${width} ${height}`);
  $("graph").setAttribute("class", state.edges.length > MANY ? "many" : "");
  $("graph").replaceChildren(...parts);
  const pairs = state.edges.length;
  const counted = state.tells_rounds ? `${pairs} ${pairs === 1 ? "pair" : "pairs"} counted together` : `which are counted together is ${UNKNOWN}: ${state.study.leader} tells of it`;
  if (columns.length) $("caption").textContent = `${columns.length} columns, ${counted}.`;
}

function selected(state) {
  const items = [...state.selected].reverse().map((entry) => {
    const item = element("li", entry.columns.join(" × "));
    item.value = entry.round;
    return item;
  });
  $("selected").replaceChildren(...items);
  $("none").hidden = items.length > 0;
  $("none").textContent = state.tells_rounds ? (state.state === "finished" ? "Nothing." : "Nothing yet.") : `This is ${UNKNOWN} until the results are: ${state.study.leader} leads.`;
}

function parties(state) {
  $("parties").replaceChildren(...state.parties.map((party) => {
    const row = element("tr");
    const now = party.done ? "has its results" : party.waits_for.length ? `waits for ${party.waits_for.join(", ")}` : party.told ? party.phase : UNKNOWN;
    row.append(element("td", party.name), element("td", party.computes ? "computes" : "contributes"), element("td", now),
      element("td", party.told && party.sent !== null && party.sent !== undefined ? bytes(party.sent) : UNKNOWN, "number"));
    return row;
  }));
}

function show(state) {
  const study = state.study;
  $("state").textContent = WORDS[state.state];
  $("state").className = state.state;
  if (study.study) {
    document.title = `${study.study}: ${WORDS[state.state]}`;
    $("study").textContent = study.study;
    const delta = study.delta < 1e-3 ? study.delta.toExponential().replace("-", "\u2011") : study.delta;
    $("what").textContent = `${study.algorithm} on ${study.backend}, ${study.parties.length} parties, epsilon\u00a0${study.epsilon}, delta\u00a0${delta}`;
    const hears = state.rho_cap > 0 || state.parties.some((party) => party.told && party.computes);
    $("epsilon").textContent = hears ? `${short(state.epsilon)} of ${study.epsilon}` : UNKNOWN;
    $("round").textContent = state.round ? (state.rounds ? `${state.round} of ${state.rounds}` : `${state.round}`) : hears ? "–" : UNKNOWN;
  }
  $("waiting").hidden = state.state !== "running" || state.waited_for.length === 0;
  $("waiting").textContent = `Waiting for ${state.waited_for.join(", ")}.`;
  const left = state.state === "running" && state.left_s !== null ? `, about ${duration(state.left_s)} left` : "";
  $("time").textContent = state.t ? `${duration(state.t)}${left}` : "–";
  const known = state.parties.filter((party) => party.told && typeof party.sent === "number");
  $("by").textContent = known.length === state.parties.length || !known.length ? "Sent by all" : `Sent by ${known.map((party) => party.name).join(", ")}`;
  $("bytes").textContent = known.length ? bytes(known.reduce((sum, party) => sum + party.sent, 0)) : study.study ? UNKNOWN : "–";
  const percent = state.rho_cap ? Math.min(100, (100 * state.rho) / state.rho_cap) : 0;
  $("spent").style.width = `${percent}%`;
  $("meter").setAttribute("aria-valuenow", percent.toFixed(0));
  $("verdict").hidden = !state.verdict;
  $("verdict").textContent = state.verdict || "";
  $("warnings").replaceChildren(...(state.warnings || []).map((text) => element("p", text, "warning")));
  phases(state);
  graph(state);
  selected(state);
  parties(state);
  if (state.state === "finished" && state.report && !document.querySelector("#what a")) {
    const link = element("a", "the report");
    link.href = "report.html";
    $("what").append("; ", link);
  }
}

async function ask() {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const state = await answer.json();
    show(state);
  } catch (error) {
    if ($("state").className !== "finished") {
      $("state").textContent = "the run's program is gone";
      $("state").className = "lost";
    }
  }
  setTimeout(ask, INTERVAL);
}

ask();
