// Cells of this page that can be edited and run: Python runs in a worker, and nothing is sent anywhere.
const cells = JSON.parse(document.getElementById("here-cells").textContent);
const chapter = document.getElementById("here-cells").dataset.chapter;
const files = new URL(document.getElementById("here-cells").dataset.files, location.href);
const PROGRESS = "cuda-course:progress";
const bar = document.querySelector(".here-bar");
const words = bar.querySelector(".here-words");
const share = bar.querySelector("progress");
const stop = bar.querySelector("button");
const byId = new Map(cells.map((cell) => [cell.id, cell]));
const touched = matchMedia("(pointer: coarse)").matches;
const KEYS = ["Tab", ..."()[]:=+-*/<>_.,"]; // which a phone's keyboard hides
const PATIENCE = 5000; // milliseconds for what keeps files to begin
let worker = null;
let ready = null;
let begun = 0; // how often Python was started
let busy = false;
let wanted = null; // the cell whose button was pressed

const key = (cell) => `cuda-course:here:${chapter}:${cell.id}`;
const own = (cell) => `${key(cell)}:own`; // what stood there before an answer came with a link

function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // a browser that keeps nothing: the page works all the same
  }
}

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function works(does) {
  bar.setAttribute("aria-busy", String(does));
}

function say(text, part = null) {
  words.textContent = text;
  share.hidden = part === null;
  if (part !== null) share.value = part;
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

function begin() {
  const turn = ++begun;
  works(true);
  say("Loading Python: about 20 MB, once.", 0);
  ready = new Promise((done) => {
    keeping.then(() => {
      if (turn !== begun) return; // stopped meanwhile
      worker = new Worker(new URL("worker.js", files), { type: "module" });
      worker.onmessage = ({ data }) => heard(data, done);
      worker.postMessage({ kind: "start", progress: kept(PROGRESS) || "" });
    });
  });
}

function heard(data, done) {
  if (data.kind === "loading") say("Loading Python: about 20 MB, once.", data.share);
  if (data.kind === "ready") {
    works(busy);
    say(busy ? "A cell runs." : "Python is ready.");
    done();
  }
  if (data.kind === "running") say("A cell runs.");
  if (data.kind === "ran") ran(byId.get(data.id), data);
  if (data.kind === "idle") rest("Python is ready.");
  if (data.kind === "broken") {
    rest(`Something went wrong: ${data.words}. Run a cell to try again.`);
    end();
  }
}

function rest(text) {
  busy = false;
  works(false);
  stop.hidden = true;
  for (const cell of cells) cell.button.disabled = false;
  say(text);
}

function end() {
  begun++;
  worker?.terminate();
  worker = ready = null;
  for (const cell of cells) cell.done = null;
}

function ran(cell, data) {
  cell.done = data.failed ? null : cell.text.value;
  if (data.progress) {
    keep(PROGRESS, data.progress);
    markSolved();
  }
  show(cell, data.outputs.map(shown));
  if (data.failed && cell !== wanted) show(wanted, [elsewhere(cell)]);
  cell.recorded?.remove();
  cell.recorded = null;
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
  if (ready) say("A cell runs.");
  for (const other of cells) other.button.disabled = true;
  if (!ready) begin();
  await ready;
  const before = cell.needs.map((id) => byId.get(id));
  const todo = [...before.filter((other) => other.done !== other.text.value), cell];
  wanted = cell;
  for (const each of todo) show(each, []);
  worker.postMessage({ kind: "run", cells: todo.map((c) => ({ id: c.id, source: c.text.value })) });
}

stop.onclick = () => {
  end();
  rest("Stopped. What ran before is forgotten; the next cell starts Python anew.");
};

function markSolved() {
  const solved = JSON.parse(kept(PROGRESS) || "{}").exercises ?? {};
  for (const link of document.querySelectorAll(".here-exercises a")) {
    link.classList.toggle("solved", link.dataset.exercise in solved);
  }
}

// ---- an answer in a link: what follows # is never sent to a server

async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = btoa(String.fromCharCode(...bytes));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(letters) {
  const plain = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

async function giveLink(cell) {
  const address = new URL(location.href.split("#")[0]);
  address.hash = `answer=${cell.id}.${await packed(cell.text.value)}`;
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address.href);
    note(cell, "The link to what stands here is copied.");
  } catch {
    note(cell, "The page's address is now the link to what stands here.");
  }
}

async function takeLink() {
  const [, id, letters] = /^#answer=([\w-]+)\.([\w-]+)$/.exec(location.hash) ?? [];
  const cell = byId.get(id);
  if (!cell) return;
  let answer;
  try {
    answer = await unpacked(letters);
  } catch {
    note(cell, "The answer in the link cannot be read: the link is not whole.");
    return;
  }
  if (answer !== cell.text.value && kept(own(cell)) === null) keep(own(cell), kept(key(cell)));
  cell.text.value = answer;
  grow(cell.text);
  showChanged(cell);
  note(cell, "This came with the link: read it before you run it. “As it was” brings back yours.");
  cell.text.scrollIntoView({ block: "center" });
}

function note(cell, words) {
  cell.note.textContent = words;
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

// A new line begins where the one before it does, four spaces further after a colon
function breakLine(event) {
  if (event.inputType !== "insertLineBreak") return;
  const text = event.target;
  const line = text.value.slice(0, text.selectionStart).split("\n").at(-1);
  const indent = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
  if (!indent) return;
  event.preventDefault();
  type(text, `\n${indent}`);
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
    button.onclick = () => type(text, key === "Tab" ? "    " : key);
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
  text.oninput = () => {
    grow(text);
    keep(key(cell), text.value === cell.source ? null : text.value);
    showChanged(cell);
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
  const button = document.createElement("button");
  button.textContent = "Run";
  button.onclick = () => run(cell);
  const reset = document.createElement("button");
  reset.textContent = "As it was";
  reset.onclick = () => {
    text.value = kept(own(cell)) ?? cell.source;
    keep(own(cell), null);
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

cells.forEach(open);
markSolved();
takeLink();
addEventListener("hashchange", takeLink);
begin();
