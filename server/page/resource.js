// The view of one resource: its chart, its facts, child servers and clients; and the details of one row of a table.
import { amount, bar, bold, count, h, isMore, left, link, measured, pill, quiet, several, short, shortOf, span, sub,
  timeOfDay } from "./parts.js";
import { table, tableState } from "./tables.js";
import { candidates, hasTotal, marksList, nothing, resourcePills, serverLink, waitsForParent } from "./views.js";

const RANGES = [["10 minutes", 600], ["A day", 86_400]];
export function resource(state) {
  const { status, route, since, range } = state, it = status.resources.find((of) => of.resource_id === route.id);
  const crumb = h("p#crumb.crumb", link("/", "← All resources"));
  const title = h("h1#title", route.id, it && resourcePills(it, since));
  if (!it) return [crumb, title, nothing(state, route.id)];
  const lead = [it.description, divided(it), `leases of ${span(it.lease_length_ms)}`,
    `refreshed every ${span(it.refresh_interval_ms)}`, !it.budget && `safe capacity ${safeCapacity(it)}`].filter(Boolean).join(" · ");
  const ranges = RANGES.map(([name], index) => h("button", {
    class: "choice", "data-do": "range", "data-range": index, "aria-pressed": String(range === index) }, name));
  const refusal = it.own_lease?.refusal;
  return [
    crumb, title, h("p#resource-lead.lead", lead),
    h("div#advice", it.learning && h("p.note", it.learning),
      refusal && h("section.banner", h("strong", "The parent refuses this resource:"), ` ${refusal}.`)),
    h("dl#facts.facts", facts(it, state.since)),
    h("div#chart-head.toolbar", h("h2", "History"), h("span.push"), ranges),
    h("div#chart-card.card", h("div#chart.chart", { "data-keep": "", role: "img", "aria-label": "History" }),
      marksList(state)),
    ownLease(it, since), children(it, since), clients(state, it),
  ];
}

function divided(it) {
  const { own_lease: lease, template, algorithm } = it;
  if (template) return `${algorithm} by template ${template}`;
  if (!lease) return `${algorithm}; its leases run down`;
  return waitsForParent(it) ? "no lease from the parent" : `${algorithm} as the parent says`;
}

const safeCapacity = ({ safe_capacity: it, learning_remaining_ms: learns }) => (it < 0 ? "no limit"
  : it === null ? "not known without a lease from the parent"
    : `${amount(it)}${it === 0 && learns !== null ? " in learning mode" : ""}`);

const fact = (name, value, tone, about) => h("div.fact", { title: about },
  h("dt", name), h("dd", { class: tone || null }, value));
// A server below the root knows no end of it.
const unreported = ({ unreported: held, unreported_remaining_ms: ends }, since) => amount(held)
  + (ends === null ? "" : ` for ${left(ends, since)}`);
const inUnit = (value, { unit, decimals }) => `${amount(value / 10 ** decimals)} ${unit}`;
function facts(it, since) {
  const lack = hasTotal(it) ? shortOf(it) : 0, isAbove = (sum) => hasTotal(it) && isMore(sum, it.capacity);
  return [
    fact("Capacity", amount(it.capacity)), fact("Wants", amount(it.wants), isAbove(it.wants) && "short"),
    fact("Granted", amount(it.granted)),
    fact("Reserved", amount(it.reserved), isAbove(it.reserved) && "over", "The most that may be in use"),
    fact("Short", amount(lack), lack > 0 && "short"), fact("Clients", count(it.clients_count)),
    it.budget && fact("Used", inUnit(it.budget.used, it.budget), "", "What holders say they used in this window"),
    it.budget && it.algorithm && fact("Window ends in", it.budget.window_remaining_ms === null ? "never"
      : left(it.budget.window_remaining_ms, since)),
    it.unreported > 0 && fact("Unreported", unreported(it, since), "short",
      "Leases of an earlier master that nobody has reported yet"),
    fact("Waiting", count(it.waiting_count), "", "Holders that get less than their share until others have shrunk"),
    it.clients_below_floor !== null
      && fact("Below the share floor", amount(it.clients_below_floor), it.clients_below_floor > 0 && "short"),
  ];
}

function ownLease(resource, since) {
  const it = resource.own_lease;
  if (!it) return null;
  const about = `what this server has from its parent${it.is_in_flight ? "; asked again, no answer yet" : ""}`;
  const none = waitsForParent(resource) ? ["no lease", "over"] : ["never"];
  const expiry = it.expires_in_ms === null ? none : [left(it.expires_in_ms, since)];
  return h("section#own", h("h2", "Own lease", quiet(about)), h("dl.facts",
    fact("May hand out", amount(it.capacity)),
    fact("Share, once others have shrunk", amount(it.share), isMore(it.share, it.capacity) && "short"),
    fact("Outstanding", amount(it.outstanding), isMore(it.outstanding, it.capacity) && "over"),
    fact("Expires in", ...expiry)));
}
// ------------------------------------------------------------------------------------------ child servers and clients
// The columns that child servers and clients share. `most`: end of the scale of their bars.
const leaseColumns = (since, most) => [
  ["Wants", "n", (it) => [amount(it.wants), it.wants_more && sub("and more", "more than its template lets it want")],
    (it) => it.wants],
  ["Share", "n", (it) => amount(it.share), (it) => it.share, "What the algorithm gives it"],
  ["Granted", "n", (it) => [amount(it.granted), bar(it, most)], (it) => it.granted],
  ["Reserved", "n", (it) => [amount(it.reserved), isMore(it.reserved, it.granted)
    && sub("held", "an older, larger lease still counts")], (it) => it.reserved, "The most that it may be using"],
  ["Short", "n", (it) => shortOf(it) > 0 && short(amount(shortOf(it))), shortOf],
  ["Expires in", "n", (it) => [left(it.expires_in_ms, since), sub(`every ${span(it.refresh_interval_ms)}`)],
    (it) => it.expires_in_ms, "It asks again every so often"],
  ["Why", "why", (it) => h("span.two", { title: it.why }, it.why), (it) => it.why],
];

const largest = (rows) => rows.reduce((most, it) => Math.max(most, it.wants, it.reserved), 0);

function childName(it) {
  const levels = it.height === 1 ? "a leaf" : `${it.height} levels of servers`;
  return [bold(it.child), h("div.line",
    it.is_learning && pill("warn", "learning", "It confirms what is out and grants nothing new"),
    it.curve_points === 0 && pill("", "Doorman server", "It sends counts and sums, and no demand curve"),
    `${levels}, ${several(it.clients_count, "client")}`)];
}

const outstanding = ({ outstanding: it, reserved }) => (it === null ? sub("not reported")
  : h(isMore(it, reserved) ? "span.over" : "span", amount(it)));
function children({ children_count: number, children: rows }, since) {
  if (!number) return null;
  const columns = [["Child server", "name", childName, (it) => it.child], ...leaseColumns(since, largest(rows))];
  columns.splice(5, 0, ["Outstanding", "n", outstanding, (it) => it.outstanding ?? -1, "By its own report"]);
  const missing = number - rows.length;
  return h("div#children-part", table("children", {
    title: "Child servers", noun: "child server", class: "leases", rows, columns, key: (it) => it.child,
    search: (it) => `${it.child} ${it.why}`, isPartial: missing > 0,
    tools: missing > 0 && pill("warn", `${count(missing)} more are not listed`) }));
}

// Leases of clients; child servers have a table of their own. The rows are made anew only with a new status.
let made = {};
function clientsOf(it) {
  const rows = made.it === it ? made.rows : it.leases.filter((lease) => lease.kind === "client");
  if (made.it !== it) made = { it, rows, most: largest(rows) };
  return made;
}

function clients(state, it) {
  const { rows, most } = clientsOf(it), all = it.leases_count - it.children_count, { holder } = state;
  const isPartial = holder ? it.leases.length >= state.leasesMax : rows.length < all;
  if (!all && it.children_count) return null;
  const name = ({ holder: text, subclients }) => [bold(text),
    subclients !== 1 && sub(`stands for ${several(subclients, "client")}`)];
  const columns = [["Client", "name", name, (of) => of.holder], ...leaseColumns(state.since, most)];
  const priority = ["Priority", "n", (of) => count(of.priority), (of) => of.priority];
  if (it.algorithm === "PRIORITY_BANDS") columns.splice(1, 0, priority);
  const note = isPartial && h("p.note", { role: "status" }, `The server sent ${count(rows.length)} of `,
    `${several(all, "client")}, the first by name. Other columns cannot sort a part; a search asks the server.`);
  return h("div#clients-part", note, table("clients", {
    title: it.children_count ? "Clients of this server itself" : "Clients", noun: "client", class: "leases", rows,
    columns, key: (of) => of.holder, search: (of) => `${of.holder} ${holder ? "" : of.why}`, isPartial,
    sort: { column: columns.length - 3, falls: true }, tools: holder && quiet(`with “${holder}” in the name`) }));
}
// ---------------------------------------------------------------------------------------------------------- the chart
// The lines of the chart: name, place in a sample, colour, width and dashes. The last one lies on top.
const SHADOW = ["Shadow", 5, "teal", 1.8, [1.5, 3]]; // what the shadow templates would grant
const LINES = [["Capacity", 1, "ink", 1.4, [7, 4]], ["Wants", 2, "orange", 1.8, [2, 2.5]],
  ["Reserved", 4, "purple", 1.5, [4, 2]], ["Granted", 3, "blue", 1.9, []]];
const linesOf = ({ shadow }) => (shadow ? [SHADOW, ...LINES] : LINES);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Returns the columns of the chart: the server's samples, and then what this page has seen since. A null divides lines
// where samples are missing.
function samples({ history, seen }, range) {
  const { samples: old = [], every_ms: every = 1_000 } = history.series[range] ?? {}, last = old.at(-1)?.[0] ?? 0;
  const rows = range === 0 ? [...old, ...seen.filter(([at]) => at > last)] : old;
  const isGap = (row, index) => index > 0 && row[0] - rows[index - 1][0] > 4 * every;
  const all = rows.flatMap((row, index) => (isGap(row, index) ? [[row[0] - 1, ...Array(5).fill(null)], row] : [row]));
  return [all.map(([at]) => at / 1000), ...linesOf(history).map(([, place]) => all.map((row) => row[place]))];
}

let chart = {};
// Draws the chart into its element, if the view has one.
export function drawChart(state) {
  const element = document.getElementById("chart");
  if (!element?.clientWidth || !state.history) return;
  const range = state.route.view === "resource" ? state.range : 0, data = samples(state, range);
  const end = (Date.now() + state.clockAhead) / 1000, lines = linesOf(state.history);
  Object.assign(chart, { marks: state.history.marks, range: [end - RANGES[range][1], end] });
  if (chart.element !== element || chart.lines.length !== lines.length) {
    chart.plot?.destroy();
    Object.assign(chart, { element, lines, plot: newPlot(element, lines) });
    new ResizeObserver(() => chart.element === element && chart.plot.setSize(sizeOf(element))).observe(element);
  }
  chart.plot.setData(data);
  // Without a pointer in the chart, the legend shows the newest values.
  if (chart.plot.cursor.left < 0) chart.plot.setLegend({ idx: data[0].length - 1 }, false);
}
export const redrawChart = () => chart.plot?.redraw();
const sizeOf = (it) => ({ width: it.clientWidth, height: it.classList.contains("low") ? 170 : 270 });
function newPlot(element, lines) {
  const axis = { stroke: () => colour("quiet"), font: "11.5px system-ui, sans-serif",
    ticks: { stroke: () => colour("line"), size: 4 }, grid: { stroke: () => colour("line"), width: 1 } };
  const time = (step) => (seconds) => timeOfDay(seconds * 1000).slice(0, step < 60 ? 8 : 5);
  // Without a pointer, the newest value. Samples of the status have none of the shadow templates.
  const newest = (all) => all.findLast((it) => it !== undefined);
  const shown = (plot, value, index) => measured((plot.cursor.left < 0 ? newest(plot.data[index]) : value) ?? null);
  const series = lines.map(([label, , name, width, dash]) => ({
    label, stroke: () => colour(name), width, dash, points: { show: false }, value: shown,
    fill: name === "blue" ? () => `${colour(name)}22` : undefined,
    paths: label === "Capacity" ? uPlot.paths.stepped({ align: 1 }) : undefined,
  }));
  const dash = (plot, index) => (series[index - 1]?.dash.length ? "dashed" : "solid");
  return new uPlot({
    ...sizeOf(element), padding: [10, 16, 0, 0],
    scales: { x: { range: () => chart.range }, y: { range: (plot, least, most) => [0, (most || 1) * 1.06] } },
    axes: [{ ...axis, size: 28, space: 70, values: (plot, ticks, index, space, step) => ticks.map(time(step)) },
      { ...axis, size: 58, space: 32, values: (plot, ticks) => ticks.map(measured) }],
    series: [{ label: "At", value: (plot, value) => (value === null ? "–" : timeOfDay(value * 1000)) }, ...series],
    legend: { markers: { width: 2, fill: () => "transparent", dash } },
    cursor: { drag: { x: false, y: false }, y: false }, hooks: { drawClear: [drawMarks] },
  }, [[], ...lines.map(() => [])], element);
}

// Elections and changes of templates and rules, as vertical lines.
function drawMarks({ ctx, bbox, valToPos }) {
  const [from, until] = chart.range, marks = chart.marks.map((mark) => mark.at_ms / 1000);
  ctx.save();
  ctx.fillStyle = colour("quiet");
  for (const at of marks.filter((it) => it >= from && it <= until))
    ctx.fillRect(Math.round(valToPos(at, "x", true)), bbox.top, 1.5 * devicePixelRatio, bbox.height);
  ctx.restore();
}
// ---------------------------------------------------------------------------------------------- the details of one row
const scalars = (it) => Object.fromEntries(Object.entries(it ?? {}).filter(([, value]) => typeof value !== "object"));

// Returns the content of the dialog: all that is known of a row, in words and without cuts.
export function details({ detail: { table: id, key }, since }) {
  const row = tableState(id)?.byKey.get(key), all = id === "tree" && row ? treeDetails(row) : row ?? {};
  const pairs = Object.entries(all).filter(([, it]) => (it ?? "") !== "");
  const title = row?.name ?? row?.holder ?? row?.child ?? row?.identifier_glob ?? "This row is gone.";
  return [h("h2#dialog-title", title), h("dl.run", pairs.map(([name, value]) => [
    h("dt", name.replace(/_ms$/, "").replaceAll("_", " ")), h("dd", valueText(name, value, since))]))];
}

// A client; or a server by its own account, then its parent's record of it, and its lease.
function treeDetails({ place: { node, address, above, problem, status, known, lease: own }, lease, kind }) {
  if (kind !== "server") return { at: node, ...scalars(lease) };
  const { pages_address: pages, ...rest } = status ?? {};
  const page = pages && (serverLink(pages, address ?? rest.address, pages) ?? pages);
  return { node, above: above.join(" → "), problem, page,
    ...scalars(rest), candidates: status && candidates(status), ...scalars(known), ...scalars(own),
    ...scalars(status?.states), parent_problem: status?.parent?.problem ?? null };
}

function valueText(name, value, since) {
  if (["page", "candidates"].includes(name)) return value;
  if (name.endsWith("_age_ms") || name === "uptime_ms") return span(value + since);
  if (/^(expires_in|.*_remaining)_ms$/.test(name)) return left(value, since);
  if (typeof value === "number") return name.endsWith("_ms") ? span(value) : amount(value);
  if (typeof value === "object") return Object.entries(value).map((pair) => pair.join(": ")).join(", ");
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}
