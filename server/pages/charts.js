// Draws the charts of a page, and keeps one cursor in all of them.
//
// A chart is an element of the class "chart" with a script of the type application/json in it, which holds
//   title, unit ("amount", "part" or "count"), size ("wide", "low" or "small"),
//   end: where the axis of time ends, in seconds; top: up to where values go;
//   capped: some values are above the top, and are drawn at it;
//   times: [seconds…]; series: [{name, look, join, values: [number or null…]}…];
//   limit: [value, text] or null; bands: the id of a script of that type, with
//   {settled, wrong: [[from, until]…], moments: […], changes: […], heals: […]}, all in seconds.
// Lanes are an element of the class "lanes" with data-end="SECONDS", and need no script but for the cursor.
(() => {
  "use strict";
  document.documentElement.classList.add("live");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  // Colour is never the only difference: lines differ by their dashes, too.
  const looks = {
    whole: ["ink", 1.4, [7, 4]], want: ["orange", 1.8, [2, 2.5]], got: ["blue", 1.9], used: ["teal", 1.6, [11, 3]],
    held: ["purple", 1.5, [4, 2]], besides: ["purple", 2, [1.5, 2]], short: ["orange", 1.7], away: ["blue", 1.7],
    bad: ["red", 1.7],
  };
  const heights = { wide: 300, low: 170, small: 130 };
  const lanes = [...document.querySelectorAll(".lanes")];
  const charts = [];
  const bandsOf = new Map();
  let pinned = null;

  const two = (number) => String(number).padStart(2, "0");
  const clock = (seconds) => {
    const whole = Math.floor(seconds + 1e-6);
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  };
  const show = (unit, value) => {
    if (value === null || value === undefined) return "–";
    if (unit === "part") return `${Number((value * 100).toPrecision(3))} %`;
    if (unit === "count") return String(Math.round(value * 100) / 100);
    return Number(value.toPrecision(4)).toLocaleString("en");
  };

  // Puts the cursor at a time, in all charts; null: away.
  const put = (seconds) => {
    for (const { u } of charts) {
      if (!u) continue;
      const left = seconds === null ? -10 : u.valToPos(seconds, "x");
      u.setCursor({ left, top: seconds === null ? -10 : 0 }, false);
    }
    for (const lane of lanes) {
      const cursor = lane.querySelector(".cursor") || lane.appendChild(Object.assign(document.createElement("b"), { className: "cursor" }));
      const track = lane.querySelector(".lane div");
      cursor.hidden = seconds === null || !track;
      if (!cursor.hidden) cursor.style.left = `${track.offsetLeft + seconds / Number(lane.dataset.end) * track.offsetWidth}px`;
    }
  };

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const tell = (chart, event) => {
    const { u, data } = chart;
    const index = u.cursor.idx;
    tip.hidden = index === null || index === undefined;
    if (tip.hidden) return;
    const line = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
    const values = data.series.map((series, i) => [series, u.series[i + 1].show]).filter(([, shown]) => shown)
      .map(([series]) => line("span", `${series.name} ${show(data.unit, series.values[index])}`));
    tip.replaceChildren(line("b", clock(data.times[index])), ...values);
    const box = tip.getBoundingClientRect();
    const fits = event.clientX + 18 + box.width < innerWidth;
    tip.style.left = `${Math.max(4, fits ? event.clientX + 16 : event.clientX - 16 - box.width)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
  };

  const box = (u, from, until, name, alpha, part = 1) => {
    const [x, right] = [from, until].map((at) => u.valToPos(Math.max(0, at), "x", true));
    u.ctx.globalAlpha = alpha;
    u.ctx.fillStyle = colour(name);
    u.ctx.fillRect(x, u.bbox.top, Math.max(right - x, 1), u.bbox.height * part);
    u.ctx.globalAlpha = 1;
  };
  const line = (u, points, name, dash) => {
    u.ctx.strokeStyle = colour(name);
    u.ctx.lineWidth = devicePixelRatio;
    u.ctx.setLineDash(dash.map((it) => it * devicePixelRatio));
    u.ctx.beginPath();
    for (const [[x, y], [right, bottom]] of points) { u.ctx.moveTo(x, y); u.ctx.lineTo(right, bottom); }
    u.ctx.stroke();
    u.ctx.setLineDash([]);
  };
  // What happened from outside, behind the lines.
  const drawBands = (u, bands, end) => {
    if (!bands) return;
    if (bands.settled > 0) box(u, 0, Math.min(bands.settled, end), "quiet", 0.1);
    const lasted = bands.wrong.reduce((sum, [from, until]) => sum + until - from, 0);
    // Where most of the time is shaded, a stripe at the top says as much.
    for (const [from, until] of bands.wrong) box(u, from, Math.min(until, end), "wrong", 0.62, lasted > end / 2 ? 0.05 : 1);
    const across = (times) => times.map((at) => {
      const x = u.valToPos(at, "x", true);
      return [[x, u.bbox.top], [x, u.bbox.top + u.bbox.height]];
    });
    line(u, across(bands.moments), "orange", []);
    line(u, across(bands.changes), "quiet", [1.5, 3]);
    line(u, across(bands.heals), "teal", []);
  };
  const drawLimit = (u, limit) => {
    if (!limit) return;
    const y = u.valToPos(limit[0], "y", true);
    line(u, [[[u.bbox.left, y], [u.bbox.left + u.bbox.width, y]]], "red", [10, 3, 2, 3]);
    u.ctx.fillStyle = colour("red");
    u.ctx.font = `600 ${11.5 * devicePixelRatio}px system-ui, sans-serif`;
    u.ctx.textAlign = "right";
    u.ctx.textBaseline = y - u.bbox.top < 16 * devicePixelRatio ? "top" : "bottom";
    u.ctx.fillText(limit[1], u.bbox.left + u.bbox.width - 4, y);
  };

  const draw = (chart, width) => {
    const { element, data } = chart;
    const small = data.size === "small";
    const top = data.top > 0 ? data.top * 1.04 : 1;
    const text = { stroke: () => colour("quiet"), font: "11.5px system-ui, sans-serif", ticks: { stroke: () => colour("line"), size: 4 }, grid: { stroke: () => colour("line"), width: 1 } };
    const series = data.series.map(({ name, look, join, values }) => {
      const [stroke, lineWidth, dash] = looks[look];
      const points = { show: data.times.length < 3 };
      return {
        label: name, stroke: () => colour(stroke), width: lineWidth, dash, points, spanGaps: false,
        fill: join === "area" ? () => colour(stroke) + "22" : undefined,
        paths: join === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (u, value, s, index) => show(data.unit, index === null ? null : values[index]),
      };
    });
    const u = new uPlot({
      width, height: heights[data.size],
      padding: [8, 26, 0, 0],
      scales: { x: { time: false, range: [0, data.end || 1] }, y: { range: [0, top] } },
      axes: [
        { ...text, size: 26, space: small ? 60 : 80, values: (u, ticks) => ticks.map(clock),
          incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000] },
        { ...text, size: small ? 52 : 64, space: small ? 28 : 34, values: (u, ticks) => ticks.map((it) => show(data.unit, it)) },
      ],
      series: [{ label: "at", value: (u, value) => (value === null ? "–" : clock(value)) }, ...series],
      legend: { show: !small, markers: { width: 2, fill: () => "transparent", dash: (u, i) => (data.series[i - 1] && looks[data.series[i - 1].look][2] ? "dashed" : "solid") } },
      cursor: { drag: { x: false, y: false }, points: { show: !small } },
      hooks: { drawClear: [(u) => drawBands(u, chart.bands, data.end)], draw: [(u) => drawLimit(u, data.limit)] },
    }, [data.times, ...data.series.map(({ values }) => values.map((it) => (it === null ? null : Math.min(it, top))))], element);
    chart.u = u;
    const at = () => Math.min(Math.max(u.posToVal(u.cursor.left, "x"), 0), data.end);
    u.over.addEventListener("mousemove", (event) => { put(at()); if (small) tell(chart, event); });
    u.over.addEventListener("mouseleave", () => { tip.hidden = true; put(pinned); });
    u.over.addEventListener("click", () => { pinned = at(); });
    const save = Object.assign(document.createElement("a"), { className: "save", textContent: "save", href: "#", title: "save as a picture" });
    save.addEventListener("click", () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [u.ctx.canvas.width, u.ctx.canvas.height];
      const ctx = canvas.getContext("2d");
      ctx.fillStyle = colour("surface");
      ctx.fillRect(0, 0, canvas.width, canvas.height);
      ctx.drawImage(u.ctx.canvas, 0, 0);
      Object.assign(save, { href: canvas.toDataURL(), download: `${data.id}.png` });
    });
    element.append(save);
  };

  // A chart is drawn when it can be seen: one that is folded has no width.
  const seen = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const chart = charts.find(({ element }) => element === target);
      const width = Math.floor(contentRect.width);
      if (width < 1) continue;
      if (!chart.u) draw(chart, width);
      else if (chart.u.width !== width) chart.u.setSize({ width, height: heights[chart.data.size] });
    }
  });
  for (const element of document.querySelectorAll(".chart")) {
    const data = JSON.parse(element.querySelector("script").textContent);
    if (!bandsOf.has(data.bands)) {
      const bands = document.getElementById(data.bands);
      bandsOf.set(data.bands, bands && JSON.parse(bands.textContent));
    }
    charts.push({ element, data, bands: bandsOf.get(data.bands), u: null });
    seen.observe(element);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(({ u }) => u && u.redraw()));
  addEventListener("keydown", (event) => { if (event.key === "Escape") { pinned = null; tip.hidden = true; put(null); } });

  const press = (element, work) => {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", "0");
    element.addEventListener("click", work);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); work(); }
    });
  };
  // The key of a group of small charts hides and shows a line in all of them.
  for (const key of document.querySelectorAll(".group .key")) {
    key.setAttribute("aria-pressed", "true");
    press(key, () => {
      const show = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", String(show));
      for (const { element, data, u } of charts) {
        const index = data.series.findIndex((it) => it.name === key.dataset.name);
        if (u && index >= 0 && element.closest(".group") === key.closest(".group")) u.setSeries(index + 1, { show });
      }
    });
  }
  // A time in a table leads to it in the charts.
  for (const element of document.querySelectorAll(".at[data-at]")) {
    element.title = "put the cursor of all charts here";
    press(element, () => {
      pinned = Number(element.dataset.at);
      const first = document.querySelector("figure .chart");
      if (first) first.closest("figure").scrollIntoView();
      put(pinned);
    });
  }
  // The clients of a section, in a table and one that is unfolded, are sorted by a column that is pressed: numbers
  // largest first, then the other way round.
  for (const section of document.querySelectorAll("main section")) {
    const tables = [...section.querySelectorAll("table.sorts")];
    const heads = tables.map((table) => [...table.tHead.rows[0].cells]);
    const sort = (column, falls) => {
      const isNumber = heads[0][column].className === "n";
      const value = (row) => {
        const text = row.cells[column].textContent;
        return isNumber ? parseFloat(text.replaceAll(",", "")) : text;
      };
      const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
      rows.sort((a, b) => {
        const order = isNumber ? value(a) - value(b) : value(a).localeCompare(value(b));
        return falls ? -order : order;
      });
      // Each table keeps as many as it has; counted before rows move from one to another.
      const counts = tables.map((table) => table.tBodies[0].rows.length);
      tables.forEach((table, index) => table.tBodies[0].replaceChildren(...rows.splice(0, counts[index])));
      for (const cells of heads) {
        for (const cell of cells) cell.removeAttribute("aria-sort");
        cells[column].setAttribute("aria-sort", falls ? "descending" : "ascending");
      }
    };
    for (const head of heads.flat()) {
      if (!head.textContent) continue;
      head.title ||= "sort by this";
      press(head, () => sort(head.cellIndex, head.getAttribute("aria-sort") !== "descending"));
      // It stays the header of its column.
      head.removeAttribute("role");
    }
  }
})();
