// Python in a worker of the page: loads it, runs cells, and says what came. Only files of this site.
import { loadPyodide } from "./pyodide.mjs";

const PACKAGES = "/lib/python3.12/site-packages";
const here = new URL("./", import.meta.url);
const say = (kind, rest = {}) => postMessage({ kind, ...rest });
let python;
let pictures;
let asked = false; // whether a cell was to run already

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

async function start(progress) {
  const manifest = await (await got("manifest.json")).json();
  const total = manifest.core.reduce((sum, file) => sum + file.size, 0);
  let sum = 0;
  const loaded = (count) => say("loading", { share: (sum += count) / total });
  const core = await bytesOfAll(manifest.core, loaded);
  python = await loadPyodide({ indexURL: here.href });
  unpack(core);
  python.FS.writeFile("/in_page.py", python.FS.readFile("/course/course/publish/here/in_page.py"));
  python.runPython("import sys; sys.path.insert(0, '/'); import in_page");
  python.globals.get("in_page").prepare(progress);
  say("ready");
  pictures = bytesOfAll(manifest.pictures, () => {}).then(unpack);
  await pictures;
  if (!asked) python.globals.get("in_page").get_ready_to_draw();
  say("draws");
}

async function run(cells, progress) {
  for (const [index, { id, source }] of cells.entries()) {
    if (/\b(check|trace|plots|diagrams|pictures|compare|benchmark)\b/.test(source)) await pictures;
    say("running", { id, number: index + 1, of: cells.length });
    const done = JSON.parse(python.globals.get("in_page").run(id, source, progress));
    progress = done.progress;
    say("ran", { id, ...done });
    if (done.failed) break;
  }
  say("idle");
}

onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data.progress);
    else {
      asked = true;
      await run(data.cells, data.progress);
    }
  } catch (error) {
    say("broken", { words: `${String(error.message || error).trim().split("\n").at(-1)}` });
  }
};
