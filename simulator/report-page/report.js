// The report page: draws one recording, or compares two.
//
// Its data are recordings (recording.json, with the `words` that the simulator also prints on a terminal) and a
// vocabulary: figures, waits, checkers and kinds of events. Names in recordings may hold anything, so they only become
// text nodes. With two recordings, each chart is drawn for A and for B on the same axes.
"use strict";

const vocabulary = JSON.parse(document.getElementById("vocabulary").textContent);

// The largest numbers of things that are shown at once.
const RESOURCES = 12, NODES = 24, CLIENTS = 9, SHORTAGES = 10, CHANGES = 12, EVENTS = 300, COLUMNS = 700;
// A smaller part of its wants is no shortage; a smaller part of a value is no difference.
const NEGLIGIBLE = 0.005, SAME = 0.001;

// ---------------------------------------------------------------------------------------------- elements and numbers

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null));
  return element;
}

// A table in a card. Columns are [title, class of the cells, explanation].
function table(columns, rows, classes = "") {
  const head = columns.map(([title, kind, about]) => make("th", { class: kind, title: about }, title));
  const cell = (value, index) => {
    const [title, kind] = columns[index];
    return make("td", { class: kind, "data-of": kind === "n" ? title : undefined }, value);
  };
  const body = rows.map((row) => make("tr", {}, row.map(cell)));
  const parts = [make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)];
  return make("div", { class: "card" }, make("table", { class: `stacks ${classes}` }, parts));
}

// Shows so many children of an element, and the others when a button is pressed.
function fold(element, list, shown) {
  [...list.children].slice(shown).forEach((child) => child.classList.add("folded"));
  if (list.children.length <= shown) return element;
  const button = make("button", { onclick: () => { element.classList.add("unfolded"); button.remove(); } });
  button.append(`Show all ${list.children.length}`);
  return [element, button];
}

const several = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const two = (number) => String(number).padStart(2, "0");

function clock(seconds) {
  const tenths = Math.round(seconds * 10), whole = Math.floor(tenths / 10);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, two(whole % 60)];
  if (hours) return `${hours}:${two(minutes)}:${rest}`;
  return `${minutes}:${rest}${tenths % 10 ? `.${tenths % 10}` : ""}`;
}

function duration(seconds) {
  if (seconds < 0.9995) return seconds === 0 ? "0 s" : seconds < 0.0005 ? "< 1 ms" : `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  const units = [["d", Math.floor(whole / 86400)], ["h", Math.floor(whole / 3600) % 24], ["min", Math.floor(whole / 60) % 60], ["s", whole % 60]];
  const first = units.findIndex(([, value]) => value);
  return units.slice(first, first + 2).filter(([, value]) => value).map(([unit, value]) => `${value} ${unit}`).join(" ");
}

function percent(part) {
  const value = part * 100, size = Math.abs(value);
  if (size > 1e-7 && size < 0.005) return value > 0 ? "< 0.01 %" : "> -0.01 %";
  // A value close to 100 % gets more digits, so that it does not look like 100 %.
  let digits = size < 10 ? 2 : 1;
  const away = Math.abs(value - 100);
  while (digits < 4 && away > 1e-7 && away < 0.51 * 10 ** -digits) digits++;
  return `${value.toLocaleString("en", { maximumFractionDigits: digits })} %`;
}

function measured(value) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e15)) return value.toExponential(2);
  const digits = [1000, 100, 10, 1].findIndex((bound) => size >= bound);
  return value.toLocaleString("en", { maximumFractionDigits: digits < 0 ? 4 : digits });
}

function show(unit, value) {
  if (!Number.isFinite(value)) return "–";
  switch (unit) {
    case "part": return percent(value);
    case "points": return value > 0 && value < 5e-5 ? "< 0.01" : (value * 100).toFixed(2);
    case "seconds": return duration(value);
    case "per_minute": return `${measured(value)} /min`;
    default: return measured(value);
  }
}

// ------------------------------------------------------------------------------------------------------- comparisons

const valueOf = (figure, resource) => figure.key.split("/").slice(1).reduce((value, key) => value?.[key], resource.figures);
const isSame = (a, b) => Math.abs(a - b) <= Math.max(SAME * Math.max(Math.abs(a), Math.abs(b)), 1e-9);

// The better side of a figure; empty: neither.
function better(figure, a, b) {
  const cost = { higher: (value) => -value, lower: (value) => value, lower_above_one: (value) => Math.max(value, 1) }[figure.better];
  if (!cost || !Number.isFinite(a) || !Number.isFinite(b) || isSame(cost(a), cost(b))) return "";
  return cost(a) < cost(b) ? "A" : "B";
}

function difference(unit, a, b) {
  const by = Math.abs(b - a);
  if (!Number.isFinite(a) || !Number.isFinite(b) || isSame(a, b) || (unit === "points" && by < 5e-5)) return "=";
  const text = show(unit === "per_minute" ? "number" : unit, by);
  const shown = { part: text.replace("%", "points"), points: `${text} points` }[unit] ?? text;
  return `${b > a ? "+" : "−"}${shown}`;
}

// The conditions in which two recordings differ, each as a sentence.
function differences([a, b]) {
  const conditions = [a, b].map(({ recording }) => new Map(recording.words?.conditions));
  const names = new Set(conditions.flatMap((of) => [...of.keys()]));
  const texts = [...names].map((name) => [name, ...conditions.map((of) => of.get(name) ?? "none")]);
  const lines = texts.filter(([, left, right]) => left !== right).map(([name, left, right]) => `${name}: A ${left}, B ${right}`);
  const isSameRun = a.recording.trace_hash === b.recording.trace_hash;
  return isSameRun ? [...lines, "none: A and B have the same trace, so they are the same run"] : lines;
}

const satisfaction = (client) => (client.wanted > 0 ? client.got / client.wanted : 1);

// ------------------------------------------------------------------------------------------------ parts of the report

const isBroken = (verdict) => verdict.limit !== null && !verdict.holds;
const checkerOf = (verdict) => vocabulary.checkers.find(({ name }) => name === verdict.checker);
const pill = (tone, text) => make("span", { class: `pill ${tone}` }, text);
const toneOf = (words) => ({ fine: "good", violated: "bad" })[words?.outcome] ?? "";
const letter = (side) => (side.letter ? make("span", { class: "letter" }, side.letter) : null);

// A time in text: pressed, it puts the cursor of all charts there.
function timeLink(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const go = () => {
    pin(seconds);
    document.querySelector(".chart")?.closest("figure").scrollIntoView({ behavior: "smooth", block: "center" });
  };
  return make("button", { class: "at", title: "Put the cursor of all charts here", onclick: go }, clock(seconds));
}

function limitText(verdict) {
  const { unit, bound } = checkerOf(verdict);
  return verdict.limit === null ? "none" : `${bound} ${show(unit, verdict.limit)}`;
}

function verdictBox(side) {
  const { words, verdicts } = side.recording;
  const broken = verdicts.filter(isBroken).map((verdict) => make("li", {},
    make("b", {}, verdict.checker), ` of ${verdict.resource}: ${show(checkerOf(verdict).unit, verdict.value)}, limit ${limitText(verdict)}`,
    verdict.at_s ? [", worst at ", timeLink(verdict.at_s)] : ""));
  const title = [letter(side), make("strong", {}, words?.headline ?? "This recording has no verdict in words.")];
  const name = side.letter ? make("p", {}, `${side.name}: ${side.recording.scenario}, ${words?.facts.join(", ") ?? ""}`) : null;
  return make("section", { class: `verdict ${toneOf(words)}` }, make("p", {}, title), name, broken.length ? make("ul", {}, broken) : null);
}

function heading(sides, resources) {
  if (sides.length === 1) {
    const { scenario, description } = sides[0].recording;
    return [make("h1", {}, scenario), make("p", { class: "lead" }, description), verdictBox(sides[0])];
  }
  const wins = resources.flatMap((pair) => vocabulary.figures.map((figure) => better(figure, ...pair.map((it) => valueOf(figure, it)))));
  const count = (side) => several(wins.filter((it) => it === side).length, "figure");
  const title = resources.length ? `A is better in ${count("A")}, B in ${count("B")}.` : "A and B have no resource in common.";
  const conditions = differences(sides).map((line) => make("li", {}, line));
  return [
    make("h1", {}, title), make("div", { class: "sides" }, sides.map(verdictBox)),
    conditions.length ? [make("h3", {}, "Different conditions"), make("ul", {}, conditions)] : null,
  ];
}

// The figures of a resource: of one recording, or of both with the difference.
function figuresTable(pair) {
  const value = (figure, number) => {
    const isAlarming = figure.better === "lower_above_one" && number > 1 + 1e-9;
    return make("span", { class: isAlarming ? "over" : undefined }, show(figure.unit, number));
  };
  const row = (figure) => {
    const numbers = pair.map((resource) => valueOf(figure, resource));
    const name = make("b", {}, figure.name);
    if (pair.length === 1) return [name, value(figure, numbers[0]), figure.about];
    const winner = better(figure, ...numbers);
    return [name, numbers.map((it) => value(figure, it)), difference(figure.unit, ...numbers), winner ? pill("good", winner) : "", figure.about].flat();
  };
  const sides = pair.length === 1 ? [["Value", "n"]] : [["A", "n"], ["B", "n"], ["B − A", "n"], ["Better", "n"]];
  return table([["Figure", "name"], ...sides, ["Meaning", "why"]], vocabulary.figures.map(row), "figures");
}

function waitsTable(pair) {
  const lost = (wait) => pair.map((resource) => valueOf(wait, resource) ?? 0);
  const waits = vocabulary.waits.filter((wait) => lost(wait).some((it) => it >= 5e-7));
  if (!waits.length) return null;
  const most = Math.max(...waits.flatMap(lost));
  const bar = (part) => make("span", { class: "bar" }, make("i", { style: `width:${(100 * part / most).toFixed(1)}%` }));
  const cells = (wait) => lost(wait).map((part) => [show("points", part), bar(part)]);
  const sides = pair.length === 1 ? [["Points", "n"]] : [["A", "n"], ["B", "n"]];
  return [
    make("h3", {}, "Lost utilisation by reason ", quiet("percentage points")),
    how("While a part of the usable amount was not used, some client waited. This table splits the loss by the reason for which clients waited, in proportion to what each of them missed."),
    table([["Reason", "name"], ...sides, ["Meaning", "why"]], waits.map((wait) => [make("b", {}, wait.name), ...cells(wait), wait.about])),
  ];
}

const quiet = (text) => make("span", { class: "quiet" }, text);
const how = (text) => make("p", { class: "how" }, text);

// The clients of one recording with the largest shortages.
function shortagesTable(resource) {
  const short = resource.client_figures.filter((it) => it.wanted - it.got > it.wanted * NEGLIGIBLE);
  if (!short.length) return null;
  const width = (part) => `${(100 * Math.min(Math.max(part, 0), 1)).toFixed(1)}%`;
  const bar = (it) => make("span", { class: "bar" }, make("i", { style: `width:${width(satisfaction(it))}` }), make("b", { style: `left:${width(it.ideal / it.wanted)}` }));
  const row = (it) => [
    make("b", {}, it.client), it.node, measured(it.wanted), measured(it.got), measured(it.wanted - it.got),
    [percent(satisfaction(it)), bar(it)], percent(it.ideal / it.wanted),
  ];
  const columns = [["Client", "name"], ["Node", "text"], ["Wanted", "n"], ["Got", "n"], ["Missing", "n"], ["Satisfaction", "n"], ["Ideal", "n"]];
  const element = table(columns, short.slice(0, 100).map(row), "dense");
  sortable(element.querySelector("table"));
  return [
    make("h3", {}, "Clients with a shortage ", quiet(`${several(short.length, "client")}, the largest shortage first`)),
    how("The bar is the part of its wants that a client got; the mark is the part that the ideal would have given it. From the bar to the mark, other clients had the amount, or it came late. Beyond the mark, the capacity did not suffice."),
    fold(element, element.querySelector("tbody"), SHORTAGES),
  ];
}

// Sorts a table by a column when its head is pressed: numbers with the largest first, then the other way round.
function sortable(element) {
  const [head, body] = [element.tHead.rows[0], element.tBodies[0]];
  [...head.cells].forEach((cell, column) => cell.addEventListener("click", () => {
    const falls = cell.getAttribute("aria-sort") !== "descending";
    const text = (row) => row.cells[column].textContent;
    const number = (row) => parseFloat(text(row).replaceAll(",", ""));
    const order = (a, b) => (cell.className === "n" ? number(a) - number(b) : text(a).localeCompare(text(b)));
    body.append(...[...body.rows].sort((a, b) => (falls ? -order(a, b) : order(a, b))));
    for (const other of head.cells) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", falls ? "descending" : "ascending");
    element.classList.add("sorted");
  }));
  head.title = "Press to sort";
}

// The clients whose satisfaction differs most between two recordings.
function changesTable([a, b]) {
  const others = new Map(b.client_figures.map((client) => [client.client, client]));
  const both = a.client_figures.map((client) => [client, others.get(client.client)]).filter(([, other]) => other);
  const changed = both.filter(([left, right]) => Math.abs(satisfaction(left) - satisfaction(right)) > NEGLIGIBLE);
  if (!changed.length) return null;
  const missing = (client) => client.wanted - client.got;
  const by = ([left, right]) => Math.abs(missing(left) - missing(right));
  changed.sort((one, other) => by(other) - by(one));
  const row = (clients) => {
    const [left, right] = clients.map(satisfaction);
    return [make("b", {}, clients[0].client), measured(clients[0].wanted), percent(left), percent(right), difference("part", left, right), pill("good", left > right ? "A" : "B")];
  };
  const columns = [["Client", "name"], ["Wanted in A", "n"], ["Satisfaction in A", "n"], ["in B", "n"], ["B − A", "n"], ["Better", "n"]];
  const element = table(columns, changed.slice(0, 100).map(row), "dense");
  return [make("h3", {}, "Clients with the largest differences"), fold(element, element.querySelector("tbody"), CHANGES)];
}

function limitsSection(sides) {
  const rows = new Map();
  for (const [index, { recording }] of sides.entries()) {
    for (const verdict of recording.verdicts) {
      const key = `${verdict.checker} ${verdict.resource}`;
      rows.set(key, Object.assign(rows.get(key) ?? [], { [index]: verdict }));
    }
  }
  const judged = (found) => found.some((verdict) => verdict && verdict.limit !== null);
  const broken = (found) => found.some((verdict) => verdict && isBroken(verdict));
  const sorted = [...rows.values()].sort((a, b) => broken(b) - broken(a) || judged(b) - judged(a));
  const cell = (verdict) => {
    if (!verdict) return "not checked";
    const [tone, text] = verdict.limit === null ? ["", "not judged"] : verdict.holds ? ["good", "holds"] : ["bad", "violated"];
    return [show(checkerOf(verdict).unit, verdict.value), " ", pill(tone, text)];
  };
  const row = (found) => {
    const any = found.find(Boolean);
    const name = [make("b", {}, any.checker), make("span", { class: "sub" }, `${any.resource}. ${checkerOf(any).about}`)];
    const details = sides.length > 1 ? [] : [any.value ? timeLink(any.at_s) : ""];
    return [name, ...sides.map((side, index) => cell(found[index])), limitText(any), ...details];
  };
  const found = sides.map((side) => [side.letter || "Found", "n"]);
  const columns = [["Check", "name"], ...found, ["Limit", "n"], ...(sides.length > 1 ? [] : [["Worst at", "text"]])];
  const element = table(columns, sorted.map(row)), limits = sorted.filter(judged).length;
  return make("section", { id: "limits" }, make("h2", {}, "Limits"), limits ? null : how("The scenario sets no limits."),
    fold(element, element.querySelector("tbody"), limits || sorted.length));
}

function eventsSection(sides, end) {
  const figure = (side) => make("figure", {}, make("figcaption", {}, letter(side)), make("div", { class: "card" }, lanes(side.recording.marks, end)));
  const natures = { fault: "warn", heal: "good" };
  const row = (mark) => [
    timeLink(mark.at_s), mark.until_s === null ? "" : duration(Math.max(mark.until_s - mark.at_s, 0)),
    pill(natures[vocabulary.kinds[mark.kind]] ?? "", mark.kind), mark.text,
  ];
  const { marks } = sides[0].recording;
  const list = () => [
    make("details", {}, make("summary", {}, "List of events"),
      table([["At", "text"], ["For", "text"], ["Kind", "text"], ["Event", "why"]], marks.slice(0, EVENTS).map(row)),
      marks.length > EVENTS ? how(`${several(marks.length - EVENTS, "more event")} in recording.json.`) : null),
  ];
  const isNone = sides.every(({ recording }) => !recording.marks.length);
  return make("section", { id: "events" }, make("h2", {}, "Events from outside"),
    isNone ? how("No fault, and no change from outside.") : [
      how("Charts shade the time of a fault (only its top, if faults take most of the time). A thin line is a short fault, or a fault of clients; a dotted line is an intended change."),
      sides.map(figure), sides.length === 1 ? list() : null,
    ]);
}

function runSection({ recording }) {
  const { words } = recording;
  const pairs = [
    ["Played", [...(words?.facts ?? []), `a sample every ${duration(recording.sample_every_s)}`].join(" · ")],
    ["Work", words?.done.join(" · ")], ["Command", make("code", {}, recording.command)],
    ["Trace", [make("code", {}, recording.trace_hash), " the same for every run of this scenario with this seed"]],
  ];
  const list = pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("section", { id: "run" }, make("h2", {}, "Run"), make("dl", { class: "card run" }, list));
}

// ------------------------------------------------------------------------------------------------ charts of a resource

// Charts are {kind, title, how, unit, size, scale, lines: [{name, values}], limit, cap}. Charts with the same scale get
// the same axis. A value that is null is a gap.
function resourceCharts(recording, resource) {
  const { samples } = resource;
  const line = (name, value) => ({ name, values: samples.map(value) });
  const limitOf = (checker, text) => {
    const limit = recording.verdicts.find((it) => it.checker === checker && it.resource === resource.resource)?.limit;
    return limit > 0 ? [limit, `${text} ${percent(limit)}`] : null;
  };
  const any = (value) => samples.some((sample) => value(sample) > 0);
  const down = (sample) => sample.nodes.filter((node) => !node.is_up).length;
  const learning = (sample) => sample.nodes.filter((node) => node.is_up && node.is_learning).length;
  return [
    {
      kind: "demand", title: "Demand and leases", size: "wide",
      how: "Granted is the sum of valid leases. It should follow demand up to the capacity and stay below it. Used is lower where a client may use more than it wants. After the capacity is lowered, earlier leases still count until they end. The grey part at the start is not in the averages.",
      lines: [line("capacity", (it) => it.capacity), line("demand", (it) => it.demand), line("granted", (it) => it.granted), line("used", (it) => it.used),
        ...(any((it) => it.fallback) ? [line("used without a lease", (it) => it.fallback)] : [])],
    },
    any((it) => it.short) && {
      kind: "short", title: "Clients with less than they want", unit: "part",
      how: "Part of the clients that want something whose lease is for less than they want. With enough capacity it falls to zero within a refresh interval or two.",
      lines: [line("clients short", (it) => (it.wanting ? it.short / it.wanting : null))],
    },
    {
      kind: "overshoot", title: "Leases above the capacity", unit: "part", limit: limitOf("overshoot", "limit"),
      how: "Largest excess of leases over the capacity at any instant, as a part of the capacity. It should be zero.",
      lines: [line("above the capacity", (it) => (it.capacity > 0 ? Math.max(it.peak / it.capacity - 1, 0) : null))],
    },
    {
      kind: "ideal", title: "Distance from the ideal", unit: "part", limit: limitOf("fairness", "limit of the mean"),
      how: "Part of the usable amount that would have to change hands until every client has its ideal share. It rises when demand or the tree changes, and should fall again soon.",
      lines: [line("away from the ideal", (it) => (it.usable > 0 ? it.unfair / it.usable : null))],
    },
    ...levelCharts(recording, resource),
    any((it) => down(it) + learning(it)) && {
      kind: "serving", title: "Nodes without a master, or in learning mode", unit: "number",
      how: "A node without a master decides nothing. A new master in learning mode grants nothing beyond what clients report.",
      lines: [line("down", down), line("learning", learning)],
    },
  ].filter(Boolean);
}

function nodeLines(samples, indexes) {
  const sum = (name) => samples.map((sample) => indexes.reduce((all, index) => all + (sample.nodes[index]?.[name] ?? 0), 0));
  return ["has", "granted", "reserved"].map((name) => ({ name, values: sum(name) }));
}

function levelCharts({ nodes }, { samples }) {
  if (nodes.length < 2) return [];
  const levels = [...new Set(nodes.map((node) => node.level))].sort((a, b) => a - b);
  return levels.map((level) => {
    const indexes = [...nodes.keys()].filter((index) => nodes[index].level === level);
    const names = indexes.length > 4 ? several(indexes.length, "node") : indexes.map((index) => nodes[index].name).join(", ");
    const text = "Has is the capacity at the root, and elsewhere the lease from the level above. Granted is the sum of the newest leases; reserved is the largest amount that may be in use by any lease. Reserved must stay below has. All levels have the same scale.";
    return { kind: `level ${level}`, title: `Level ${level} of the tree: ${names}`, how: level ? undefined : text, scale: "levels", lines: nodeLines(samples, indexes) };
  });
}

const nodeCharts = ({ nodes }, { samples }) => (nodes.length < 2 ? [] : nodes.slice(0, NODES)
  .map((node, index) => ({ kind: `node ${index}`, title: node.name, size: "small", lines: nodeLines(samples, [index]) })));

// Clients over time, the largest shortage first. They share a scale unless one gets far more than most.
function clientCharts({ clients, client_figures }) {
  const places = new Map(client_figures.map((client, place) => [client.client, place]));
  const place = ({ client }) => places.get(client) ?? Infinity;
  const charts = [...clients].sort((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0)).map((client) => {
    const line = (name, key = name) => ({ name, values: client.samples.map((sample) => sample[key]) });
    const most = client.samples.reduce((all, it) => Math.max(all, it.granted, it.ideal, it.fallback), 0);
    const fallback = client.samples.some((sample) => sample.fallback > 0) ? [line("used without a lease", "fallback")] : [];
    // Wants far beyond what the client can get do not count for the scale.
    return {
      kind: `client ${client.client}`, title: `${client.client} at ${client.node}`, size: "small", scale: "clients", cap: most > 0 ? most * 2.5 : Infinity,
      lines: [line("wants"), line("granted"), line("ideal"), ...fallback],
    };
  });
  const tops = charts.map(largest).sort((a, b) => a - b);
  if (tops.at(-1) > 12 * tops[Math.floor(tops.length / 2)]) charts.forEach((chart) => { chart.scale = chart.kind; });
  return charts;
}

function largest({ lines, limit, cap = Infinity }) {
  const values = lines.flatMap((line) => line.values).reduce((all, value) => Math.max(all, value ?? 0), limit?.[0] ?? 0);
  return Math.min(values, cap);
}

// Gives each chart its times, bands and axes; charts with the same scale get the same.
function align(charts, resource, bands, end) {
  const times = resource.samples.map((sample) => sample.at_s);
  for (const chart of charts) Object.assign(chart, { size: "low", unit: "number", ...chart, times, bands, end });
}

// ------------------------------------------------------------------------------------------------- events in time

// Joins spans with less than a gap between them.
function joined(spans, gap) {
  const all = [];
  for (const [from, until] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last && from < last[1] + gap) last[1] = Math.max(last[1], until);
    else all.push([from, until]);
  }
  return all;
}

// What charts draw behind their lines: times of faults, short faults, intended changes, heals.
function bandsOf({ marks, settled_after_s }, end) {
  const gap = end / 1000;
  const bands = { settled: settled_after_s, wrong: [], moments: [], changes: [], heals: [] };
  for (const { at_s, until_s, kind } of marks) {
    const nature = vocabulary.kinds[kind];
    if (nature !== "fault") bands[nature === "heal" ? "heals" : "changes"].push([at_s, at_s]);
    // Crashes are of some clients only, and would shade much.
    else if (until_s > at_s && kind !== "crash") bands.wrong.push([at_s, until_s]);
    else bands.moments.push([at_s, at_s]);
  }
  for (const key of ["wrong", "moments", "changes", "heals"]) bands[key] = joined(bands[key], gap);
  return bands;
}

// A lane for each kind of event, on the same axis of time as the charts.
function lanes(marks, end) {
  const kinds = [...new Set(marks.map((mark) => mark.kind))];
  const shape = ([from, until], text) => {
    const left = Math.min(100 * from / end, 100), width = Math.min(100 * (until - from) / end, 100 - left);
    const isMoment = width < 0.4;
    return make("i", { class: isMoment ? "moment" : undefined, title: text, style: `left:${left.toFixed(2)}%${isMoment ? "" : `;width:${width.toFixed(2)}%`}` });
  };
  const shapes = (own) => {
    const span = (mark) => [mark.at_s, mark.until_s ?? mark.at_s];
    if (own.length > 400) return joined(own.map(span), end / 1000).map((it) => shape(it));
    return own.map((mark) => shape(span(mark), `${clock(mark.at_s)}${mark.until_s === null ? "" : ` to ${clock(mark.until_s)}`}: ${mark.text}`));
  };
  const lane = (kind) => make("div", { class: `lane ${vocabulary.kinds[kind]}` }, make("span", {}, kind), make("div", {}, shapes(marks.filter((mark) => mark.kind === kind))));
  const times = [0, 1, 2, 3, 4, 5].map((part) => make("span", {}, clock(end * part / 5)));
  const element = make("div", { class: "lanes", "data-end": end }, kinds.map(lane), make("div", { class: "times" }, times));
  return marks.length ? element : make("p", { class: "empty" }, "No events.");
}

// ------------------------------------------------------------------------------------------------------------ drawing

// Lines differ by their dashes, too: [colour, width, dashes, join].
const looks = {
  capacity: ["ink", 1.4, [7, 4], "step"], has: ["ink", 1.4, [7, 4], "step"],
  demand: ["orange", 1.8, [2, 2.5], "line"], wants: ["orange", 1.8, [2, 2.5], "step"], "clients short": ["orange", 1.7, [], "area"],
  granted: ["blue", 1.9, [], "area"], "away from the ideal": ["blue", 1.7, [], "area"],
  used: ["teal", 1.6, [11, 3], "line"], ideal: ["teal", 1.6, [11, 3], "line"],
  reserved: ["purple", 1.5, [4, 2], "line"], learning: ["purple", 1.5, [4, 2], "step"], "used without a lease": ["purple", 2, [1.5, 2], "line"],
  "above the capacity": ["red", 1.7, [], "area"], down: ["red", 1.7, [], "area"],
};
const heights = { wide: 300, low: 170, small: 130 };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// All charts of the page: {element, chart, plot}. A chart has a plot once it was visible.
let drawn = [];
let pinned = null;
const tip = make("div", { id: "tip", hidden: "" });
document.body.append(tip);

// Puts the cursor of all charts at a time; null hides it.
function moveCursor(seconds) {
  for (const { plot } of drawn) {
    plot?.setCursor(seconds === null ? { left: -10, top: -10 } : { left: plot.valToPos(seconds, "x"), top: 0 }, false);
  }
  for (const element of document.querySelectorAll(".lanes")) {
    const cursor = element.querySelector(".cursor") ?? element.appendChild(make("b", { class: "cursor" }));
    const track = element.querySelector(".lane div");
    cursor.hidden = seconds === null;
    cursor.style.left = `${track.offsetLeft + (seconds / Number(element.dataset.end)) * track.offsetWidth}px`;
  }
}

function pin(seconds) {
  pinned = seconds;
  moveCursor(seconds);
}

// Shows the values of a small chart, which has no legend, beside the pointer.
function showTip(chart, plot, event) {
  const index = plot.cursor.idx;
  tip.hidden = index === null || index === undefined;
  if (tip.hidden) return;
  const values = chart.kept.lines.map((line) => make("span", {}, `${line.name} ${show(chart.unit, line.values[index])}`));
  tip.replaceChildren(make("b", {}, clock(chart.kept.times[index])), ...values);
  const box = tip.getBoundingClientRect();
  const isLeft = event.clientX + 18 + box.width > innerWidth;
  tip.style.left = `${Math.max(4, isLeft ? event.clientX - 16 - box.width : event.clientX + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
}

// Keeps, of all samples in one column of the screen, the first, the last, and each line's extremes and first gap.
function thin({ times, lines, end }) {
  const column = (time) => Math.floor((time / end) * COLUMNS);
  const kept = new Set();
  for (let start = 0, stop; start < times.length; start = stop) {
    for (stop = start + 1; stop < times.length && column(times[stop]) === column(times[start]); stop++);
    kept.add(start).add(stop - 1);
    for (const { values } of lines) {
      let least, most, gap;
      for (let index = start; index < stop; index++) {
        if (values[index] === null) gap ??= index;
        else {
          if (least === undefined || values[index] < values[least]) least = index;
          if (most === undefined || values[index] > values[most]) most = index;
        }
      }
      for (const index of [least, most, gap]) if (index !== undefined) kept.add(index);
    }
  }
  const places = [...kept].sort((a, b) => a - b);
  const pick = (values) => places.map((place) => values[place]);
  return { times: pick(times), lines: lines.map(({ name, values }) => ({ name, values: pick(values) })) };
}

function drawBands(plot, { bands, end }) {
  const { ctx, bbox } = plot;
  const x = (seconds) => plot.valToPos(Math.min(Math.max(seconds, 0), end), "x", true);
  const shade = (from, until, name, alpha, part = 1) => {
    Object.assign(ctx, { globalAlpha: alpha, fillStyle: colour(name) });
    ctx.fillRect(x(from), bbox.top, Math.max(x(until) - x(from), 1), bbox.height * part);
    ctx.globalAlpha = 1;
  };
  if (bands.settled > 0) shade(0, bands.settled, "quiet", 0.1);
  // Faults that take most of the time are a stripe at the top.
  const lasted = bands.wrong.reduce((sum, [from, until]) => sum + until - from, 0);
  for (const [from, until] of bands.wrong) shade(from, until, "wrong", 0.62, lasted > end / 2 ? 0.05 : 1);
  const down = (spans, name, dashes) => strokes(plot, spans.map(([at]) => [[x(at), bbox.top], [x(at), bbox.top + bbox.height]]), name, dashes);
  down(bands.moments, "orange", []);
  down(bands.changes, "quiet", [1.5, 3]);
  down(bands.heals, "teal", []);
}

function strokes({ ctx }, segments, name, dashes) {
  Object.assign(ctx, { strokeStyle: colour(name), lineWidth: devicePixelRatio });
  ctx.setLineDash(dashes.map((it) => it * devicePixelRatio));
  ctx.beginPath();
  for (const [from, to] of segments) { ctx.moveTo(...from); ctx.lineTo(...to); }
  ctx.stroke();
  ctx.setLineDash([]);
}

function drawLimit(plot, limit) {
  if (!limit) return;
  const { ctx, bbox } = plot, y = plot.valToPos(limit[0], "y", true), right = bbox.left + bbox.width;
  strokes(plot, [[[bbox.left, y], [right, y]]], "red", [10, 3, 2, 3]);
  const textBaseline = y - bbox.top < 16 * devicePixelRatio ? "top" : "bottom";
  Object.assign(ctx, { fillStyle: colour("red"), font: `600 ${11.5 * devicePixelRatio}px system-ui, sans-serif`, textAlign: "right", textBaseline });
  ctx.fillText(limit[1], right - 4, y);
}

function draw(entry, width) {
  const { element, chart } = entry;
  const isSmall = chart.size === "small", top = chart.top > 0 ? chart.top * 1.04 : 1;
  const kept = chart.kept = thin(chart);
  const series = kept.lines.map(({ name, values }) => {
    const [stroke, lineWidth, dash, join] = looks[name];
    return {
      label: name, stroke: () => colour(stroke), width: lineWidth, dash, points: { show: kept.times.length < 3 },
      fill: join === "area" ? () => `${colour(stroke)}22` : undefined,
      paths: join === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined,
      value: (plot, value, place, index) => show(chart.unit, index === null ? NaN : values[index]),
    };
  });
  const axis = { stroke: () => colour("quiet"), font: "11.5px system-ui, sans-serif", ticks: { stroke: () => colour("line"), size: 4 }, grid: { stroke: () => colour("line"), width: 1 } };
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000];
  const plot = entry.plot = new uPlot({
    width, height: heights[chart.size], padding: [8, 26, 0, 0],
    scales: { x: { time: false, range: [0, chart.end || 1] }, y: { range: [0, top] } },
    axes: [
      { ...axis, size: 26, space: isSmall ? 60 : 80, values: (it, ticks) => ticks.map(clock), incrs: steps },
      { ...axis, size: isSmall ? 52 : 64, space: isSmall ? 28 : 34, values: (it, ticks) => ticks.map((value) => show(chart.unit, value)) },
    ],
    series: [{ label: "at", value: (it, value) => (value === null ? "–" : clock(value)) }, ...series],
    legend: { show: !isSmall, markers: { width: 2, fill: () => "transparent", dash: (it, index) => (series[index - 1]?.dash.length ? "dashed" : "solid") } },
    cursor: { drag: { x: false, y: false }, points: { show: !isSmall } },
    hooks: { drawClear: [(it) => drawBands(it, chart)], draw: [(it) => drawLimit(it, chart.limit)] },
  }, [kept.times, ...kept.lines.map(({ values }) => values.map((value) => (value === null ? null : Math.min(value, top))))], element);
  const at = () => Math.min(Math.max(plot.posToVal(plot.cursor.left, "x"), 0), chart.end);
  plot.over.addEventListener("mousemove", (event) => { moveCursor(at()); if (isSmall) showTip(chart, plot, event); });
  plot.over.addEventListener("mouseleave", () => { tip.hidden = true; moveCursor(pinned); });
  plot.over.addEventListener("click", () => pin(at()));
}

// A chart is drawn when it becomes visible: a folded one has no width.
const visible = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const entry = drawn.find(({ element }) => element === target), width = Math.floor(contentRect.width);
    if (!entry || width < 1) continue;
    if (!entry.plot) draw(entry, width);
    else if (entry.plot.width !== width) entry.plot.setSize({ width, height: heights[entry.chart.size] });
  }
});

function chartElement(chart) {
  const element = make("div", { class: `chart ${chart.size}`, role: "img", "aria-label": `${chart.title}, over time` });
  drawn.push({ element, chart, plot: null });
  visible.observe(element);
  return element;
}

// A chart of each side under a title. Sides without the chart say so.
function chartFigure(sides, charts) {
  const { title, how: text } = charts.find(Boolean);
  const card = (side, index) => make("div", { class: "card" }, letter(side), charts[index] ? chartElement(charts[index]) : make("p", { class: "empty" }, "No such chart."));
  return make("figure", {}, make("figcaption", {}, make("h3", {}, title), text ? how(text) : null), sides.map(card));
}

function smallCharts(title, text, charts, shown) {
  if (!charts.length) return null;
  const names = [...new Set(charts.flatMap((chart) => chart.lines.map((line) => line.name)))];
  const key = (name) => make("span", { class: "key" }, make("i", { class: "swatch", style: `color:var(--${looks[name][0]});border-top-style:${looks[name][2].length ? "dashed" : "solid"}` }), name);
  const list = make("div", { class: "small" }, charts.map((chart) => make("figure", {}, make("figcaption", {}, chart.title), chartElement(chart))));
  return [make("h3", {}, title), how(text), make("div", { class: "keys" }, names.map(key)), fold(list, list, shown)];
}

// ----------------------------------------------------------------------------------------------------------- the page

function render(sides) {
  visible.disconnect();
  [drawn, pinned] = [[], null];
  const ends = sides.map(({ recording }) => Math.max(recording.duration_s, ...recording.resources.map((it) => it.samples.at(-1)?.at_s ?? 0)));
  const end = Math.max(...ends), bands = sides.map(({ recording }) => bandsOf(recording, end));
  // For each resource that all sides have, its recordings.
  const find = ({ recording }, id) => recording.resources.find((it) => it.resource === id);
  const resources = sides[0].recording.resources.map((it) => sides.map((side) => find(side, it.resource))).filter((pair) => pair.every(Boolean));
  const shown = resources.slice(0, RESOURCES).map((pair) => resourceParts(sides, pair, bands, end));
  const titles = sides.map((side) => side.recording.scenario);
  document.title = `${titles.join(" and ")} · Doorward simulation`;
  document.getElementById("subject").textContent = sides.length > 1 ? "comparison of two simulations" : `simulation of ${titles[0]}`;
  const links = [...shown.map(({ id, name }) => [id, name]), ["limits", "Limits"], ["events", "Events"]];
  document.getElementById("parts").replaceChildren(...links.map(([id, name]) => make("a", { href: `#${id}` }, name)));
  const left = resources.length - shown.length;
  document.querySelector("main").replaceChildren(...[
    heading(sides, resources), shown.map((it) => it.first), limitsSection(sides), eventsSection(sides, end), shown.map((it) => it.rest),
    left > 0 ? how(`${several(left, "more resource")} in recording.json.`) : null, sides.length === 1 ? runSection(sides[0]) : null,
  ].flat(Infinity).filter(Boolean));
}

// The sections of a resource: the first chart with the figures, and the rest.
function resourceParts(sides, pair, bands, end) {
  const id = `resource-${sides[0].recording.resources.indexOf(pair[0])}`, name = pair[0].resource;
  const prepare = (make) => pair.map((resource, index) => {
    const charts = make(sides[index].recording, resource);
    align(charts, resource, bands[index], end);
    return charts;
  });
  const all = prepare(resourceCharts), small = sides.length === 1 ? [...prepare(nodeCharts), ...prepare((it, resource) => clientCharts(resource))] : [];
  const tops = new Map(), scale = (chart) => chart.scale ?? chart.kind;
  for (const chart of [...all, ...small].flat()) tops.set(scale(chart), Math.max(tops.get(scale(chart)) ?? 0, largest(chart)));
  for (const chart of [...all, ...small].flat()) chart.top = tops.get(scale(chart));
  const kinds = [...new Set(all.flat().map((chart) => chart.kind))];
  const figures = kinds.map((kind) => chartFigure(sides, all.map((charts) => charts.find((chart) => chart.kind === kind))));
  const { settled_after_s } = sides[0].recording;
  const lease = pair[0].lease_length_s, about = `${pair[0].algorithm}${lease ? `, leases of ${duration(lease)}` : ""}`;
  const notes = sides.length === 1 && sides[0].recording.resources.length === 1 ? sides[0].recording.words?.notes ?? [] : [];
  const clients = small[1] ?? [], count = `${clients.length} of ${several(sides[0].recording.clients, "client")}`;
  return {
    id, name,
    first: make("section", { id }, make("h2", {}, name, " ", quiet(about)), figures[0],
      make("h3", {}, "Figures ", notes.length ? null : quiet(`averages from ${clock(settled_after_s)} on`)), notes.length ? make("ul", { class: "notes" }, notes.map((note) => make("li", {}, note))) : null, figuresTable(pair)),
    rest: make("section", {}, make("h2", {}, name, " ", quiet("in detail")), waitsTable(pair), pair.length === 1 ? shortagesTable(pair[0]) : changesTable(pair), figures.slice(1),
      smallCharts("Clients", `Granted should lie on the ideal, but for a refresh interval or two after a change. Shown: ${count}, the largest shortage first. Wants far above the scale are drawn at its top.`, clients, CLIENTS),
      small[0]?.length ? make("details", {}, make("summary", {}, "Single nodes"), smallCharts("Nodes", "Each node has its own scale.", small[0], NODES)) : null),
  };
}

function renderEmpty(message) {
  document.querySelector("main").replaceChildren(make("section", { class: "drop" },
    make("h1", {}, "Open one or two recordings"), make("p", {}, "Drop recording.json files here, or press Open. Two recordings are compared."),
    make("p", {}, make("code", {}, "doorward-sim run SCENARIO --out FOLDER"), " writes FOLDER/recording.json."), message ? make("p", { class: "over" }, message) : null));
}

let sides = [];

function showRecordings(read) {
  sides = read.map((it, index) => ({ ...it, letter: read.length > 1 ? "AB"[index] : "" }));
  if (sides.length) render(sides);
  else renderEmpty();
}

// Opens files. One file beside one recording that is shown becomes the comparison.
async function open(files) {
  try {
    const read = await Promise.all([...files].slice(0, 2).map(async (file) => {
      const recording = JSON.parse(await file.text());
      if (!Array.isArray(recording.resources) || !Array.isArray(recording.verdicts)) throw new Error("it is JSON, but no recording");
      return { name: file.name, recording };
    }));
    if (read.length) showRecordings(read.length === 1 && sides.length === 1 ? [...sides, ...read] : read);
  } catch (error) {
    const message = `The file cannot be shown: ${error.message}.`;
    if (sides.length) document.getElementById("subject").textContent = message;
    else renderEmpty(message);
  }
}

document.getElementById("files").addEventListener("change", (event) => open(event.target.files));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => { event.preventDefault(); open(event.dataTransfer.files); });
addEventListener("keydown", (event) => { if (event.key === "Escape") { tip.hidden = true; pin(null); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(({ plot }) => plot?.redraw()));
showRecordings(JSON.parse(document.getElementById("recordings").textContent).map((recording) => ({ name: recording.scenario, recording })));
