// Draws films of kernels (film.py): a function of the element that hosts the player, the films, and
// a setting. All that it shows is in the films; it asks nobody.
//
// A film: source [[line, text]], warps [[name, block, lanes, first thread]], arrays, steps. A step:
// k kind, w warp, r row of the source, m mask of the lanes, t words, c counters up to here; of an
// access also a array, p offsets by lane in the array's unit, z bytes, v values, f [cost, least, queue], q whether
// it is raced for; o: with it a barrier opens. Of k begun and arrived, an asynchronous copy (z 0: a wgmma): g its array,
// p and z as of an access.
//
// films: these, or the same deflated, as letters (player.py packs it).
async (host, films, setting) => {
  "use strict";
  if (host.shadowRoot) return;
  const root = host.attachShadow({ mode: "open" });
  if (typeof films === "string") {
    const bytes = Uint8Array.from(atob(films), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    films = await new Response(unpacked).json();
  }
  const two = films.length > 1;
  const RED = "#d03a00", AMBER = "#e69f00", GREEN = "#1a8f5f", ORANGE = "#f0b76a", BLUE = "#0072b2";
  const WARP = 32, SECTOR = 32, ROW = 128;

  // ---- what a step says

  const bits = (mask) => {
    const lanes = [];
    for (let lane = 0; lane < WARP; lane++) if ((mask / 2 ** lane) & 1) lanes.push(lane);
    return lanes;
  };
  const many = (n, word, words) => `${n.toLocaleString("en")} ${n === 1 ? word : words}`;
  const list = (packed, count) =>
    Array.isArray(packed) ? packed : Array.from({ length: count }, (_, n) => packed.from + packed.by * n);
  // What is on its way without a thread that waits for it: from which step to which, and in which row it is drawn
  const flightsOf = (film) => {
    const flights = [], open = new Map(), ends = [];
    film.steps.forEach((step, number) => {
      if (step.g === undefined) return;
      const keys = step.p.map((offset) => `${step.g} ${offset} ${step.z}`);
      if (step.k === "begun") {
        const flight = { step, from: number, to: film.steps.length };
        flights.push(flight);
        for (const key of keys) open.set(key, flight);
      } else for (const key of keys) {
        if (open.has(key)) open.get(key).to = number;
        open.delete(key);
      }
    });
    for (const flight of flights) {
      const free = ends.findIndex((end) => end <= flight.from);
      flight.row = free < 0 ? ends.length : free;
      ends[flight.row] = flight.to;
    }
    flights.rows = Math.min(ends.length, 12);
    return flights;
  };
  for (const film of films) {
    for (const step of film.steps) {
      step.lanes = bits(step.m);
      const array = step.a ?? step.g;
      if (array === undefined) continue;
      step.p = list(step.p, step.lanes.length).map((offset) => offset * film.arrays[array].unit);
      step.v = step.v && list(step.v, step.lanes.length);
    }
    film.flights = flightsOf(film);
    film.last = film.warps.map((_, w) => film.steps.findLastIndex((step) => step.w === w));
    film.starts = [];
    film.ticks = 0;
    for (const step of film.steps) {
      film.starts.push(film.ticks);
      film.ticks += two ? Math.max(1, ...(step.f ? [step.f[0], step.f[2]] : [])) : 1;
    }
  }

  const indexOf = (array, offset) => {
    const index = array.shape.map(() => 0);
    const order = array.strides.map((stride, axis) => [stride, axis]).sort((a, b) => b[0] - a[0]);
    for (const [stride, axis] of order) {
      if (stride <= 0) continue;
      index[axis] = Math.floor(offset / stride);
      offset -= index[axis] * stride;
    }
    return index;
  };
  const isInside = (array, index) => index.every((i, axis) => i >= 0 && i < array.shape[axis]);
  const elementOf = (array, offset) => `${array.name}[${indexOf(array, offset).join(", ")}]`;
  const cellOf = (array, offset) => {
    const index = indexOf(array, offset);
    if (!isInside(array, index)) return -1;
    return index.reduce((flat, i, axis) => flat * array.shape[axis] + i, 0);
  };
  const threadOf = (film, w, lane) => {
    const rank = film.warps[w][3] + lane;
    const [x, y, z] = film.block;
    const name = y * z === 1 ? `${rank}`
      : `(${[rank % x, Math.floor(rank / x) % y, ...(z > 1 ? [Math.floor(rank / x / y)] : [])].join(",")})`;
    return `Thread ${name}${film.blocks.length > 1 ? ` of ${film.unit || "block"} ${film.blocks[film.warps[w][1]]}` : ""}`;
  };

  const shortName = (film, w) => film.warps[w][0].replace(/^([BP])\w+ (.*), warp /, (_, unit, name) => `${unit.toLowerCase()}${name} w`).replace(/^Warp /, "w");

  // ---- the page

  const make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const style = make("style", {}, setting.css);
  const film0 = films[0];
  const title = setting.title || film0.title;
  const head = make("div", { class: "head" }, make("b", {}, two ? "" : title)); // two have their names
  const about = (film) => [film.leftOut, film.verdict].filter(Boolean).join(" ");
  if (!two) head.append(make("span", {}, about(film0)));
  head.hidden = two;
  const all = make("div", { class: two ? "all two" : "all" });
  const bar = make("div", { class: "bar", role: "toolbar", "aria-label": "Player" });
  const box = make("div", { class: "film", tabindex: "0", role: "group", "aria-label": `Film of ${title}` }, head, all, bar);
  if (host.closest(".reveal")) box.classList.add("deck");
  root.append(style, box, make("slot"));

  const button = (name, words, text, act) => {
    const made = make("button", { type: "button", class: name, "aria-label": words, title: words }, text);
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  const ticks = Math.max(...films.map((film) => film.ticks), 1);
  let now = 0, playing = 0;
  button("first", "To the beginning (Home)", "|◁", () => { pause(); go(0); });
  button("back", "One step back (left arrow)", "◁", () => move(-1));
  const play = button("play", "Play (space)", "▶\uFE0E Play", () => (playing ? pause() : start()));
  button("next", "One step on (right arrow)", "▷", () => move(1));
  const scrub = make("input", { type: "range", min: 0, max: ticks - 1, value: 0, "aria-label": two ? "tick" : "step" });
  scrub.addEventListener("input", () => { pause(); go(+scrub.value); });
  const where = make("span", { class: "where" });
  const speed = make("select", { "aria-label": "speed", title: "speed" });
  const unit = two ? "ticks" : "steps";
  for (const rate of two ? [2, 8, 30, 120] : [0.5, 1, 2, 5, 20])
    speed.append(make("option", { value: rate }, `${rate} ${unit}/s`));
  speed.value = !two ? "2" : ticks > 600 ? "120" : ticks > 150 ? "30" : ticks > 40 ? "8" : "2";
  bar.append(scrub, where, speed);
  const moments = films.map((film) => (film.stop === null ? Infinity : film.starts[film.stop]));
  const wrong = Math.min(...moments);
  if (wrong < Infinity) button("stop", "To the step at which it goes wrong", "⚠\uFE0E Where it goes wrong", () => { pause(); goWrong(); });
  const keys = "Keys: space plays, ←\u00a0→ step, Home and End. Point at a lane or an element to see what it did.";
  const clock = "One clock for both: an access takes as many ticks as it has sectors, passes or lanes in a queue; every other step one. Ticks are not time. ";
  bar.append(make("span", { class: "keys" }, (two ? clock : "") + keys));

  const views = films.map((film) => {
    const code = make("ol", { class: "code", "aria-label": "source", tabindex: "0" });
    const rows = film.source.map(([line, text]) => {
      const row = make("li", {}, make("em"), make("i", {}, `${line}`), make("code", {}, text || " "));
      code.append(row);
      return row;
    });
    const canvas = make("canvas", { role: "img" });
    const tip = make("div", { class: "tip", hidden: "" });
    const stage = make("div", { class: "stage" }, canvas, tip);
    const said = make("p", { class: "said", role: "status", "aria-live": "polite" });
    const counts = make("dl", { class: "counts" });
    const one = make("section", { class: "one" });
    if (two) one.append(make("div", { class: "name" }, film.name || film.title, make("span", {}, about(film))));
    one.append(code, stage, said, counts);
    all.append(one);
    if (two) code.style.minHeight = `${Math.min(176, 10 + 20 * Math.max(...films.map((each) => each.source.length)))}px`;
    const view = { film, one, code, rows, canvas, tip, stage, said, counts, spots: [], at: -1, state: null };
    const point = (event) => showTip(view, event);
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerdown", point);
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    return view;
  });

  // Where there is no room for two films side by side, one is shown, and a switch
  const tabs = views.map((view, number) => {
    const tab = make("button", { type: "button" }, view.film.name || view.film.title);
    tab.addEventListener("click", () => choose(number));
    return tab;
  });
  const choose = (chosen) => two && views.forEach((view, number) => {
    view.one.classList.toggle("other", number !== chosen);
    tabs[number].setAttribute("aria-pressed", number === chosen);
    if (view.at >= 0) draw(view);
  });
  if (two) {
    all.before(make("div", { class: "switch", role: "group", "aria-label": "which film" }, ...tabs));
    choose(0);
  }

  // ---- what has happened up to a step

  const fresh = (film) => ({
    at: -1,
    warps: film.warps.map(() => null),
    waiting: film.warps.map(() => []),
    arrays: film.arrays.map(() => new Map()),
    flying: film.arrays.map(() => new Set()),
    opened: false,
  });
  const advance = (film, state) => {
    const number = ++state.at, step = film.steps[number];
    if (state.opened) for (const w of state.opened) state.waiting[w] = [];
    state.opened = false;
    state.warps[step.w] = number;
    if (step.k === "barrier") {
      state.waiting[step.w] = [...state.waiting[step.w], ...step.lanes];
      const block = film.warps[step.w][1];
      if (step.o) state.opened = film.warps.map((_, w) => w).filter((w) => film.warps[w][1] === block);
    } else if (step.k !== "stuck") {
      state.waiting[step.w] = state.waiting[step.w].filter((lane) => !step.lanes.includes(lane));
    }
    if (step.g !== undefined) fly(film, state, step, number);
    if (step.a === undefined) return;
    const cells = state.arrays[step.a];
    step.lanes.forEach((lane, n) => {
      const cell = cellOf(film.arrays[step.a], step.p[n]);
      const before = cells.get(cell);
      const written = step.k !== "read" || (before && before.written);
      cells.set(cell, { written, kind: step.k, step: number, n });
    });
  };
  // A copy's elements are on their way, or there
  const fly = (film, state, step, number) => {
    const array = film.arrays[step.g], flying = state.flying[step.g];
    step.p.forEach((offset, n) => {
      for (let byte = 0; byte < step.z; byte += array.size) {
        const cell = cellOf(array, offset + byte);
        if (step.k === "begun") { flying.add(cell); continue; }
        flying.delete(cell);
        state.arrays[step.g].set(cell, { written: true, kind: "arrived", step: number, n });
      }
    });
  };
  const stateAt = (view, number) => {
    if (!view.state || view.state.at > number) view.state = fresh(view.film);
    while (view.state.at < number) advance(view.film, view.state);
    return view.state;
  };

  // ---- drawing

  const isDark = (colour) => {
    const [r, g, b] = (colour.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
    const scale = colour.startsWith("color(") ? 255 : 1;
    return (0.3 * r + 0.6 * g + 0.1 * b) * scale > 128;
  };
  const draw = (view) => {
    const { film, canvas } = view;
    const width = Math.max(260, Math.floor(view.stage.clientWidth || 600));
    const layout = layoutOf(view, width);
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(layout.height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(layout.height * ratio);
      canvas.style.height = `${layout.height}px`;
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, layout.height);
    const ink = getComputedStyle(box).color;
    box.style.colorScheme = isDark(ink) ? "dark" : "light";
    const tools = { g, ink, dark: isDark(ink), width, layout, view, film, spots: [], drawn: { at: view.at, lit: [], waits: [], now: [], sectors: 0, passes: 0 } };
    const step = film.steps[view.at];
    view.drawn = tools.drawn;
    if (step) {
      const state = stateAt(view, view.at);
      drawLanes(tools, state, step);
      drawFlights(tools, state);
      drawRequest(tools, step);
      drawArrays(tools, state, step);
    }
    view.spots = tools.spots;
    box.drawn = views.map((each) => each.drawn); // what tests compare with the record
  };

  const text = ({ g, ink, width }, words, x, y, { size = 12, align = "left", colour = ink, bold = false, alpha = 1, mono = false } = {}) => {
    g.globalAlpha = alpha;
    g.fillStyle = colour;
    g.font = `${bold ? "600 " : ""}${size}px ${mono ? '"DejaVu Sans Mono", ui-monospace, monospace' : "system-ui, sans-serif"}`;
    g.textAlign = align;
    g.textBaseline = "middle";
    if (align === "left") g.fillText(words, x, y, Math.max(20, width - x)); else g.fillText(words, x, y);
    g.globalAlpha = 1;
  };
  const cell = (g, x, y, w, h, fill, { alpha = 1, line = null, thick = 1 } = {}) => {
    g.globalAlpha = alpha;
    if (fill) { g.fillStyle = fill; g.fillRect(x, y, w, h); }
    if (line) { g.strokeStyle = line; g.lineWidth = thick; g.strokeRect(x + thick / 2, y + thick / 2, w - thick, h - thick); }
    g.globalAlpha = 1;
  };

  // Where things are, the same at every step, so that nothing jumps
  const layoutOf = (view, width) => {
    const { film } = view;
    if (view.layout && view.layout.width === width) return view.layout;
    const label = width > 420 ? 92 : 70; // one left edge and one grid for lanes, sectors, banks and memory
    const side = Math.max(5, Math.min(18, Math.floor((width - label - 26) / WARP)));
    const rowHeight = film.warps.length > 8 ? 10 : Math.min(Math.max(side, 12), 15);
    const lanes = { label, side, rowHeight, top: 38, pitch: rowHeight + 3 };
    let y = lanes.top + film.warps.length * lanes.pitch + 12;
    const flights = { top: y, label };
    if (film.flights.length) y += 34 + film.flights.rows * 17;
    const request = { top: y, height: Math.max(0, ...films.flatMap((each) => each.steps.map((step) => heightOf(each, step)))) };
    y += request.height;
    const slots = new Map();
    let x = label, tallest = 0;
    film.arrays.forEach((array, number) => {
      const same = JSON.stringify([array.name, array.space, array.shape]);
      const known = array.space === "shared" && slots.get(same);
      if (known) { known.arrays.push(number); return; }
      const cells = array.shape.reduce((a, b) => a * b, 1);
      const columns = array.shape.length > 1 ? array.shape.at(-1) : Math.min(cells, WARP);
      const all = Math.ceil(cells / Math.max(columns, 1));
      const isRow = columns === WARP; // an element stands below the lane of its number
      const left = columns > WARP ? 0 : label;
      const down = Math.max(2, Math.min(13, Math.floor((width - left - 2) / columns), Math.floor(150 / all)));
      const across = isRow ? side : down;
      const rows = Math.min(all, Math.ceil(150 / down));
      const words = `${array.name} · ${array.space}${rows < all ? ` · ${rows} of ${all} rows` : ""}`;
      const wide = Math.max(columns * across, words.length * 7.2) + 18;
      if (x > label && (x + wide > width + 18 || left < label)) { y += tallest + 12; x = label; tallest = 0; }
      if (x === label) x = left;
      const slot = { arrays: [number], x, y, columns, rows, across, down, words };
      slots.set(same + (array.space === "shared" ? "" : number), slot);
      x += wide;
      tallest = Math.max(tallest, rows * down + 22);
    });
    view.layout = { width, lanes, flights, request, slots: [...slots.values()], height: Math.ceil(y + tallest + 22) };
    return view.layout;
  };

  // Pixels that the picture of a step's access takes
  const heightOf = (film, step) => {
    if (step.a === undefined) return 0;
    if (step.k === "atomic") return 40 + 19 * Math.min(7, new Set(step.p).size) + 12;
    const array = film.arrays[step.a];
    if (array.space === "shared") return 66 + Math.min(130, 16 * Math.max(2, step.f[0]));
    const rows = new Set(step.p.map((offset) => Math.floor((array.start + offset) / ROW))).size;
    return 48 + Math.min(140, 18 * rows);
  };

  const drawLanes = (tools, state, step) => {
    const { g, film, layout, dark, ink, spots } = tools;
    const { label, side, rowHeight, top, pitch } = layout.lanes;
    text(tools, "warps, lane by lane", 0, 8, { bold: true });
    for (const lane of [0, 8, 16, 24, 31]) text(tools, `${lane}`, label + (lane + 0.5) * side, 27, { size: 11, align: "center", alpha: 0.75 });
    const gate = label + WARP * side + 9;
    const waits = state.waiting.map((lanes) => lanes.length);
    film.warps.forEach(([, block, lanes], w) => {
      const y = top + w * pitch;
      const acts = w === step.w;
      const mine = state.warps[w] === null ? null : film.steps[state.warps[w]];
      const done = mine && state.at >= film.last[w] && !acts && !waits[w];
      text(tools, shortName(film, w), label - 6, y + rowHeight / 2, { size: 11, align: "right", bold: acts, alpha: acts ? 1 : 0.75 });
      for (let lane = 0; lane < lanes; lane++) {
        const active = mine && mine.lanes.includes(lane);
        const waiting = state.waiting[w].includes(lane);
        const x = label + lane * side + (waiting ? 5 : 0);
        let fill = ink, alpha = 0.1, line = null;
        if (waiting) { fill = AMBER; alpha = 1; tools.drawn.waits.push([w, lane]); }
        else if (step.k === "stuck") { fill = RED; alpha = film.warps[step.w][1] === block ? 0.85 : 0.1; }
        else if (acts) { if (active) tools.drawn.lit.push(lane); fill = active ? setting.colours[lane][0] : ink; alpha = active ? 1 : 0.12; }
        else if (done) { alpha = 0.05; }
        else if (mine) { fill = active ? BLUE : ink; alpha = active ? 0.35 : 0.12; }
        if (film.wrong && state.at === film.stop && film.wrong.who.some(([v, l]) => v === w && l === lane)) line = RED;
        cell(g, x + 0.5, y, side - 1, rowHeight, fill, { alpha });
        if (mine && !active && !waiting && !done && step.k !== "stuck") {
          const dot = Math.max(3, Math.round(side * 0.4));
          cell(g, x + (side - dot) / 2, y + (rowHeight - dot) / 2, dot, dot, ink, { alpha: acts ? 1 : 0.4 });
        }
        if (line) cell(g, x - 0.5, y - 1, side + 1, rowHeight + 2, null, { line, thick: 2.5 });
        spots.push({ x, y, w: side, h: rowHeight, tell: () => laneTip(film, state, w, lane) });
      }
      if (acts) { text(tools, "◀", gate + 6, y + rowHeight / 2, { size: 11 }); }
    });
    if (film.barriers) {
      const block = film.warps[step.w][1];
      film.blocks.forEach((_, b) => {
        const mine = film.warps.map((_, w) => w).filter((w) => film.warps[w][1] === b);
        const total = mine.reduce((sum, w) => sum + film.warps[w][2], 0);
        const here = mine.reduce((sum, w) => sum + waits[w], 0);
        const opens = state.opened && state.opened.includes(mine[0]);
        const y = top + mine[0] * pitch - 2, h = mine.length * pitch;
        cell(g, gate - 3, y, 4, h, opens ? GREEN : here ? RED : ink, { alpha: here ? 1 : 0.2 });
        if (b === block && here) {
          const words = opens ? "barrier: all are here, it opens" : `barrier: ${here} of ${total} threads wait`;
          text(tools, words, gate, 8, { align: "right", bold: true, colour: opens ? (dark ? "#4fc795" : "#0b6b45") : dark ? "#ff9b6a" : "#a33200" });
        }
      });
    }
  };

  const laneTip = (film, state, w, lane) => {
    const number = state.warps[w];
    const head = `${threadOf(film, w, lane)} (warp ${film.warps[w][3] / WARP}, lane ${lane})`;
    if (number === null) return `${head}\nhas not begun`;
    let found = number;
    while (found >= 0 && !(film.steps[found].w === w && film.steps[found].lanes.includes(lane))) found--;
    if (found < 0) return `${head}\nmasked in line ${film.source[film.steps[number].r][0]}`;
    const step = film.steps[found];
    const line = film.source[step.r][0];
    const masked = found !== number ? `\nmasked now; last in line ${line}` : `\nline ${line}`;
    if (state.waiting[w].includes(lane)) return `${head}\nwaits at the barrier in line ${line}`;
    if (step.a === undefined) return head + masked;
    return `${head}${masked}\n${accessOf(film, step, step.lanes.indexOf(lane))}`;
  };
  const accessOf = (film, step, n) => {
    const verb = { read: "reads", write: "writes", atomic: "changes", begun: "begins a copy to", arrived: "has, by a copy," }[step.k];
    const element = elementOf(film.arrays[step.a ?? step.g], step.p[n]);
    const value = step.v && step.v[n] !== null ? `: ${step.v[n]}` : "";
    return `${verb} ${element}${value}${value && step.q ? "\n(the value in this run: a race)" : ""}`;
  };

  // A timeline, a bar for each copy or product that is on its way, a line where the film is
  const drawFlights = (tools, state) => {
    const { g, film, layout, width, ink, dark, spots } = tools;
    if (!film.flights.length) return;
    const { top, label } = layout.flights;
    const across = (width - label - 8) / film.steps.length;
    const under = film.flights.filter((flight) => flight.from <= state.at && state.at < flight.to).length;
    heading(tools, "on their way", under ? `${many(under, "copy or product", "copies or products")} now` : "nothing now", false, top);
    for (const flight of film.flights) {
      if (flight.row >= film.flights.rows) continue;
      const x = label + flight.from * across, y = top + 24 + flight.row * 17;
      const w = Math.max(3, (flight.to - flight.from) * across - 1);
      const isNow = flight.from <= state.at && state.at < flight.to;
      const { step } = flight;
      cell(g, x, y, w, 14, isNow ? AMBER : state.at < flight.from ? ink : GREEN, { alpha: isNow ? 1 : state.at < flight.from ? 0.12 : 0.55 });
      const words = `${step.z ? "" : "wgmma "}${elementOf(film.arrays[step.g], step.p[0])}`;
      if (w > words.length * 7) text(tools, words, x + 4, y + 7.5, { size: 11, mono: true, colour: isNow ? "#222" : ink });
      spots.push({ x, y, w, h: 14, tell: () => `${step.t}\n${flight.to < film.steps.length ? `arrives at step ${flight.to + 1}` : "nobody waits for it"}` });
    }
    const now = label + (state.at + 0.5) * across;
    cell(g, now - 1, top + 20, 2, film.flights.rows * 17 + 6, dark ? "#fff" : "#000");
  };

  const drawRequest = (tools, step) => {
    const { layout } = tools;
    if (!layout.request.height) return;
    const top = layout.request.top;
    if (step.a === undefined) {
      const words = { begun: "a copy engine, or the tensor cores, work on their own", arrived: "what was on its way is there", line: "no memory: registers only", barrier: "no memory: a barrier", meet: "no memory: lanes of the warp meet", stuck: "nothing moves any more" };
      text(tools, "memory", 0, top + 8, { bold: true });
      text(tools, words[step.k] || "", 62, top + 8, { alpha: 0.75 });
      return;
    }
    if (step.k === "atomic") drawQueue(tools, step, top);
    else if (tools.film.arrays[step.a].space === "shared") drawBanks(tools, step, top);
    else drawSectors(tools, step, top);
  };

  const heading = (tools, title, words, bad, top) => {
    tools.g.font = "600 12px system-ui, sans-serif";
    const after = tools.g.measureText(title).width + 10;
    const fits = after + tools.g.measureText(words).width < tools.width;
    const x = fits ? after : 0;
    if (fits) text(tools, title, 0, top + 8, { bold: true });
    text(tools, words, x, top + 8, bad ? { bold: true, colour: tools.dark ? "#ff9b6a" : "#a33200" } : {});
  };
  const DOING = { read: "read", write: "written", atomic: "changed" };

  const drawSectors = (tools, step, top) => {
    const { g, film, layout, width, ink, spots } = tools;
    const array = film.arrays[step.a];
    const [cost, least] = step.f;
    const more = cost > least ? `, ${least} would do` : "";
    heading(tools, "sectors of global memory", `${array.name} ${DOING[step.k]}: ${many(cost, "sector", "sectors")}${more}`, cost > least, top);
    const rows = new Map();
    step.lanes.forEach((lane, n) => {
      for (let byte = 0; byte < step.z; byte += Math.min(step.z, SECTOR)) {
        const address = array.start + step.p[n] + byte;
        const row = Math.floor(address / ROW);
        if (!rows.has(row)) rows.set(row, []);
        rows.get(row).push([address - row * ROW, lane, n]);
      }
    });
    const order = [...rows.keys()].sort((a, b) => a - b);
    const height = Math.max(4, Math.min(18, Math.floor(140 / order.length)));
    const shown = order.slice(0, Math.floor(140 / height));
    const { label, side } = layout.lanes;
    const gap = side > 8 ? 2 : 1;
    const sector = (side * WARP) / 4 - gap;
    const unit = Math.min(step.z, SECTOR);
    const across = (side * unit) / 4;
    shown.forEach((row, number) => {
      const y = top + 24 + number * height;
      const h = height - (height > 8 ? 3 : 1);
      const first = Math.max(0, row * ROW - array.start);
      if (height >= 12 || number % Math.ceil(12 / height) === 0) text(tools, elementOf(array, first).slice(0, 13), label - 6, y + h / 2, { size: 11, align: "right", mono: true, alpha: 0.85 });
      const moved = new Set(rows.get(row).map(([within]) => Math.floor(within / SECTOR)));
      tools.drawn.sectors += moved.size;
      for (let s = 0; s < 4; s++) {
        const x = label + s * (sector + gap);
        if (moved.has(s)) cell(g, x, y, sector, h, ORANGE);
        else cell(g, x, y, sector, h, null, { line: ink, alpha: 0.25 });
      }
      for (const [within, lane, n] of rows.get(row)) {
        const s = Math.floor(within / SECTOR);
        const x = label + (within / unit) * across;
        const w = Math.max(1, across - (x + across >= label + (s + 1) * (sector + gap) ? gap : 0));
        cell(g, x, y, w, h, setting.colours[lane][0]);
        if (across >= 16 && h >= 12) text(tools, `${lane}`, x + w / 2, y + h / 2 + 0.5, { size: 11, align: "center", colour: setting.colours[lane][1] });
        spots.push({ x, y, w: Math.max(w, 3), h, tell: () => `${threadOf(film, step.w, lane)} (lane ${lane})\n${accessOf(film, step, n)}` });
      }
    });
    const bottom = top + 24 + shown.length * height + 8;
    const rest = order.length - shown.length;
    const words = cost > least ? "orange: moved, not asked for" : "";
    const hidden = rest > 0 ? `and ${many(rest, "row", "rows")} more` : "";
    text(tools, [words, hidden].filter(Boolean).join(" · "), width, bottom, { size: 11, align: "right", alpha: 0.85 });
  };

  // {bank: [[lane numbers of a pass]]}; wide accesses are served by halves and quarters of a warp
  const passesOf = (array, step) => {
    const phase = Math.max(1, Math.floor((WARP * 4) / Math.max(step.z, 4)));
    const banks = Array.from({ length: WARP }, () => new Map());
    step.lanes.forEach((lane, n) => {
      const address = array.start + step.p[n];
      const end = Math.floor((address + Math.max(step.z, 1) - 1) / 4);
      for (let word = Math.floor(address / 4); word <= end; word++) {
        const key = `${Math.floor(lane / phase)} ${word}`;
        const bank = banks[((word % WARP) + WARP) % WARP];
        if (!bank.has(key)) bank.set(key, []);
        bank.get(key).push([lane, n]);
      }
    });
    return { banks, phases: new Set(step.lanes.map((lane) => Math.floor(lane / phase))).size };
  };
  const drawBanks = (tools, step, top) => {
    const { g, film, layout, width, ink, spots } = tools;
    const array = film.arrays[step.a];
    const [cost, least] = step.f;
    const more = cost > least ? `: a bank conflict, ${least} would do` : ", no conflict";
    heading(tools, "banks of shared memory", `${array.name} ${DOING[step.k]}: ${many(cost, "pass", "passes")}${more}`, cost > least, top);
    const { banks, phases } = passesOf(array, step);
    const worst = Math.max(...banks.map((bank) => bank.size), 2);
    tools.drawn.passes = Math.max(...banks.map((bank) => bank.size));
    const { label, side } = layout.lanes;
    const ground = top + tools.layout.request.height - 32;
    const height = Math.max(3, Math.min(16, Math.floor(130 / worst)));
    banks.forEach((bank, b) => {
      const x = label + b * side;
      [...bank.values()].forEach((who, pass) => {
        const y = ground - (pass + 1) * height;
        const late = pass >= phases;
        const [colour, on] = setting.colours[who[0][0]];
        cell(g, x + 0.5, y + 0.5, side - 1, height - (height > 5 ? 1 : 0.5), late ? RED : colour);
        if (side >= 13 && height >= 12) text(tools, who.length > 1 ? `×${who.length}` : `${who[0][0]}`, x + side / 2, y + height / 2, { size: 11, align: "center", colour: late ? "#fff" : on });
        spots.push({ x, y, w: side, h: height, tell: () => `bank ${b}, pass ${pass + 1}\n${who.length > 1 ? `${who.length} lanes share one word\n` : ""}${threadOf(film, step.w, who[0][0])} (lane ${who[0][0]})\n${accessOf(film, step, who[0][1])}` });
      });
      cell(g, x + 0.5, ground, side - 1, 3, ink, { alpha: bank.size ? 0.7 : 0.2 });
      if (b % 8 === 0) text(tools, `${b}`, x + side / 2, ground + 12, { size: 11, align: "center", alpha: 0.8 });
    });
    if (cost > least) text(tools, "red: passes that conflicts add", width, top + 26, { size: 11, align: "right", alpha: 0.85 });
  };

  const drawQueue = (tools, step, top) => {
    const { g, film, layout, width, spots } = tools;
    const array = film.arrays[step.a];
    const queue = step.f[2];
    const words = queue > 1 ? `up to ${queue} lanes for one element, one after the other` : "each lane has an element of its own";
    heading(tools, "queues of the atomics", words, queue > 1, top);
    const places = new Map();
    step.lanes.forEach((lane, n) => {
      if (!places.has(step.p[n])) places.set(step.p[n], []);
      places.get(step.p[n]).push([lane, n]);
    });
    const order = [...places.entries()].sort((a, b) => b[1].length - a[1].length || a[0] - b[0]);
    const { label, side } = layout.lanes;
    const shown = order.slice(0, 7);
    shown.forEach(([offset, who], number) => {
      const y = top + 26 + number * 19;
      text(tools, elementOf(array, offset).slice(0, 13), label - 8, y + 8, { size: 11, align: "right", mono: true });
      who.forEach(([lane, n], place) => {
        const x = label + place * side;
        const [colour, on] = place ? [RED, "#fff"] : setting.colours[lane];
        cell(g, x + 0.5, y, side - 1, 16, colour);
        if (side >= 14) text(tools, `${lane}`, x + side / 2, y + 8.5, { size: 11, align: "center", colour: on });
        spots.push({ x, y, w: side, h: 16, tell: () => `${threadOf(film, step.w, lane)} (lane ${lane})\n${accessOf(film, step, n)}\n${place ? `waits for ${place} before it` : "is first"}` });
      });
    });
    if (order.length > shown.length) text(tools, `and ${many(order.length - shown.length, "element", "elements")} more`, width, top + 26 + shown.length * 19 + 6, { size: 11, align: "right", alpha: 0.85 });
  };

  const drawArrays = (tools, state, step) => {
    const { g, film, layout, ink, dark, spots } = tools;
    const block = film.warps[step.w][1];
    for (const slot of layout.slots) {
      const number = slot.arrays.find((n) => film.arrays[n].block === block) ?? slot.arrays[0];
      const array = film.arrays[number];
      const cells = state.arrays[number];
      const busy = (step.a ?? step.g) === number;
      const { x, y, columns, rows, across, down } = slot;
      text(tools, slot.words, x, y + 7, { size: 12, bold: busy });
      const top = y + 18;
      const total = array.shape.reduce((a, b) => a * b, 1);
      const shown = Math.min(total, rows * columns);
      const gap = Math.min(across, down) > 4 ? 1 : 0;
      const untouched = array.space === "shared" ? 0.06 : 0.13;
      const solid = gap === 0 && shown % columns === 0; // one shape for all that nobody has touched
      if (solid) cell(g, x, top, columns * across, (shown / columns) * down, ink, { alpha: untouched });
      for (const n of solid ? new Set([...cells.keys(), ...state.flying[number]]) : Array(shown).keys()) {
        if (n < 0 || n >= shown) continue;
        const cx = x + (n % columns) * across, cy = top + Math.floor(n / columns) * down;
        const last = cells.get(n);
        const isNow = last && last.step === state.at;
        let fill = ink, alpha = untouched;
        if (isNow) { fill = setting.colours[step.lanes[last.n]][0]; alpha = 1; tools.drawn.now.push([number, n]); }
        else if (state.flying[number].has(n)) { fill = AMBER; alpha = dark ? 0.5 : 0.6; }
        else if (last && last.written) { fill = ORANGE; alpha = dark ? 0.75 : 0.85; }
        else if (last) { fill = "#56b4e9"; alpha = dark ? 0.5 : 0.55; }
        cell(g, cx, cy, across - gap, down - gap, fill, { alpha });
      }
      const at = (px, py) => Math.floor((py - top) / down) * columns + Math.floor((px - x) / across);
      const height = Math.ceil(shown / columns) * down;
      const tell = (px, py) => (at(px, py) < shown ? elementTip(film, state, number, at(px, py)) : "");
      spots.push({ x, y: top, w: columns * across - 0.01, h: height - 0.01, tell });
      if (film.wrong && film.wrong.a === number && state.at === film.stop) {
        const n = cellOf(array, film.wrong.p);
        if (n >= 0 && n < shown) cell(g, x + (n % columns) * across - 3, top + Math.floor(n / columns) * down - 3, across + 6 - gap, down + 6 - gap, null, { line: RED, thick: 3 });
      }
    }
    if (layout.slots.length) {
      const y = layout.height - 9;
      let x = 0;
      for (const [colour, words] of [["#56b4e9", "read before"], [ORANGE, "written before"], [setting.colours[16][0], "now (colour: the lane)"]]) {
        cell(g, x, y - 5, 10, 10, colour);
        text(tools, words, x + 14, y + 0.5, { size: 11, alpha: 0.85 });
        g.font = "11px system-ui, sans-serif";
        x += 28 + g.measureText(words).width;
      }
    }
  };
  const elementTip = (film, state, number, n) => {
    const array = film.arrays[number];
    const index = [];
    for (const size of [...array.shape].reverse()) { index.unshift(n % size); n = Math.floor(n / size); }
    const flat = index.reduce((sum, i, axis) => sum * array.shape[axis] + i, 0);
    const name = `${array.name}[${index.join(", ")}]`;
    const last = state.arrays[number].get(flat);
    if (!last) return `${name}\n${array.space === "shared" ? "not written yet" : "not touched yet"}`;
    const step = film.steps[last.step];
    return `${name}\n${threadOf(film, step.w, step.lanes[last.n])} ${accessOf(film, step, last.n)}\nin step ${last.step + 1}`;
  };

  const showTip = (view, event) => {
    const frame = view.canvas.getBoundingClientRect();
    const scale = (view.canvas.offsetWidth || 1) / (frame.width || 1); // a deck enlarges its slides
    const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
    const spot = view.spots.findLast((s) => x >= s.x && x <= s.x + s.w && y >= s.y && y <= s.y + s.h);
    const told = spot ? spot.tell(x, y) : "";
    view.tip.hidden = !told;
    if (!told) return;
    view.tip.textContent = told;
    view.tip.style.left = `${Math.max(0, Math.min(x + 12, view.stage.clientWidth - view.tip.offsetWidth - 4))}px`;
    view.tip.style.top = `${y + 16}px`;
  };

  // ---- a moment

  const COUNTERS = [
    ["statements", (c) => c[0]],
    ["sectors moved", (c) => c[1]],
    ["bytes moved", (c) => c[1] * SECTOR],
    ["sectors needed", (c) => c[2]],
    ["bank passes", (c) => c[3]],
    ["of them by conflicts", (c) => c[3] - c[4], true],
  ];
  const show = (view, tick) => {
    const { film } = view;
    let low = 0, high = film.steps.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (film.starts[middle] <= tick) low = middle; else high = middle - 1;
    }
    if (view.at !== low || !film.steps.length) {
      view.at = low;
      const step = film.steps[low];
      if (!step) { view.said.textContent = "Nothing happened in this launch."; return; }
      const state = stateAt(view, low);
      const isWrong = low === film.stop;
      const here = new Map();
      state.warps.forEach((number, w) => {
        if (number === null || (low >= film.last[w] && w !== step.w)) return;
        const row = film.steps[number].r;
        here.set(row, [...(here.get(row) || []), w]);
      });
      view.rows.forEach((row, number) => {
        const who = here.get(number) || [];
        const isNow = number === step.r;
        row.className = isNow ? (isWrong ? "wrong" : "now") : who.length ? "here" : "";
        if (isNow) row.setAttribute("aria-current", "step"); else row.removeAttribute("aria-current");
        row.firstChild.textContent = who.length > (film.blocks.length > 1 ? 1 : 2) ? `${who.length} warps` : who.map((w) => shortName(film, w)).join(" ");
      });
      const row = view.rows[step.r];
      const { code } = view;
      if (row.offsetTop < code.scrollTop + 8 || row.offsetTop + row.offsetHeight > code.scrollTop + code.clientHeight - 8)
        code.scrollTop = row.offsetTop - code.clientHeight / 2;
      view.said.textContent = step.t;
      view.said.className = isWrong ? "said wrong" : "said";
      view.canvas.setAttribute("aria-label", step.t);
      const [final] = film.steps.slice(-1);
      view.counts.replaceChildren(...COUNTERS
        .filter(([, of]) => of(final.c) > 0)
        .map(([name, of, bad]) => make("div", bad && of(step.c) ? { class: "bad" } : {}, make("dt", {}, name), make("dd", {}, of(step.c).toLocaleString("en")))));
      if (two) {
        const done = tick + 1 >= film.ticks;
        view.counts.prepend(make("div", {}, make("dt", {}, done ? "done after ticks" : "ticks"), make("dd", {}, Math.min(tick + 1, film.ticks).toLocaleString("en"))));
      }
    } else if (two && view.counts.firstChild) {
      const done = tick + 1 >= film.ticks;
      view.counts.firstChild.replaceChildren(make("dt", {}, done ? "done after ticks" : "ticks"), make("dd", {}, Math.min(tick + 1, film.ticks).toLocaleString("en")));
    }
    draw(view);
  };
  const go = (tick) => {
    now = Math.max(0, Math.min(ticks - 1, tick));
    for (const view of views) show(view, now);
    scrub.value = now;
    const step = two ? null : film0.steps[now];
    scrub.setAttribute("aria-valuetext", `${unit.slice(0, -1)} ${now + 1} of ${ticks}`);
    const number = step && step.n !== undefined ? ` (no. ${(step.n + 1).toLocaleString("en")})` : "";
    where.textContent = `${(now + 1).toLocaleString("en")} of ${ticks.toLocaleString("en")}${number}`;
    box.dataset.step = now;
  };
  const goWrong = () => {
    choose(moments.indexOf(wrong));
    go(wrong);
  };
  const move = (by) => {
    pause();
    if (!two) return go(now + by);
    const starts = films.flatMap((film) => film.starts);
    const next = by > 0 ? Math.min(...starts.filter((s) => s > now), ticks - 1) : Math.max(...starts.filter((s) => s < now), 0);
    go(next);
  };
  const start = () => {
    if (now >= ticks - 1) go(0);
    for (const view of views) view.said.setAttribute("aria-live", "off");
    play.textContent = "❚❚ Pause";
    play.setAttribute("aria-label", "Pause (space)");
    let before = performance.now(), owed = 0;
    const turn = (time) => {
      if (!playing) return;
      owed += ((time - before) / 1000) * +speed.value;
      before = time;
      const whole = Math.floor(owed);
      if (whole >= 1) {
        owed -= whole;
        const passes = wrong > now && wrong <= now + whole; // a film of a mistake stops at it
        if (passes) goWrong(); else go(now + whole);
        if (passes || now >= ticks - 1) return pause();
      }
      playing = requestAnimationFrame(turn);
    };
    playing = requestAnimationFrame(turn);
  };
  const pause = () => {
    if (!playing) return;
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "▶\uFE0E Play";
    play.setAttribute("aria-label", "Play (space)");
    for (const view of views) view.said.setAttribute("aria-live", "polite");
  };
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === speed) return;
    const act = {
      " ": () => (event.target.tagName === "BUTTON" ? false : playing ? pause() : start()),
      ArrowLeft: () => move(-1),
      ArrowRight: () => move(1),
      Home: () => { pause(); go(0); },
      End: () => { pause(); go(ticks - 1); },
    }[event.key];
    event.stopPropagation();
    if (act && act() !== false) event.preventDefault();
  });

  const reserve = ({ film, one, said }) => {  // room for the longest message: controls stay where they are
    const longest = film.steps.reduce((most, { t }) => (t.length > most.length ? t : most), "");
    const probe = make("p", { class: "said wrong", style: `position: absolute; visibility: hidden; min-height: 0; width: ${said.offsetWidth}px; box-sizing: border-box` });
    probe.textContent = longest;
    one.append(probe);
    said.style.setProperty("--longest", `${probe.offsetHeight}px`);
    probe.remove();
  };
  const fit = () => {
    box.classList.toggle("narrow", box.clientWidth < 720);
    for (const view of views) { reserve(view); draw(view); }
  };
  new ResizeObserver(fit).observe(box);
  const again = new MutationObserver(() => setTimeout(fit, 60));
  for (const page of [document.documentElement, document.body]) again.observe(page, { attributes: true, attributeFilter: ["class", "data-theme", "data-jp-theme-light"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(fit, 60));
  go(Math.min(setting.start || 0, ticks - 1));
  fit();
}
