// Makes slides for a room of what nbconvert laid out: 1280 × 720, no text below 20 px, a heading on
// each, pictures across the slide, and nothing below the edge. What does not fit goes on on another
// slide, below the first; long code is stepped through, with the lines in focus.
const SCREEN = { width: 1280, height: 720 };
const SMALLEST = 20; // px of text, for the last row of the room
const ROOM = 676; // px of height: below stand the slide's number and the arrows
const FEW = 4; // lines, rows or items that are not left alone on a slide
const LONG_CODE = 12; // lines; more of them are stepped through
const STEP = 4; // lines, at least, that are in focus together
const GROWTH = 0.05; // of a picture's width, from one size to the next that is tried
const LARGER = [1.1, 1.2, 1.3, 1.4, 1.5]; // times the usual size, on a slide with room left
const ABOVE = 0.4; // of the room that a picture leaves free
const MOST_ABOVE_PICTURE = 0.3; // of the room; below more, a picture that would shrink moves on
const MOST_ALONE = 0.85; // of the room, that code may take on a slide below a heading
const MOST_ABOVE_OUTPUT = 0.6; // the same for the code that moves to a new slide with what it shows

// Boxes of nbconvert's around what a cell shows
const BOXES = [
  ".fragment", ".jp-Cell", ".jp-Cell-inputWrapper", ".jp-InputArea", ".jp-RenderedMarkdown",
  ".jp-Cell-outputWrapper", ".jp-OutputArea", ".jp-OutputArea-child", ".jp-RenderedText",
  ".jp-RenderedImage", ".jp-RenderedSVG",
].join(",");
const PICTURE = "img, svg";
const WHOLE = "img, svg, math, p, h1, h2, h3, h4, h5, label, button, select, input, .line";
const HEADING = "h1, h2, h3, h4";

const element = (name, className, ...inside) => {
  const made = document.createElement(name);
  made.className = className;
  made.append(...inside);
  return made;
};

// ---- what stands on a slide, piece by piece

let cells = 0; // so many were there: a piece knows its own

function pieces(node, kind = "prose") {
  if (node.matches(".jp-InputArea-editor")) return [piece("code", node.querySelector("pre"))];
  if (node.matches(".jp-OutputArea")) kind = "output";
  if (!node.matches(BOXES)) return node.textContent.trim() || has(node) ? [piece(kind, node)] : [];
  if (node.matches(".jp-Cell")) cells += 1;
  const inner = [...node.children].flatMap((child) => pieces(child, kind));
  if (node.matches(".fragment")) inner.forEach((each) => each.classList.add("fragment"));
  return inner;
}

const has = (node) => node.matches(PICTURE) || node.querySelector(`${PICTURE}, input, progress`);

function piece(kind, node) {
  const code = node.matches("pre") ? [node] : node.querySelectorAll("pre");
  code.forEach(wrapLines);
  const isPicture = node.matches(PICTURE) || (node.querySelector(PICTURE) && !says(node));
  const inside = kind === "code" ? element("div", "highlight", node) : node;
  const made = element("div", `piece ${kind} ${isPicture ? "picture" : ""}`, inside);
  made.dataset.cell = cells;
  return made;
}

// Whether a piece has text outside its pictures
function says(node) {
  const copy = node.cloneNode(true);
  copy.querySelectorAll(`${PICTURE}, style`).forEach((each) => each.remove());
  return copy.textContent.trim() !== "" || copy.querySelector("input, progress") !== null;
}

function wrapLines(pre) {
  const lines = pre.innerHTML.replace(/\n$/, "").split("\n");
  pre.innerHTML = lines.map((line) => `<span class="line">${line}\n</span>`).join("");
}

// What no style of an output may undo: letters of SMALLEST pixels, lines that wrap where they must.
// Formulas' indices are what they are.
const WRAPPING = { pre: "pre-wrap", nowrap: "normal" };

function forARoom(part) {
  for (const node of part.querySelectorAll("*")) {
    if (node.closest("svg, math, sup, sub, style")) continue;
    const style = getComputedStyle(node);
    const wrapping = WRAPPING[style.whiteSpace];
    if (parseFloat(style.fontSize) < SMALLEST) {
      node.style.setProperty("font-size", `${SMALLEST}px`, "important");
    }
    if (wrapping) node.style.setProperty("white-space", wrapping, "important");
  }
}

// ---- taking apart what is too long

// Moves what does not fit into a copy of the node, which it returns; null if all of it must move
function split(node, fits) {
  if (node.matches(WHOLE) || !node.children.length || isMixed(node)) return null;
  const rows = [...node.querySelectorAll(":scope > tbody > tr")];
  const units = rows.length ? rows : [...node.children];
  const home = units[0].parentNode;
  const copy = node.cloneNode(false);
  const into = home === node ? copy : home.cloneNode(false);
  if (into !== copy) copy.append(...headOf(node), into);

  const few = cut(units, mostThatFit(units, home, fits));
  home.replaceChildren(...units.slice(0, Math.max(1, few)));
  if (few) {
    const isEmpty = (unit) => unit.matches(".line") && !unit.textContent.trim();
    while (few < units.length - 1 && isEmpty(units[few])) units.splice(few, 1);
    into.append(...units.slice(few));
    return into.children.length ? copy : null;
  }
  const rest = split(units[0], fits);
  if (rest) into.append(rest, ...units.slice(1));
  else home.replaceChildren(...units);
  return rest && copy;
}

// Words beside elements: they would be lost, since only elements are moved
const isMixed = (node) =>
  [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());

function mostThatFit(units, home, fits) {
  let few = 0;
  for (let many = units.length; few < many;) {
    const middle = Math.ceil((few + many) / 2);
    home.replaceChildren(...units.slice(0, middle));
    if (fits()) few = middle;
    else many = middle - 1;
  }
  return few;
}

const headOf = (table) =>
  [...table.querySelectorAll("colgroup, thead")].map((part) => part.cloneNode(true));

// Where to cut so many units: code at an empty line where there is one, never a few lines alone
function cut(units, most) {
  const isLines = units[0].matches(".line, tr, li");
  if (!isLines) return most;
  if (most < Math.min(FEW, units.length - 1)) return 0;
  const latest = Math.min(most, Math.max(1, units.length - FEW));
  const empty = (n) => units[n].matches(".line") && !units[n].textContent.trim();
  for (let n = latest; n > latest / 2; n--) if (empty(n)) return n;
  return latest;
}

// ---- slides

class Stack {
  constructor(section) {
    this.first = section;
    this.page = section;
    this.body = null;
  }

  fits = () => this.body.scrollHeight <= ROOM && !tooWide(this.body);

  open(heading) {
    if (this.body) {
      const next = element("section", "");
      this.page.after(next);
      this.page = next;
    }
    this.body = element("div", "content");
    this.page.append(this.body);
    if (heading) this.body.append(heading.cloneNode(true));
  }

  get used() {
    return this.body.lastElementChild
      ? this.body.lastElementChild.getBoundingClientRect().bottom - topOf(this.body)
      : 0;
  }
}

const topOf = (node) => node.getBoundingClientRect().top;

function tooWide(body) {
  const parts = [body, ...body.querySelectorAll("pre, table, .piece")];
  return parts.some((part) => part.scrollWidth > part.clientWidth + 1);
}

let running = null; // the last heading, which later slides repeat

function place(part, stack) {
  const own = part.querySelector(HEADING);
  if (own) running = element("h3", "running", own.textContent);
  const isFull = stack.used > MOST_ABOVE_PICTURE * ROOM;
  stack.body.append(part);
  if (part.matches(".picture") && isFull && tallOf(part, 0) > leftFor(part, stack)) {
    part.remove();
    openFor(part, stack, MOST_ABOVE_PICTURE);
    stack.body.append(part);
  }
  forARoom(part);
  const isAlone = stack.body.querySelectorAll(".piece").length === 1;
  if (isAlone) part.classList.remove("fragment"); // else the slide would begin empty
  if (part.matches(".picture")) return spread(part, stack);
  const pictures = [...part.querySelectorAll("svg")];
  const isLegible = pictures.map((picture) => enlarge(picture, stack)).every(Boolean);
  const fits = stack.fits();
  if (fits && (isLegible || isAlone)) return;
  const isMovable = part.querySelector(".still, .course-moves") || fitsAlone(part);
  const staysWhole = isMovable && !isAlone;
  const rest = staysWhole || fits ? null : split(part, stack.fits);
  if (rest) {
    stack.open(running);
    return place(rest, stack);
  }
  if (!isAlone) {
    part.remove();
    openFor(part, stack, MOST_ABOVE_OUTPUT);
    return place(part, stack);
  }
  part.classList.add("squeezed"); // breaks words where it must
}

// Code that has room on a slide of its own is not torn
const fitsAlone = (part) =>
  part.matches(".code") && part.getBoundingClientRect().height <= MOST_ALONE * ROOM;

// A new slide for what a cell shows; short code comes along, so that nobody sees one without the
// other. most: of the room, that it may take
function openFor(part, stack, most) {
  const code = stack.body.lastElementChild;
  const isItsOwn = code?.matches(".piece.code") && code.dataset.cell === part.dataset.cell;
  const isFirst = code?.previousElementSibling?.matches(".piece") !== true;
  const height = code ? code.getBoundingClientRect().height : 0;
  stack.open(running);
  if (isItsOwn && !isFirst && stack.used + height <= most * ROOM) stack.body.append(code);
}

// A picture takes what is left of the slide, whole, and no more than its width asks for: what is
// said of it stands below
function spread(part, stack) {
  const left = leftFor(part, stack);
  const fill = () => part.style.setProperty("--left", `${Math.min(left, tallOf(part, left))}px`);
  fill();
  const letters = [...part.querySelectorAll("svg text")].map(sizeOf);
  if (Math.min(...letters) >= SMALLEST) return;
  part.classList.add("wide"); // it needs the margins, too
  fill();
}

const leftFor = (part, stack) => ROOM - (topOf(part) - topOf(stack.body)) - 12;

// How tall a picture is across the slide; of several beside each other nobody knows
function tallOf(part, unknown) {
  const drawn = [...part.querySelectorAll(PICTURE)].filter((each) => each.getClientRects().length);
  return drawn.length === 1 ? Math.ceil(part.clientWidth * shapeOf(drawn[0])) : unknown || Infinity;
}

// Height by width
function shapeOf(picture) {
  if (picture.matches("img")) return picture.naturalHeight / (picture.naturalWidth || 1);
  const { width, height } = picture.viewBox.baseVal ?? { width: 1, height: 1 };
  return height / (width || 1);
}

// A picture among words, such as a check's map, grows until its letters can be read, or as far as
// the slide has room. Returns whether it is as large as it should be.
function enlarge(picture, stack) {
  const letters = [...picture.querySelectorAll("text")].map(sizeOf);
  const most = SMALLEST / Math.min(...letters, SMALLEST);
  const before = picture.style.cssText;
  const { width } = picture.getBoundingClientRect();
  for (let times = most; times > 1; times -= GROWTH) {
    picture.style.cssText = `width: min(${Math.ceil(times * width)}px, 100%)`;
    if (stack.fits()) return times === most;
  }
  picture.style.cssText = before;
  return most <= 1;
}

// Pixels of a picture's letters on the slide, however they are turned
function sizeOf(text) {
  const { a, b } = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
}

function layOut(section) {
  const notes = [...section.querySelectorAll("aside.notes")];
  notes.forEach((note) => note.remove());
  const parts = [...section.children].flatMap((child) => pieces(child));
  section.replaceChildren(...notes);
  if (joined(section, parts, notes)) return;
  const stack = new Stack(section);
  const startsSo = parts[0]?.querySelector(HEADING);
  stack.open(startsSo ? null : running);
  parts.forEach((part, n) => {
    if (n === 2 && section.querySelector("h1")) stack.open(running); // a title slide is a title
    place(part, stack);
  });
  if (section.querySelector("h1")) makeTitle(section);
  for (let page = section; page; page = page === stack.page ? null : page.nextElementSibling) {
    page.querySelectorAll(".code pre").forEach(stepThrough);
    const body = page.querySelector(".content");
    if (!page.matches(".title")) {
      grow(body);
      settle(body);
    }
    page.dataset.fits = body.scrollHeight <= ROOM && !tooWide(body);
  }
}

// Words and code go on on the slide before, when it is their turn, where both have room on one.
// Returns whether they do.
function joined(section, parts, notes) {
  const before = section.previousElementSibling;
  const body = before?.querySelector(":scope > .content");
  if (!body || before.matches(".title") || notes.length || !parts.length) return false;
  const apart = `${HEADING}, ${PICTURE}, .still, .course-moves, script`;
  if (parts.some((part) => part.matches(".picture") || part.querySelector(apart))) return false;
  const whole = element("div", "piece joined fragment", ...parts);
  enlargeTo(body, "");
  body.querySelector(":scope > .picture")?.style.removeProperty("margin-top");
  body.append(whole);
  forARoom(whole);
  const fits = body.scrollHeight <= ROOM && !tooWide(body);
  if (fits) {
    section.remove();
    whole.querySelectorAll(".code pre").forEach(stepThrough);
  } else whole.remove();
  grow(body);
  settle(body);
  return fits;
}

function makeTitle(section) {
  const course = document.querySelector("meta[name=course]").content;
  section.classList.add("title");
  section.querySelector(".content").append(element("p", "course", course));
}

// A slide with little on it has larger letters, as long as no line of code must wrap for it, and no
// picture shrinks
function grow(body) {
  const wrapped = wraps(body, 1);
  let largest = "";
  for (const zoom of LARGER) {
    enlargeTo(body, zoom);
    if (heightOf(body) > ROOM || tooWide(body) || wraps(body, zoom) > wrapped) break;
    largest = zoom;
  }
  enlargeTo(body, largest);
}

const heightOf = (body) => body.lastElementChild.getBoundingClientRect().bottom - topOf(body);

// What words and code have grown by: pictures have all of the width already
function enlargeTo(body, zoom) {
  for (const part of body.querySelectorAll(":scope > .piece:not(.picture)")) {
    part.style.zoom = zoom;
    part.style.setProperty("--grown", zoom || 1);
  }
}

function wraps(body, zoom) {
  const isTwo = (line) => {
    const one = zoom * parseFloat(getComputedStyle(line).lineHeight);
    return line.getBoundingClientRect().height > 1.5 * one;
  };
  return [...body.querySelectorAll(".line")].filter(isTwo).length;
}

// What a picture leaves free stands around it, a little more below, where a room looks last
function settle(body) {
  const picture = body.querySelector(":scope > .picture");
  if (!picture) return;
  picture.style.marginTop = "";
  const free = ROOM - heightOf(body);
  if (free > 0) picture.style.marginTop = `${Math.floor(ABOVE * free)}px`;
}

// ---- long code, a few lines at a time

function stepThrough(pre) {
  const lines = [...pre.children];
  if (lines.length <= LONG_CODE) return;
  let step = 1;
  let size = 0;
  lines.forEach((line, n) => {
    const isNew = !line.textContent.trim() && size >= STEP && lines.length - n > STEP;
    if (isNew) [step, size] = [step + 1, 0];
    size += 1;
    line.dataset.step = step;
  });
  if (step === 1) return;
  pre.classList.add("stepped");
  const marks = Array.from({ length: step }, () => element("i", "fragment step"));
  pre.parentNode.append(...marks);
}

function focusOn(slide) {
  for (const pre of slide.querySelectorAll(".stepped")) {
    const shown = pre.parentNode.querySelectorAll(".step.visible").length;
    for (const line of pre.children) {
      line.classList.toggle("dim", shown > 0 && line.dataset.step !== String(shown));
    }
  }
}

window.addEventListener("load", async () => {
  document.body.classList.add("measuring"); // all is laid out, before reveal.js shows one slide
  document.querySelectorAll(".slides > section > section").forEach(layOut);
  document.body.classList.remove("measuring");
  const change = () => focusOn(Reveal.getCurrentSlide());
  for (const event of ["slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(event, change);
  await Reveal.initialize({
    ...SCREEN,
    margin: 0,
    center: false,
    transition: "none",
    hash: true,
    slideNumber: "c/t",
    pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
  document.body.dataset.ready = "yes";
});
