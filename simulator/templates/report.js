// A cursor that stands at the same time in all charts, the values there, and lines that can be
// switched off. All values are read off the lines as they are drawn.
(() => {
  "use strict";
  const ns = "http://www.w3.org/2000/svg";
  const root = document.documentElement;
  root.classList.add("live");
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const charts = [...document.querySelectorAll("svg.chart[data-end]")].map((svg) => {
    const number = (name) => Number(svg.dataset[name]);
    const title = svg.querySelector(":scope > title");
    if (title) {
      // The title would be shown at the pointer, over the values.
      svg.setAttribute("aria-label", title.textContent);
      svg.removeAttribute("aria-labelledby");
      title.remove();
    }
    const figure = svg.closest("figure");
    return {
      svg, unit: svg.dataset.unit, left: number("left"), right: number("right"), top: number("top"),
      bottom: number("bottom"), most: number("most"), end: number("end"),
      capped: "capped" in svg.dataset, readout: figure && figure.querySelector(".readout"), lines: null, cursor: null,
    };
  });

  const pointsOf = (path) => {
    const runs = [];
    let x = 0, y = 0;
    for (const [, command, rest] of path.matchAll(/([MLHV])([^MLHVZ]*)/g)) {
      const [a, b] = rest.trim().split(" ").map(Number);
      if (command === "H") x = a; else if (command === "V") y = a; else [x, y] = [a, b];
      if (command === "M") runs.push([]);
      runs.at(-1).push([x, y]);
    }
    return runs;
  };

  const linesOf = (chart) => chart.lines ??= [...chart.svg.querySelectorAll(".series")].map((group) => {
    const path = group.querySelector(".stroke");
    return { group, name: group.dataset.name, order: Number(group.dataset.order), runs: path ? pointsOf(path.getAttribute("d")) : [] };
  }).sort((a, b) => a.order - b.order);

  // The least and the most that is drawn in the column at x; undefined where there is a gap.
  const heightsAt = (runs, x) => {
    for (const run of runs) {
      if (x < run[0][0] - 1 || x > run.at(-1)[0] + 1) continue;
      let low = 0, high = run.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (run[middle][0] < x - 0.5) low = middle + 1; else high = middle;
      }
      const found = [];
      for (let i = low; i < run.length && run[i][0] <= x + 0.5; i++) found.push(run[i][1]);
      if (!found.length) {
        const after = run[low], before = run[Math.max(low - 1, 0)];
        const part = after[0] > before[0] ? (x - before[0]) / (after[0] - before[0]) : 0;
        found.push(before[1] + (after[1] - before[1]) * Math.min(Math.max(part, 0), 1));
      }
      return [Math.max(...found), Math.min(...found)];
    }
    return undefined;
  };

  const show = (chart, value) => {
    // What is above the axis is drawn at its top.
    if (chart.capped && value >= chart.most * 0.999) return `≥ ${show({ ...chart, capped: false }, chart.most)}`;
    // A line is drawn no more exactly than this.
    const step = 10 ** Math.ceil(Math.log10(chart.most / 5000));
    value = Math.round(value / step) * step;
    if (chart.unit === "Part") return `${Number((value * 100).toPrecision(3))} %`;
    if (chart.unit === "Count") return String(Math.round(value));
    return Number(value.toPrecision(4)).toLocaleString("en");
  };

  const valuesAt = (chart, x) => linesOf(chart)
    .filter((line) => !line.group.classList.contains("off"))
    .map((line) => {
      const heights = heightsAt(line.runs, x);
      if (!heights) return [line.name, "–"];
      const [low, high] = heights.map((y) =>
        show(chart, (chart.bottom - y) / (chart.bottom - chart.top) * chart.most));
      return [line.name, low === high ? low : `${low} to ${high}`];
    });

  const clock = (seconds) => {
    const whole = Math.floor(seconds + 1e-6);
    const two = (number) => String(number).padStart(2, "0");
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  };

  // Puts the cursor at a time, in all charts that can be seen.
  const put = (seconds) => {
    for (const chart of charts) {
      const box = chart.svg.getBoundingClientRect();
      const seen = box.bottom > -200 && box.top < innerHeight + 200 && box.width > 0;
      if (seconds === null || !seen) {
        if (chart.cursor) chart.cursor.setAttribute("d", "");
        if (chart.readout) chart.readout.textContent = "";
        continue;
      }
      const part = chart.end > 0 ? Math.min(seconds / chart.end, 1) : 0;
      const x = chart.left + part * (chart.right - chart.left);
      if (!chart.cursor) {
        chart.cursor = document.createElementNS(ns, "path");
        chart.cursor.setAttribute("class", "cursor");
        chart.svg.append(chart.cursor);
      }
      chart.cursor.setAttribute("d", `M${x} ${chart.top}V${chart.bottom}`);
      if (chart.readout) {
        const values = valuesAt(chart, x).map(([name, value]) => `${name} ${value}`);
        chart.readout.textContent = [clock(seconds), ...values].join(" · ");
      }
    }
  };

  const tell = (chart, seconds, event) => {
    const part = chart.end > 0 ? seconds / chart.end : 0;
    const values = valuesAt(chart, chart.left + part * (chart.right - chart.left));
    tip.replaceChildren();
    const time = document.createElement("b");
    time.textContent = clock(seconds);
    tip.append(time);
    for (const [name, value] of values) {
      const row = document.createElement("span");
      for (const text of [name, value]) {
        const cell = document.createElement("i");
        cell.style.fontStyle = "normal";
        cell.textContent = text;
        row.append(cell);
      }
      tip.append(row);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const fits = event.clientX + 18 + box.width < innerWidth;
    tip.style.left = `${Math.max(4, fits ? event.clientX + 16 : event.clientX - 16 - box.width)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.height - 6))}px`;
  };

  let asked = 0;
  // Where the cursor stays when the pointer is nowhere.
  let pinned = null;
  const later = (work) => { cancelAnimationFrame(asked); asked = requestAnimationFrame(work); };
  for (const chart of charts) {
    const at = (event) => {
      const box = chart.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * chart.svg.viewBox.baseVal.width;
      return Math.min(Math.max((x - chart.left) / (chart.right - chart.left), 0), 1) * chart.end;
    };
    chart.svg.addEventListener("pointermove", (event) => later(() => {
      put(at(event));
      if (linesOf(chart).length) tell(chart, at(event), event);
    }));
    chart.svg.addEventListener("pointerleave", () => later(() => { tip.hidden = true; put(pinned); }));
    chart.svg.addEventListener("click", (event) => {
      if (!event.target.closest(".key")) pinned = at(event);
    });
  }
  addEventListener("scroll", () => { if (pinned !== null) later(() => put(pinned)); }, { passive: true });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pinned = null; tip.hidden = true; put(null); }
  });

  const press = (element, work) => {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", "0");
    element.addEventListener("click", work);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); work(); }
    });
  };
  for (const key of document.querySelectorAll('.key[data-name]:not([data-name=""])')) {
    const scope = key.closest("svg.chart:not(.sample)") || key.closest(".group");
    if (!scope) continue;
    key.setAttribute("aria-pressed", "true");
    press(key, () => {
      const on = key.getAttribute("aria-pressed") !== "true";
      key.setAttribute("aria-pressed", String(on));
      for (const series of scope.querySelectorAll(".series"))
        if (series.dataset.name === key.dataset.name) series.classList.toggle("off", !on);
    });
  }
  // The clients of a section, in a table and one that is unfolded, are sorted by a column that is
  // pressed: numbers largest first, then the other way round.
  for (const section of document.querySelectorAll("main section")) {
    const tables = [...section.querySelectorAll("table.sorts")];
    const heads = tables.map((table) => [...table.tHead.rows[0].cells]);
    const value = (row, column, isNumber) => {
      const text = row.cells[column].textContent;
      return isNumber ? parseFloat(text.replaceAll(",", "")) : text;
    };
    const sort = (column, falls) => {
      const isNumber = heads[0][column].className === "n";
      const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
      rows.sort((a, b) => {
        const [x, y] = [value(a, column, isNumber), value(b, column, isNumber)];
        const order = isNumber ? x - y : x.localeCompare(y);
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
  // A time in a table leads to it in the charts.
  for (const element of document.querySelectorAll(".at[data-at]")) {
    element.title = "put the cursor of all charts here";
    press(element, () => {
      pinned = Number(element.dataset.at);
      const first = document.querySelector("figure svg.chart[data-end]");
      if (first) first.closest("figure").scrollIntoView();
      put(pinned);
    });
  }
})();
