// The parts of every page, and the views of the whole tree, of limits and of templates.
//
// A view gets the state of the page (see page.js), and returns elements.
import { amount, bar, bold, bytes, count, h, isLess, isMore, left, link, measured, note, percent, pill, plainTable,
  quiet, several, short, shortOf, span, sub, timeOfDay } from "./parts.js";
import { table } from "./tables.js";

const NEARLY_PERCENT = 80, SHORT_NAMED = 3, MARKS_LISTED = 4, ROWS_UNFOLDED = 200;
export const resourceLink = (id) => `/resource?id=${encodeURIComponent(id)}`;
// NO_ALGORITHM and STATIC promise no total, so the capacity is no measure of the sum.
export const hasTotal = (it) => !["NO_ALGORITHM", "STATIC"].includes(it.algorithm);
const isShort = (it) => hasTotal(it) && isLess(it.granted, it.wants);
// ------------------------------------------------------------------------------------------------- head, banners, foot
export function header(state) {
  const { status } = state;
  const role = status && (status.is_master ? "master" : status.master_address ? "candidate" : "no master known");
  const to = (href, text, view) => h("a", { href, "aria-current": state.route.view === view ? "page" : null }, text);
  return h("div.frame",
    h("a.brand", { href: "/" }, h("span.door", { "aria-hidden": "true" }), "Doorward"),
    status && [h("span.node", status.node), pill(status.master_address ? "good" : "bad", role)],
    h("nav", { "aria-label": "Pages" }, to("/", "Tree", "front"), to("/?view=templates", "Templates", "templates"),
      to("/limits", "Limits", "limits"), to("/status?leases=100", "JSON"), to("/metrics", "Metrics")),
    connection(state));
}

// The mark of a live page, of a lost connection and since when, or of a pause. It keeps its width.
function connection({ isPaused, lostAt, heardAt, status }) {
  const [tone, text] = isPaused ? ["warn", `Paused ${timeOfDay(heardAt)}`]
    : lostAt ? ["bad", `Lost ${timeOfDay(lostAt)}`] : status ? ["good", "Live"] : ["", "Connecting…"];
  const pause = { "data-do": "pause", "aria-pressed": String(isPaused), title: "Pause, or go on (p)" };
  return h("span.live", h("span", { role: "status", class: `pill ${tone}` }, text),
    h("button", pause, isPaused ? "Go on" : "Pause"),
    h("button", { "data-do": "help", title: "Keys (?)", "aria-label": "Keys" }, "?"));
}

export const banner = (title, text, details) => h("section.banner", h("strong", title), text && [" ", text],
  details && h("pre", { tabindex: "0" }, details));
const KEPT = "The last valid version stays in force.";
const CONFLICT = "Each process of a client has a share of its own. Of a child server, the later process is refused. "
  + "Give each its own name, or stop one.";
const CYCLE = "Its capacity would come from itself, so it leases nothing from the parent. Check --node and --parent of "
  + "the servers on the way to the root.";

// Everything that an operator must know on each page, the worst first.
export function banners({ status: it, lostAt, since }) {
  const lost = lostAt && banner("No connection to this server",
    `since ${timeOfDay(lostAt)}. The values below are of that time.`);
  if (!it) return [lost].filter(Boolean);
  const ago = (millis) => span(millis + since), { etcd, parent } = it;
  const conflicts = it.conflicts.map((of) => `${of.kind} ${of.holder}, last seen ${ago(of.age_ms)} ago`).join("\n");
  const mastership = etcd?.mastership_remaining_ms === null ? "This server cannot become the master."
    : `This server stops being the master in ${left(etcd?.mastership_remaining_ms, since)}.`;
  return [
    lost, it.unready && banner("This server is not ready:", `${it.unready}.`),
    it.templates_problem && banner("The newest templates are refused.", KEPT, it.templates_problem),
    it.rules_problem && banner("The rules do not load.", null, it.rules_problem),
    it.tls_problem && banner("Changed certificates, keys, revocations or tokens are refused.", KEPT, it.tls_problem),
    conflicts && banner("Two live processes ask under one name.", CONFLICT, conflicts),
    etcd?.problem && banner("etcd does not answer", `for ${ago(etcd.age_ms)}. ${mastership}`, etcd.problem),
    it.is_in_cycle && banner("This node is its own ancestor.", CYCLE),
    parent?.link === "down" && banner("The parent is out of reach",
      `at ${parent.address}, for ${ago(parent.link_age_ms)}. What it leased to this server runs down.`, parent.problem),
    it.master_address && !it.is_master && note(pill("", "candidate"), ` The master of ${it.node} is at `,
      serverLink(it.master_address, it.master_address, it.master_pages_address ?? "") ?? it.master_address,
      ". This page shows what it holds; this server takes its place when it goes."),
    it.learning_remaining_ms && note(pill("warn", "learning mode"),
      ` For up to ${left(it.learning_remaining_ms, since)} more, clients without a lease wait.`),
    it.is_exposed && note(pill("warn", "exposed"),
      " Callers on a network need no identity: any program there can act as any client."),
  ].filter(Boolean);
}

export function footer({ status: it, since }) {
  if (!it) return [];
  const { states, parent } = it, open = Object.entries(states?.child_streams ?? {}).filter(([, number]) => number);
  const streams = open.map(([name, number]) => `${number} ${name}`).join(" and ");
  const session = parent?.link === "idle" ? "only the master asks it" : parent?.link;
  return [
    `Doorward ${it.version}`, it.address, `up ${span(Math.floor((it.uptime_ms + since) / 1000) * 1000)}`,
    it.epoch !== null && `epoch ${it.epoch}`, it.master_address && !it.is_master && `master at ${it.master_address}`,
    parent && `parent at ${parent.addresses.join(", ")} (${session})`,
    `templates: ${count(it.templates_count)} from ${it.templates_source}`,
    states?.parent_session && `parent session: ${states.parent_session}`, streams && `child streams: ${streams}`,
    states?.election && `election: ${states.election}`, states && `learning: ${states.learning}`,
    it.etcd?.candidates?.length > 0 && ["candidates: ", candidates(it)],
  ].filter(Boolean).map((text) => h("span", text));
}

// The address of another server's page, or null if this browser cannot know it. A server that listens on all addresses
// is reached by the host of its other address; one that listens on loopback, only from its own machine.
const isLocal = (of) => /^(127\.|\[::1\]|localhost)/.test(of), end = (of) => of.lastIndexOf(":");
function pageOf(address, pages) {
  if (!/^(\d+(\.\d+){3}|\[[0-9a-f:.]+\]):\d+$/i.test(pages) || (isLocal(pages) && !isLocal(address))) return null;
  const from = /^(0\.0\.0\.0|\[::\]):/.test(pages) ? address : pages;
  return `${location.protocol}//${from.slice(0, end(from))}${pages.slice(end(pages))}/`;
}
export function serverLink(text, address, pages, path = "") {
  const href = pageOf(address ?? "", pages);
  return href ? h("a", { href: href + path, title: href }, text) : null;
}
export const candidates = ({ etcd }) => etcd?.candidates?.map(({ address, pages_address: pages }, index) => [
  index > 0 && ", ", serverLink(address, address, pages) ?? address]);

// The reason why a server lists nothing. `id`: of a resource.
export function nothing({ status: it }, id) {
  const text = (title, ...more) => h("div#nothing.card", h("p.empty", h("b", title), more));
  if (!it.master_address) return text(`No master of the node ${it.node} is known`, "Nothing is granted without one.");
  if (!it.is_master) return text(id ? "The master does not show this resource" : "The master shows no resource",
    `Nobody holds it, or this server cannot ask the master at ${it.master_address}.`);
  return text(id ? "Nobody holds this resource now" : "Nobody holds anything yet",
    "A resource appears with the first client that asks, and goes with its last lease.");
}
// --------------------------------------------------------------------------------------------------- the whole tree
export function front(state) {
  const { chosen, status, treeFor } = state, shown = status.resources.find((it) => it.resource_id === chosen);
  const chart = () => [
    h("div#chart-head.toolbar", h("h2", link(resourceLink(chosen), chosen)), quiet("last ten minutes")),
    h("div#chart-card.card", h("div#chart.chart.low", { "data-keep": "", role: "img", "aria-label": "History" }),
      marksList(state))];
  const side = shown || state.named ? [shown && chart(), resources(state)] : nothing(state);
  return [shown && verdict(state, shown), h("div#front.front",
    h("section#tree-part", { class: treeFor === chosen ? "" : "stale" }, tree(state)), h("section#side", side)),
  h("div#more", rules(state))];
}

export function marksList({ history }) {
  const all = history?.marks ?? [], marks = all.slice(-MARKS_LISTED).reverse(), more = all.length - marks.length;
  const { source, problem } = history?.shadow ?? {};
  const lines = problem ? [h("b", `Shadow templates from ${source}: ${problem}`)] : [];
  lines.push(...marks.map((mark) => [quiet(timeOfDay(mark.at_ms)), ` ${mark.text}`]));
  if (more > 0) lines.push(quiet(`and ${several(more, "earlier change")}, which /history lists`));
  return lines.length > 0 && h("ul.marks", lines.map((line) => h("li", line)));
}

// Says who shares what, and who is short. The tree and the status are of different moments: the sentence goes with the
// tree below it.
function verdict(state, it) {
  const now = (state.treeFor === state.chosen && state.tree?.[0] && resourceOf(state.tree[0])) || it;
  const what = hasTotal(it) ? `the ${measured(now.capacity)} of ${it.resource_id}` : it.resource_id;
  const who = several(now.clients_count, "client");
  const wants = `They want ${measured(now.wants)} and get ${measured(now.granted)}.`;
  const holders = shortHolders(state, now), others = holders.length - SHORT_NAMED;
  const names = holders.slice(0, SHORT_NAMED).map(({ name, at, lack }, index) => [
    index ? ", " : "", h("b", name), at && ` at ${at}`, ` by ${measured(lack)}`]);
  const text = ["Short: ", names.length ? names : link(resourceLink(it.resource_id), "see its clients"),
    others > 0 && ` and ${several(others, "other")}`, "."];
  return h("section#verdict", { class: `verdict ${isShort(now) ? "short" : "good"}` },
    h("h1", `${who} ${now.clients_count === 1 ? "shares" : "share"} ${what}. ${wants}`),
    h("p", isShort(now) ? text : "Everyone gets what it wants."));
}

// Clients that get less than they want, most first; child servers, if the tree does not list all clients.
function shortHolders({ tree: places }, resource) {
  const lackOf = (it, at) => ({ name: it.holder, at, lack: shortOf(it) });
  const clients = (places ?? []).flatMap((place) => clientsOf(place).map((it) => lackOf(it, place.node)));
  const children = resource.children.map((it) => ({ name: it.child, lack: shortOf(it) }));
  const all = clients.length >= resource.clients_count ? clients : children;
  return all.filter(({ lack }) => lack > 0).sort((a, b) => b.lack - a.lack);
}

const resourceOf = (place) => place.status?.resources?.[0];
const clientsOf = (place) => resourceOf(place)?.leases?.filter((it) => it.kind === "client") ?? [];
const extent = (figures) => Math.max(figures?.wants ?? 0, figures?.reserved ?? 0);
const isGone = (place) => place.known?.state === "gone";
function tree(state) {
  const { rows, isLarge } = treeRows(state), places = state.tree ?? [], top = places[0] && resourceOf(places[0]);
  const total = top && hasTotal(top) ? top.capacity : 0;
  // Ends of the scales of bars. In a large tree, each level has its own: the bars of leaves would be too short.
  const wholes = [total], level = (row) => (isLarge ? row.depth : 0);
  for (const row of rows) wholes[level(row)] = Math.max(wholes[level(row)] ?? 0, extent(row.figures));
  const gone = places.filter(isGone).length, silent = places.filter((it) => it.problem && !isGone(it)).length;
  const number = (title, of) => [title, "n", ({ figures: it }) => it && of(it)];
  const treeBar = (row) => row.figures && bar({ ...row.figures, capacity: row.depth ? 0 : total }, wholes[level(row)]);
  return [above(state.status), table("tree", {
    title: "Servers and clients", noun: "row", class: "tree", rows, isFixed: true, key: (row) => row.key,
    search: (row) => `${row.name} ${row.place.address ?? ""}`,
    rowClass: (row) => `${row.kind}${isGone(row.place) ? " cut" : ""}`,
    tools: [gone > 0 && pill("bad", `${several(gone, "server")} gone`),
      silent > 0 && pill("warn", `${several(silent, "server")} out of reach`),
      state.treeProblem && pill("warn", "not up to date", state.treeProblem)],
    empty: state.treeProblem ?? (state.tree ? "No server is known." : "Asking the servers…"),
    columns: [
      ["Server or client", "name", (row) => treeName(row, state)],
      ["Granted and missing", "use", treeBar],
      number("Wants", (it) => measured(it.wants)), number("Granted", (it) => measured(it.granted)),
      number("Short", (it) => shortOf(it) > 0 && short(measured(shortOf(it)))),
    ],
  }), legend()];
}

const swatch = (tone, text) => h("span", h("i", { class: tone }), text);
const legend = () => h("p#legend.legend", swatch("", "granted to a server"), swatch("client", "granted to a client"),
  swatch("held", "still held by an older lease"), swatch("lack", "wanted beyond that"));

// Nodes above the server that made the page.
function above({ parent: it, ancestors, node }) {
  if (!it) return null;
  const tone = it.link === "down" ? "bad" : it.link === "idle" || it.problem ? "warn" : "good";
  const way = [...ancestors].reverse().concat(`${node}, this node`).join(" → ");
  return h("p#above.lead", "Parent: ", h("b", ancestors[0] ?? ""), ` at ${it.address} `,
    pill(tone, it.link === "idle" ? "only the master asks it" : it.link), it.problem && ` ${it.problem}`, quiet(way));
}

// The rows of the tree: each server, the clients that it lists, and the servers below it. They are made anew only if
// the tree or a fold changes, so that scrolling is cheap.
let made = { rows: [], isLarge: false };
function treeRows({ tree: places, folds }) {
  if (made.places === places && made.folds === folds) return made;
  const size = (places ?? []).reduce((sum, place) => sum + 1 + clientsOf(place).length, 0);
  const isLarge = size > ROWS_UNFOLDED, rows = [];
  let hidden = Infinity;
  for (const place of places ?? []) {
    const depth = place.above.length, key = JSON.stringify([...place.above, place.node]);
    if (depth > hidden) continue;
    // By its parent's record, or by its own account if no server above it is in the tree.
    const figures = place.lease ?? resourceOf(place);
    const isLeaf = !place.status?.children?.length && !figures?.clients_count;
    const folded = !isLeaf && (folds.get(key) ?? (isLarge && depth > 0));
    hidden = folded ? depth : Infinity;
    rows.push({ key, kind: "server", name: place.node, depth, place, figures, folded: isLeaf ? null : folded });
    if (!folded) rows.push(...clientRows(place, key, depth + 1));
  }
  made = { places, folds, rows, isLarge };
  return made;
}

function clientRows(place, key, depth) {
  const clients = clientsOf(place), own = resourceOf(place);
  const rest = own ? own.leases_count - own.children_count - clients.length : 0;
  const rows = clients.map((lease) => ({
    key: `${key} ${lease.holder}`, kind: "client", name: lease.holder, depth, place, lease, figures: lease }));
  const name = several(rest, clients.length ? "more client" : "client");
  return rest > 0 ? [...rows, { key: `${key} +`, kind: "others", name, depth, place }] : rows;
}

function treeName(row, state) {
  const { kind, place, depth, folded, key } = row, isServer = kind === "server";
  const button = { "data-do": "fold", "data-fold": key, tabindex: "-1", "aria-expanded": String(!folded) };
  const fold = !isServer || folded === null ? h("span.fold")
    : h("button.fold", { ...button, "aria-label": folded ? "Unfold" : "Fold" }, folded ? "▸" : "▾");
  // The clients that the tree leaves out are on the page of the resource, if they are of this server.
  const isOwnRest = kind === "others" && !place.known, { address, pages_address: pages } = place.status ?? {};
  const hasPage = isServer && pages && address !== state.status.address;
  const name = isOwnRest ? link(resourceLink(state.chosen), row.name)
    : (hasPage && serverLink(row.name, place.address ?? address, pages)) || bold(row.name);
  const text = isServer ? serverText(place, row.figures, state.treeSince) : row.lease?.why ?? "";
  return h("div.knot", { style: { "--depth": String(depth) } }, fold,
    h("div", name, isServer && serverPills(place, state), h("span.sub", { title: text }, text)));
}

function serverText(place, it, since) {
  const { known, problem, address } = place, own = known ? null : resourceOf(place);
  const until = known?.leases_remaining_ms ?? null;
  const end = until === null ? "its leases have ended" : `its leases last ${left(until, since)} more`;
  return [isGone(place) && end, problem, own && `capacity ${amount(own.capacity)}`,
    it && several(it.clients_count, "client"), address, !isGone(place) && known?.state].filter(Boolean).join(" · ");
}

function serverPills(place, { treeSince: since }) {
  const { known, status: it, problem, lease } = place, gone = isGone(place);
  const learns = it ? !["over", "standby"].includes(it.states?.learning ?? "over") : known?.is_learning;
  return [
    !known && pill("good", it?.parent ? "this node" : "root"),
    gone && pill("bad", `gone for ${span(known.state_age_ms + since)}`),
    problem && !gone && pill("bad", "out of reach", problem),
    it?.parent?.link === "down" && pill("bad", "cut off from its parent", it.parent.problem),
    it && !it.is_master && pill("warn", it.master_address ? "candidate" : "no master"),
    it?.unready && pill("bad", "not ready", it.unready), learns && pill("warn", "learning"),
    it?.is_in_cycle && pill("bad", "its own ancestor"), it?.conflicts?.length > 0 && pill("bad", "name conflict"),
    it?.templates_problem && pill("bad", "templates refused"), lease?.curve_points === 0 && pill("", "Doorman server"),
  ];
}
// ------------------------------------------------------------------------------------------------------- resources
// The part of the capacity that is wanted: the more, the busier the resource.
export const need = (it) => (hasTotal(it) && it.capacity > 0 ? it.wants / it.capacity : 0);
function resources({ status, route, since, named }) {
  const { next_token: next, resources: rows, resources_count: all } = status, from = !named && route.token;
  const isPartial = Boolean(next || from);
  const number = (title, of) => [title, "n", (it) => measured(of(it)), of];
  const pages = isPartial && note(`${count(rows.length)} of ${several(all ?? 0, "resource")}, by name. `,
    "Other columns cannot sort a part; a search asks the server. ", from && link("/", "← First resources"), " ",
    next && !named && link(`/?token=${encodeURIComponent(next)}`, "Next resources →"));
  return [table("resources", {
    title: "Resources", noun: "resource", class: "resources", rows, isPartial, sort: { column: 4, falls: true },
    key: (it) => it.resource_id, search: (it) => `${it.resource_id} ${named ? "" : it.description}`,
    tools: named && quiet(`with “${named}” in the name`), columns: [
      ["Resource", "name", (it) => resourceName(it, since), (it) => it.resource_id],
      number("Capacity", (it) => it.capacity),
      ["Wants", "n", (it) => (isShort(it) ? short(measured(it.wants)) : measured(it.wants)), (it) => it.wants],
      number("Granted", (it) => it.granted), ["Use", "use", resourceUse, need, "Sorted by the wanted part"],
    ],
  }), pages];
}

// A budget that never ends has a lease without an end.
export const waitsForParent = ({ own_lease: lease, budget, algorithm }) =>
  lease?.expires_in_ms === null && !(budget && algorithm);
export function resourcePills(it, since) {
  const { own_lease: lease, learning_remaining_ms: own, learning } = it, most = lease ? "at most " : "";
  const higher = own === null ? lease?.parent_learning_remaining_ms ?? null : null;
  return [
    own !== null && pill("warn", `learning, ${most}${left(own, since)} left`, learning),
    higher !== null && pill("warn", `learning above, at most ${left(higher, since)} left`, learning),
    it.template === null && !lease && pill("bad", "template gone"),
    lease?.refusal && pill("bad", "refused by the parent", lease.refusal),
    lease && !lease.refusal && waitsForParent(it) && pill("warn", "waits for the parent"),
    hasTotal(it) && isMore(it.reserved, it.capacity) && pill("bad", "over capacity"),
  ];
}

function resourceName(it, since) {
  const children = it.children.filter((child) => shortOf(child) > 0).map((child) => child.child);
  const wrong = [isShort(it) && `short: ${children.slice(0, 4).join(", ") || "its clients"}`,
    it.clients_below_floor > 0 && `${several(it.clients_below_floor, "client")} below the floor`,
    it.waiting_count > 0 && `${count(it.waiting_count)} waiting`].filter(Boolean).join(" · ");
  const about = it.description || `${it.algorithm}, ${several(it.clients_count, "client")}`;
  return [h("a", { href: resourceLink(it.resource_id), tabindex: "-1", title: it.resource_id }, it.resource_id),
    h(wrong ? "div.line.short" : "div.line", { title: wrong || about }, resourcePills(it, since), wrong || about)];
}
const resourceUse = (it) => (!hasTotal(it) || !it.capacity ? sub(hasTotal(it) ? "capacity of 0" : "no total")
  : [percent(it.granted / it.capacity), bar(it, Math.max(it.capacity, it.wants))]);
// --------------------------------------------------------------------------------------- rules, limits, templates

const alarming = (number) => (number > 0 ? short(count(number)) : count(number));
function rules({ status: { rules: documents, rule_decisions: decisions, limits: all }, since }) {
  const edit = ({ domain }) => [" ", link(`/?view=edit&kind=rules&domain=${encodeURIComponent(domain)}`, "Edit")];
  const refusal = (it) => (it.refused_version ? `version ${it.refused_version} refused` : "document gone");
  const refused = (it) => it.problem && [pill("bad", refusal(it)), sub(it.problem)], standing = all.filter(standsOut);
  return [
    documents.length > 0 && plainTable("Rules", [
      ["Domain", "name", (it) => [h("b", it.domain), edit(it), refused(it)]], ["Version", "text", (it) => it.version],
      ["Rules", "n", (it) => count(it.rules_count)], ["Age", "n", (it) => it.version && span(it.age_ms + since)],
    ], documents),
    decisions.length > 0 && plainTable("Requests by rule since the start, most refusals first", [
      ["Rule", "name", (it) => (it.rule === "unmatched" ? `${it.domain}: unmatched` : it.rule)],
      ["Allowed", "n", (it) => count(it.allowed_count)], ["Waited", "n", (it) => count(it.waited_count)],
      ["Shadow", "n", (it) => count(it.shadow_count)], ["Refused", "n", (it) => alarming(it.refused_count)],
      ["Last refusal", "n", (it) => it.refused_age_ms !== null && `${span(it.refused_age_ms + since)} ago`],
    ], decisions),
    standing.length > 0 && plainTable("Limits nearly reached, or with refusals", limitColumns, standing),
  ];
}

const percentOf = (used, max) => (max ? Math.floor((used * 100) / max) : 100);
const limitPercent = ({ used, max }) => (used === null || max === null ? null : percentOf(used, max));
const standsOut = (it) => it.refused_count > 0 || limitPercent(it) >= NEARLY_PERCENT;
const limitValue = ({ unit }, value) => (value === null ? "-"
  : { bytes: bytes(value), per_second: `${count(value)}/s`, millis: span(value) }[unit] ?? count(value));
function limitName(it) {
  const part = limitPercent(it), nearly = part >= NEARLY_PERCENT && pill("warn", "nearly full");
  return [h(standsOut(it) ? "b" : "b.plain", it.description),
    h("div.line", part >= 100 ? pill("bad", "full") : nearly, h("code", it.flag))];
}

const limitColumns = [
  ["Limit", "name", limitName, (it) => it.description],
  ["In use", "use", (it) => limitPercent(it) !== null && [`${limitPercent(it)} %`, bar({ granted: it.used }, it.max)],
    (it) => limitPercent(it) ?? -1],
  ["Used", "n", (it) => limitValue(it, it.used), (it) => it.used ?? -1],
  ["Bound", "n", (it) => limitValue(it, it.max), (it) => it.max ?? Infinity],
  ["Refused", "n", (it) => alarming(it.refused_count), (it) => it.refused_count],
];

export const limits = ({ status }) => [
  h("p#limits-lead.lead", "What this server accepts at most. It refuses what comes beyond, and keeps what is there. ",
    "Of a limit for each address, template or resource, this is the one that uses most."),
  table("limits", { title: "Limits", heading: "h1", noun: "limit", class: "limits", rows: status.limits,
    key: (it) => it.name, search: (it) => `${it.description} ${it.flag}`, columns: limitColumns }),
];

const safe = ({ safe_capacity: it }) => (it === null ? "a part each" : it < 0 ? "no limit" : amount(it));
const parameters = (it) => Object.entries(it.parameters).map((of) => of.join(" ")).join(", ");
const bounds = (it) => [["wants", it.wants_max], ["subclients", it.subclients_max], ["floor", it.share_floor]]
  .filter(([, value]) => value !== null).map(([name, value]) => `${name} ${amount(value)}`).join(", ");
export const templates = ({ status }) => [
  h("p#templates-lead.lead", `From ${status.templates_source}. A resource takes the template that is its id, or else `,
    "the first that matches.", status.parent && " Below the root, they count only if the parent sends no algorithm."),
  table("templates", { title: "Templates in force", heading: "h1", noun: "template", class: "templates",
    rows: status.templates, key: (it) => it.identifier_glob, empty: "This server has no templates of its own.",
    search: (it) => `${it.identifier_glob} ${it.kind} ${it.description}`,
    tools: !status.parent && h("a.button", { href: "/?view=edit&kind=templates" }, "Edit"), columns: [
      ["Glob", "name", (it) => [bold(it.identifier_glob), sub(it.description)], (it) => it.identifier_glob],
      ["Algorithm", "text", (it) => [it.kind, sub(parameters(it))], (it) => it.kind],
      ["Capacity", "n", (it) => amount(it.capacity), (it) => it.capacity],
      ["Safe capacity", "n", safe, (it) => it.safe_capacity ?? 0],
      ["Lease", "n", (it) => [span(it.lease_length_ms), sub(`every ${span(it.refresh_interval_ms)}`)],
        (it) => it.lease_length_ms],
      ["Learning", "n", (it) => span(it.learning_mode_duration_ms), (it) => it.learning_mode_duration_ms],
      ["Bounds", "text", bounds],
    ] }),
];
