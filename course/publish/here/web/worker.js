// Python in a worker of the page: loads it, runs cells, and says what came. Only files of this site.
import { loadPyodide } from "./pyodide.mjs";

const PACKAGES = "/lib/python3.12/site-packages";
const SCRIPTS = "/course/course/publish/here";
const CACHE = "cuda-course:here"; // sw.js has the same name for it
const PAUSE = 20; // milliseconds in which a cell can come between
const DRAWS = /\b(check|trace|plots|diagrams|pictures|compare|benchmark|matplotlib)\b/;
const HELPERS = /^from utils import .*$/gm; // to import them draws nothing
const here = new URL("./", import.meta.url);
const compiled = new URL("compiled.zip", here); // no file of the site: compiled.py says what it is
const say = (kind, rest = {}) => postMessage({ kind, ...rest });
let python;
let pictures;
let asked = false; // whether a cell was to run already
let packs = false; // whether what is compiled is packed

async function got(name) {
  const response = await fetch(new URL(name, here)).catch(() => ({ status: "no network" }));
  if (!response.ok) throw new Error(`${name} cannot be loaded (${response.status}).`);
  return response;
}

async function bytesOf(file, loaded) {
  const response = await got(file.name);
  const parts = new Uint8Array(file.size);
  let at = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done && at === file.size) return parts;
    if (done || at + value.length > file.size) throw new Error(`${file.name} came in part.`);
    parts.set(value, at);
    at += value.length;
    loaded(value.length);
  }
}

async function bytesOfAll(files, loaded) {
  return Promise.all(files.map(async (file) => ({ ...file, bytes: await bytesOf(file, loaded) })));
}

function unpack(files) {
  for (const file of files) {
    const extractDir = file.name.endsWith(".whl") ? PACKAGES : "/course";
    if (file.unpacked) python.unpackArchive(file.bytes, "zip", { extractDir });
  }
}

// The address of what an earlier visit has compiled; undefined where there is none, or no cache
async function keptCompiled() {
  try {
    const kept = await (await caches.open(CACHE)).match(compiled);
    return kept && URL.createObjectURL(await kept.blob());
  } catch {
    return undefined;
  }
}

async function forgetCompiled() {
  try {
    await (await caches.open(CACHE)).delete(compiled);
  } catch {
    // there is no cache
  }
}

async function start(progress) {
  const manifest = await (await got("manifest.json")).json();
  const total = manifest.core.reduce((sum, file) => sum + file.size, 0);
  let sum = 0;
  const loaded = (count) => say("loading", { share: (sum += count) / total });
  const core = await bytesOfAll(manifest.core, loaded);
  python = await loadPyodide({ indexURL: here.href, stdLibURL: await keptCompiled() });
  unpack(core);
  python.runPython(`import sys; sys.path.insert(0, "${SCRIPTS}")`);
  python.runPython("import compiled; compiled.unpack(); import in_page");
  python.globals.get("in_page").prepare(progress);
  say("ready");
  pictures = bytesOfAll(manifest.pictures, () => {}).then((files) => {
    unpack(files);
    python.runPython("compiled.unpack()");
  });
  await pictures;
  if (!asked) python.globals.get("in_page").get_ready_to_draw();
  say("draws");
  pack();
}

// Keep what Python has compiled beside the files of this version, where these are kept
async function pack() {
  if (packs) return;
  packs = true;
  try {
    const cache = await caches.open(CACHE);
    if (!(await cache.match(new URL("manifest.json", here)))) return;
    const steps = python.globals.get("compiled").packing();
    let step = {};
    while (!step.done) {
      await new Promise((done) => setTimeout(done, PAUSE));
      step = steps.next();
    }
    if (step.value) await cache.put(compiled, new Response(step.value.toJs()));
  } catch {
    // no cache, or no room: the next start compiles again
  } finally {
    packs = false;
  }
}

async function run(cells, progress) {
  for (const [index, { id, source }] of cells.entries()) {
    if (DRAWS.test(source.replaceAll(HELPERS, ""))) await pictures;
    say("running", { id, number: index + 1, of: cells.length });
    const done = JSON.parse(python.globals.get("in_page").run(id, source, progress));
    progress = done.progress;
    say("ran", { id, ...done });
    if (done.failed) break;
  }
  say("idle");
  pictures.then(pack);
}

onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data.progress);
    else {
      asked = true;
      await run(data.cells, data.progress);
    }
  } catch (error) {
    if (data.kind === "start") await forgetCompiled(); // the next start does without
    say("broken", { words: `${String(error.message || error).trim().split("\n").at(-1)}` });
  }
};
