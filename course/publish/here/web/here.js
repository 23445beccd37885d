// Cells of this page that can be edited and run: Python runs in a worker, and nothing is sent anywhere.
const cells = JSON.parse(document.getElementById("here-cells").textContent);
const chapter = document.getElementById("here-cells").dataset.chapter;
const files = new URL(document.getElementById("here-cells").dataset.files, location.href);
const PROGRESS = "cuda-course:progress";
const bar = document.querySelector(".here-bar");
const words = bar.querySelector(".here-words");
const level = bar.querySelector("progress");
const stop = bar.querySelector("button");
const byId = new Map(cells.map((cell) => [cell.id, cell]));
const touched = matchMedia("(pointer: coarse)").matches;
const CARET = { "←": -1, "→": 1 }; // a thumb does not hit between two letters
const KEYS = ["Tab", ...Object.keys(CARET), "⌫", ..."()[]:=+-*/<>_.,"]; // a phone's own are hidden
const NAMES = { "←": "Left", "→": "Right", "⌫": "Delete" };
const PATIENCE = 5000; // milliseconds for what keeps files to begin
const LOADED = "cuda-course:here-loaded"; // the version whose files this browser has loaded once
const NEIGHBOURS = "cuda-course:here-neighbours"; // the version whose other pages are kept, too
const CACHE = "cuda-course:here"; // sw.js has the same name for it
const MOST_IN_LINK = 50_000; // characters of an answer
const FORGETFUL =
  "This browser keeps nothing: its storage is full or switched off. What you write and solve lasts" +
  " until this page is closed or loaded again. “Link” makes a link that carries what a cell holds.";
const NO_SUCH_CELL =
  "The link carries an answer to a cell that this page does not have: it is not whole, or was made" +
  " for another chapter or version. Nothing is changed.";
const PICTURES = "Python loads what draws pictures. Then the cell runs.";
const clock = document.createElement("span"); // beside the words: a screen reader need not count
let since = 0; // when what the bar tells of began
let share = null; // of the files, while they are loaded
let worker = null;
let ready = null;
let there = false; // whether Python is loaded
let draws = false; // whether what draws pictures is, too
let begun = 0; // how often Python was started
let busy = false;
let wanted = null; // the cell whose button was pressed
let progress = {}; // what was solved, here or in another page

const key = (cell) => `cuda-course:here:${chapter}:${cell.id}`;
const own = (cell) => `${key(cell)}:own`; // what stood there before answers came with links

function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    warn(FORGETFUL);
  }
}

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

// A sentence that stays until it is closed
function warn(text) {
  const close = document.createElement("button");
  close.textContent = "Close";
  close.onclick = () => alarm.replaceChildren();
  alarm.replaceChildren(text, " ", close);
}

// Sections by name, each with a date or so by name; null of a text that is none
function sectionsOf(text) {
  try {
    const sections = Object.entries(JSON.parse(text));
    if (sections.every(([, each]) => each && typeof each === "object")) return sections;
  } catch {
    // no JSON, or null
  }
  return null;
}

// Add to what is known of progress; nothing that was solved is ever dropped
function learn(text) {
  for (const [name, entries] of sectionsOf(text) ?? []) {
    progress[name] = { ...entries, ...progress[name] };
  }
}

// Progress with what another page has kept meanwhile, as text
function allProgress() {
  const text = kept(PROGRESS);
  if (text && !sectionsOf(text)) {
    keep(`${PROGRESS}.bak`, text);
    keep(PROGRESS, null);
    warn(`What was kept of your progress cannot be read; it is set aside as ${PROGRESS}.bak.`);
  }
  learn(text);
  return JSON.stringify(progress);
}

function works(does) {
  bar.setAttribute("aria-busy", String(does));
}

function say(text) {
  if (words.textContent !== text) words.textContent = text;
  tick();
}

// What is waited for: its words, and the time from now on
function wait(text) {
  since = Date.now();
  share = null;
  say(text);
}

// A level is shown while files come; after that nobody knows how long it takes, and the bar moves
function tick() {
  const waits = bar.getAttribute("aria-busy") === "true";
  const seconds = `${Math.floor((Date.now() - since) / 1000)} s`;
  const known = share !== null && share < 1;
  clock.textContent = waits ? (known ? `${Math.floor(100 * share)} %, ${seconds}` : seconds) : "";
  level.hidden = !waits || there;
  if (known) level.value = share;
  else level.removeAttribute("value");
}

function loading() {
  const first = kept(LOADED) !== files.href;
  const then = busy ? " Then the cell runs." : "";
  if (share === 1) return `Python starts.${then}`;
  return `Python is being loaded${first ? ": about 20 MB, once" : ""}.${then}`;
}

// What keeps this page and its files for a time without a network; where a browser has none of it,
// as in a private window, the page works all the same
async function keeper() {
  const known = navigator.serviceWorker;
  try {
    const changed = new Promise((done) => known.addEventListener("controllerchange", done));
    await known.register(new URL("../../sw.js", files));
    const late = new Promise((done) => setTimeout(done, PATIENCE));
    if (!known.controller) await Promise.race([changed, late]);
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    loaded.push(location.href.split("#")[0]);
    known.controller?.postMessage({ loaded, files: files.href });
  } catch {
    // see above
  }
}

const keeping = keeper();

// The other pages that run load the same files: they are kept for a time without a network, too
async function keepNeighbours() {
  if (!navigator.serviceWorker?.controller || kept(NEIGHBOURS) === files.href) return;
  const own = location.href.split("#")[0];
  const links = [...document.querySelectorAll(".sidebar-tree a")].map((a) => a.href.split("#")[0]);
  const inside = (link) => link !== own && link.startsWith(new URL("../../", files).href);
  try {
    const cache = await caches.open(CACHE);
    for (const page of new Set(links.filter(inside))) await keepPage(cache, page);
    keep(NEIGHBOURS, files.href);
  } catch {
    // no network any more, or no room: the next visit tries again
  }
}

async function keepPage(cache, page) {
  const response = await fetch(page);
  if (!response.ok) return;
  const text = await response.clone().text();
  const seen = new DOMParser().parseFromString(text, "text/html");
  const parts = seen.querySelectorAll("img[src], script[src], link[rel=stylesheet], link[rel=icon]");
  for (const part of parts) {
    const url = new URL(part.getAttribute("src") ?? part.getAttribute("href"), page);
    if (url.origin === location.origin && !(await cache.match(url))) await cache.add(url);
  }
  await cache.put(page, response);
}

function begin() {
  const turn = ++begun;
  works(true);
  wait(loading());
  ready = new Promise((done) => {
    keeping.then(() => {
      if (turn !== begun) return; // stopped meanwhile
      worker = new Worker(new URL("worker.js", files), { type: "module" });
      worker.onmessage = ({ data }) => heard(data, done);
      worker.onerror = () => broken("Python cannot be started: is there a network?");
      worker.postMessage({ kind: "start", progress: allProgress() });
    });
  });
}

function heard(data, done) {
  if (data.kind === "loading") {
    share = data.share;
    say(loading());
  }
  if (data.kind === "ready") {
    there = true;
    keep(LOADED, files.href);
    works(busy);
    say(busy ? PICTURES : "Python is ready.");
    done();
  }
  if (data.kind === "draws") {
    draws = true;
    keepNeighbours();
  }
  if (data.kind === "running") {
    const text = data.of > 1 ? `Cell ${data.number} of ${data.of} runs.` : "The cell runs.";
    if (data.number === 1) wait(text);
    else say(text);
  }
  if (data.kind === "ran") ran(byId.get(data.id), data);
  if (data.kind === "idle") rest("Python is ready.");
  if (data.kind === "broken") broken(data.words);
}

function broken(why) {
  end();
  const sentence = why.replace(/[.?!]?$/, (end) => end || ".");
  rest(`Something went wrong: ${sentence} Your text is kept; run a cell to start Python anew.`);
}

function rest(text) {
  busy = false;
  works(false);
  stop.hidden = true;
  for (const cell of cells) {
    cell.button.disabled = false;
    showRecorded(cell);
  }
  hand.disabled = false;
  say(text);
}

function end() {
  begun++;
  worker?.terminate();
  worker = ready = null;
  there = draws = false;
  for (const cell of cells) cell.done = null;
}

function ran(cell, data) {
  cell.done = data.failed ? null : cell.text.value;
  if (data.progress) {
    learn(data.progress);
    keep(PROGRESS, allProgress());
    markSolved();
  }
  show(cell, data.outputs.map(shown));
  // The element that is wrong may be the last one: the site's script shows a picture whole, and
  // has a button that enlarges it, where letters are too small
  window.makeAllLegible?.(cell.output);
  replaceRecorded(cell);
  if (cell === wanted && !data.failed && !data.outputs.length) noteDone(cell);
  if (data.failed && cell !== wanted) {
    show(wanted, [elsewhere(cell)]);
    replaceRecorded(wanted);
  }
}

// A cell that only defines something shows nothing: that it ran has to be said
function noteDone(cell) {
  const check = cells.find((other) => checkedBy(other) && other.needs.includes(cell.id));
  if (!check) return note(cell, "✓ It ran, and has nothing to show.");
  const link = document.createElement("a");
  link.textContent = "Run at the check";
  link.href = `#${check.text.id}`;
  note(cell, "✓ It ran, and has nothing to show. ", link, " says whether it is right.");
}

function replaceRecorded(cell) {
  cell.recorded?.remove();
  cell.recorded = null;
}

const solved = () => progress.exercises ?? {};
const checkedBy = (cell) => /exercises\.check\(\s*"([\w.]+)"/.exec(cell.source)?.[1];

// What was recorded with the starter says nothing of an answer of one's own
function showRecorded(cell) {
  if (!cell.recorded || busy) return;
  const starts = cell.needs.filter((id) => id.startsWith("start-")).map((id) => byId.get(id));
  const changed = [cell, ...starts].some((each) => each.text.value !== each.source);
  const done = checkedBy(cell) in solved();
  cell.recorded.hidden = Boolean(checkedBy(cell)) && (changed || done);
  if (done) {
    const block = document.createElement("p");
    block.className = "here-solved";
    block.textContent = "✓ Solved in this browser. Run checks what stands above once more.";
    show(cell, [block]);
  }
}

function show(cell, blocks) {
  cell.output.replaceChildren(...blocks);
  cell.output.hidden = blocks.length === 0;
}

function elsewhere(cell) {
  const block = document.createElement("pre");
  const link = document.createElement("a");
  block.className = "here-error";
  link.textContent = "A cell that this one needs";
  link.href = `#${cell.text.id}`;
  block.append(link, " ended with an error, so this one did not run.");
  return block;
}

function shown(output) {
  const block = document.createElement(output.kind === "html" ? "div" : "pre");
  block.className = `here-${output.kind}`;
  if (output.kind !== "html") {
    block.textContent = output.data;
    return block;
  }
  block.innerHTML = output.data;
  for (const old of block.querySelectorAll("script")) {
    const script = document.createElement("script"); // one from innerHTML does not run
    script.textContent = old.textContent;
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    old.replaceWith(script);
  }
  return block;
}

async function run(cell) {
  if (busy) return;
  busy = true;
  works(true);
  stop.hidden = false;
  for (const other of cells) other.button.disabled = true;
  hand.disabled = true;
  if (there) wait(draws ? "The cell runs." : PICTURES);
  else if (ready) say(loading());
  else begin();
  await ready;
  const before = cell.needs.map((id) => byId.get(id));
  const todo = [...before.filter((other) => other.done !== other.text.value), cell];
  wanted = cell;
  for (const each of todo) {
    show(each, []);
    note(each, "");
    if (each.recorded) each.recorded.hidden = true;
  }
  const sources = todo.map(({ id, text }) => ({ id, source: text.value }));
  worker.postMessage({ kind: "run", cells: sources, progress: allProgress() });
}

stop.onclick = () => {
  end();
  rest("Stopped. What ran before is forgotten; the next cell starts Python anew.");
};

function markSolved() {
  const known = solved();
  for (const link of document.querySelectorAll(".here-exercises a")) {
    link.classList.toggle("solved", link.dataset.exercise in known);
  }
}

// ---- an answer in a link: what follows # is never sent to a server

async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(letters) {
  const plain = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > MOST_IN_LINK) throw new RangeError("more than any answer has");
  }
}

async function giveLink(cell) {
  if (cell.text.value.length > MOST_IN_LINK) {
    note(cell, `A link carries ${MOST_IN_LINK} characters at most: copy the text itself.`);
    return;
  }
  const address = new URL(location.href.split("#")[0]);
  address.hash = `answer=${cell.id}.${await packed(cell.text.value)}`;
  const link = document.createElement("a");
  link.href = address.href;
  link.textContent = "This link";
  try {
    await navigator.clipboard.writeText(address.href);
    note(cell, link, " to what stands here is copied.");
  } catch {
    note(cell, link, " leads to what stands here: copy its address.");
  }
}

// The texts that links have replaced here, the newest last
function replaced(cell) {
  const text = kept(own(cell));
  try {
    return [JSON.parse(text) ?? []].flat();
  } catch {
    return [text]; // as an older version of this page kept one
  }
}

// The address of a page carries an answer until something is edited: a reload must not undo that
function forgetLink() {
  if (location.hash.startsWith("#answer=")) {
    history.replaceState(null, "", location.href.split("#")[0]);
  }
}

async function takeLink() {
  const [, id, letters] = /^#answer=([\w-]+)\.([\w-]+)$/.exec(location.hash) ?? [];
  const cell = byId.get(id);
  if (!cell) {
    if (location.hash.startsWith("#answer=")) warn(NO_SUCH_CELL);
    return;
  }
  let answer;
  try {
    answer = await unpacked(letters);
  } catch {
    note(cell, "The answer in the link cannot be read: the link is not whole. Nothing is changed.");
    cell.text.scrollIntoView({ block: "center" });
    return;
  }
  if (answer !== cell.text.value) {
    const [mine, before] = [kept(key(cell)), replaced(cell)];
    if (mine !== null && mine !== answer && mine !== before.at(-1)) {
      keep(own(cell), JSON.stringify([...before, mine]));
    }
    cell.text.value = answer;
    grow(cell.text);
    showChanged(cell);
    for (const each of cells) showRecorded(each);
    note(cell, "This came with the link: read it before you run it. “As it was” brings back yours.");
  }
  cell.text.scrollIntoView({ block: "center" });
}

function note(cell, ...parts) {
  cell.note.replaceChildren(...parts);
}

// ---- the way to an exercise: its heading and its task come into view with the cell

function leaveRoom(cell) {
  const { text } = cell;
  const heading = text.closest("section")?.querySelector("h1, h2, h3, h4");
  if (!heading) return;
  const room = text.getBoundingClientRect().top - heading.getBoundingClientRect().top;
  text.style.scrollMarginTop = `calc(${Math.max(0, Math.round(room))}px + 5rem)`;
  setTimeout(() => text.style.removeProperty("scroll-margin-top"), 1000); // for the jump alone
}

function goTo() {
  const cell = cells.find(({ text }) => `#${text.id}` === location.hash);
  if (!cell) return;
  leaveRoom(cell);
  cell.text.scrollIntoView({ block: "start" });
}

// ---- the editor

function grow(text) {
  text.rows = text.value.split("\n").length;
}

// Only what was changed can go back, or be sent to somebody
function showChanged(cell) {
  cell.reset.hidden = cell.link.hidden = cell.text.value === cell.source;
}

function type(text, letters) {
  text.focus();
  // It is the one way that can be undone by the browser's own means
  if (document.execCommand("insertText", false, letters)) return;
  text.setRangeText(letters, text.selectionStart, text.selectionEnd, "end");
  text.oninput();
}

function press(text, key) {
  if (key in CARET) {
    const at = Math.max(0, text.selectionStart + CARET[key]);
    text.focus();
    text.setSelectionRange(at, at);
  } else if (key === "⌫") {
    text.focus();
    document.execCommand("delete");
  } else type(text, key === "Tab" ? "    " : key);
}

// A new line begins where the one before it does, four spaces further after a colon
function breakLine(event) {
  if (event.inputType !== "insertLineBreak") return;
  const text = event.target;
  const line = text.value.slice(0, text.selectionStart).split("\n").at(-1);
  const indent = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
  if (!indent) return;
  event.preventDefault();
  type(text, `\n${indent}`);
  text.scrollLeft = 0;
}

// A phone's keyboard covers what lies at the window's bottom: the bar stands above it, with a *Run*
// for the cell that is edited
const hand = document.createElement("button");
const alarm = document.createElement("p");

function raiseBar() {
  const { height, offsetTop, scale } = visualViewport;
  const covered = scale > 1.01 ? 0 : Math.max(0, innerHeight - height - offsetTop);
  document.documentElement.style.setProperty("--here-covered", `${covered}px`);
}

function setBar() {
  clock.className = "here-clock";
  clock.setAttribute("aria-hidden", "true");
  words.after(clock);
  setInterval(tick, 1000);
  hand.textContent = "Run";
  hand.className = "here-hand";
  hand.hidden = true;
  hand.onpointerdown = (event) => event.preventDefault(); // the keyboard stays
  alarm.className = "here-alarm";
  alarm.setAttribute("role", "alert");
  bar.append(hand, alarm);
  if (!touched || !window.visualViewport) return;
  visualViewport.addEventListener("resize", raiseBar);
  visualViewport.addEventListener("scroll", raiseBar);
}

function keysFor(text) {
  const row = document.createElement("div");
  row.className = "here-keys";
  row.hidden = true;
  for (const key of KEYS) {
    const button = document.createElement("button");
    button.textContent = key;
    button.tabIndex = -1;
    button.onpointerdown = (event) => event.preventDefault(); // the keyboard stays
    button.onclick = () => press(text, key);
    if (key in NAMES) button.setAttribute("aria-label", NAMES[key]);
    row.append(button);
  }
  text.addEventListener("focus", () => {
    for (const other of document.querySelectorAll(".here-keys")) other.hidden = other !== row;
  });
  return row;
}

function open(cell) {
  const place = document.querySelector(`.tag_here-${CSS.escape(cell.id)}`);
  const input = place.querySelector(".cell_input");
  const text = document.createElement("textarea");
  text.id = `here-${cell.id}`;
  text.spellcheck = false;
  text.autocapitalize = "off";
  text.setAttribute("aria-label", `Python, cell ${cell.id}`);
  text.value = kept(key(cell)) ?? cell.source;
  text.oninput = (event) => {
    grow(text);
    forgetLink();
    if (event?.inputType === "insertLineBreak") text.scrollLeft = 0;
    keep(key(cell), text.value === cell.source ? null : text.value);
    showChanged(cell);
    cells.filter(({ id, needs }) => [id, ...needs].includes(cell.id)).forEach(showRecorded);
  };
  text.onkeydown = (event) => {
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run(cell);
    }
    if (event.key === "Tab" && !event.shiftKey) {
      event.preventDefault();
      type(text, "    ");
    }
    if (event.key === "Escape") text.blur(); // the Tab key leaves then
  };
  text.onbeforeinput = breakLine;
  text.onfocus = () => {
    hand.hidden = !touched;
    hand.onclick = () => run(cell);
  };
  text.onblur = () => {
    hand.hidden = true;
    text.scrollLeft = 0; // the lines' beginnings
  };
  const button = document.createElement("button");
  button.textContent = "Run";
  button.onclick = () => run(cell);
  const reset = document.createElement("button");
  reset.textContent = "As it was";
  reset.onclick = () => {
    const before = replaced(cell);
    text.value = before.pop() ?? cell.source;
    keep(own(cell), before.length ? JSON.stringify(before) : null);
    text.oninput();
    note(cell, "");
  };
  const link = document.createElement("button");
  link.textContent = "Link";
  link.title = "A link that carries what stands here";
  link.onclick = () => giveLink(cell);
  const buttons = document.createElement("p");
  buttons.className = "here-buttons";
  buttons.append(button, reset, link);
  const told = document.createElement("p");
  told.className = "here-note";
  told.setAttribute("role", "status");
  const output = document.createElement("div");
  output.className = "here-output";
  output.hidden = true;
  output.setAttribute("aria-live", "polite");
  input.replaceChildren(text, ...(touched ? [keysFor(text)] : []), buttons, told);
  input.after(output);
  Object.assign(cell, { text, button, reset, link, output, note: told, done: null });
  showChanged(cell);
  cell.recorded = place.querySelector("details.below-input, .cell_output");
  grow(text);
}

setBar();
cells.forEach(open);
allProgress();
cells.forEach(showRecorded);
markSolved();
takeLink();
goTo();
for (const link of document.querySelectorAll(".here-exercises a")) {
  link.addEventListener("click", () => {
    const cell = cells.find(({ text }) => `#${text.id}` === link.hash);
    if (cell) leaveRoom(cell);
  });
}
addEventListener("hashchange", takeLink);
begin();
