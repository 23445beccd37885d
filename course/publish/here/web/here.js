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
let worker = null;
let ready = null;
let busy = false;
let wanted = null; // the cell whose button was pressed

const key = (cell) => `cuda-course:here:${chapter}:${cell.id}`;

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

function say(text, part = null) {
  words.textContent = text;
  share.hidden = part === null;
  if (part !== null) share.value = part;
}

function begin() {
  worker = new Worker(new URL("worker.js", files), { type: "module" });
  ready = new Promise((done) => {
    worker.onmessage = ({ data }) => heard(data, done);
  });
  say("Loading Python: about 20 MB, once.", 0);
  worker.postMessage({ kind: "start", progress: kept(PROGRESS) || "" });
}

function heard(data, done) {
  if (data.kind === "loading") say("Loading Python: about 20 MB, once.", data.share);
  if (data.kind === "ready") {
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
  stop.hidden = true;
  for (const cell of cells) cell.button.disabled = false;
  say(text);
}

function end() {
  worker?.terminate();
  worker = ready = null;
  for (const cell of cells) cell.done = null;
}

function ran(cell, data) {
  cell.done = data.failed ? null : cell.text.value;
  if (data.progress) keep(PROGRESS, data.progress);
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
  stop.hidden = false;
  if (worker) say("A cell runs.");
  for (const other of cells) other.button.disabled = true;
  if (!worker) begin();
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

function grow(text) {
  text.rows = text.value.split("\n").length;
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
    reset.hidden = text.value === cell.source;
  };
  text.onkeydown = (event) => {
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run(cell);
    }
    if (event.key === "Tab" && !event.shiftKey) {
      event.preventDefault();
      text.setRangeText("    ", text.selectionStart, text.selectionEnd, "end");
      text.oninput();
    }
    if (event.key === "Escape") text.blur(); // the Tab key leaves then
  };
  const button = document.createElement("button");
  button.textContent = "Run";
  button.onclick = () => run(cell);
  const reset = document.createElement("button");
  reset.textContent = "As it was";
  reset.hidden = text.value === cell.source;
  reset.onclick = () => {
    text.value = cell.source;
    text.oninput();
  };
  const buttons = document.createElement("p");
  buttons.className = "here-buttons";
  buttons.append(button, reset);
  const output = document.createElement("div");
  output.className = "here-output";
  output.hidden = true;
  output.setAttribute("aria-live", "polite");
  input.replaceChildren(text, buttons);
  input.after(output);
  Object.assign(cell, { text, button, output, done: null });
  cell.recorded = place.querySelector("details.below-input, .cell_output");
  grow(text);
}

cells.forEach(open);
begin();
