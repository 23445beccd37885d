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
const LARGER = [1.15, 1.3]; // times the usual size, on a slide with room left: three sizes in all
const LITTLE = 0.36; // of the room: a slide with no more on it goes on with what comes next
const ORPHAN = 0.3; // of the room: what stands before it comes along to a slide with no more
const LEGIBLE = 0.82; // of SMALLEST: a picture on a slide with words has no smaller letters
const TALL = 0.5; // a picture's height, at least, by its width, if it stands beside words
const FILM = 520; // px of height of a film: a heading and a question of two lines stay above it
const [SMALLEST_FILM, LARGEST_FILM] = [0.92, 1.4]; // times its usual size
// What a title says below itself, where that is much
const TITLE_SIZES = [{}, { maxWidth: "none" }, { maxWidth: "none", fontSize: "26px" }];
const PATIENCE = 500; // times 20 ms, for films to be drawn
const ABOVE = 0.4; // of the room that a picture leaves free
const MOST_ABOVE_PICTURE = 0.3; // of the room; below more, a picture that would shrink moves on
const MOST_ALONE = 0.9; // of the room, that code may take on a slide below a heading
const MOST_ABOVE_OUTPUT = 0.6; // the same for the code that moves to a new slide with what it shows

// Boxes of nbconvert's around what a cell shows
const BOXES = [
  ".fragment", ".jp-Cell", ".jp-Cell-inputWrapper", ".jp-InputArea", ".jp-RenderedMarkdown",
  ".jp-Cell-outputWrapper", ".jp-OutputArea", ".jp-OutputArea-child", ".jp-RenderedText",
  ".jp-RenderedImage", ".jp-RenderedSVG",
].join(",");
const PICTURE = "img, svg";
const WHOLE = "img, svg, math, p, h1, h2, h3, h4, h5, label, button, select, input, .line";
const GROWING = ":scope > .piece:not(.picture), :scope > .beside > .words > .piece";
const WORDS = ":scope > .piece.prose:not(.joined)";
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
    this.goesOn = null; // the slide before, if there was little on it
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
  if (part.matches(".picture") && isFull && LEGIBLE * tallOf(part, 0) > leftFor(part, stack)) {
    forARoom(part);
    spread(part, stack);
    if (stack.fits() && isLegibleHere(part)) return; // smaller, but with its words
    part.remove();
    part.classList.remove("wide");
    part.style.removeProperty("--left");
    if (beside(part, stack)) return;
    openFor(part, stack, MOST_ABOVE_PICTURE);
    stack.body.append(part);
  }
  forARoom(part);
  const isAlone = stack.body.querySelectorAll(".piece").length === 1;
  if (isAlone) part.classList.remove("fragment"); // else the slide would begin empty
  if (part.matches(".picture")) {
    spread(part, stack);
    if (isAlone || stack.page !== stack.goesOn || isLegibleHere(part)) return;
    part.remove();
    if (beside(part, stack)) return;
    stack.open(running);
    return place(part, stack);
  }
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
    const film = part.querySelector(".kernel-film")?.getBoundingClientRect().height ?? 0;
    part.remove();
    openFor(part, stack, MOST_ABOVE_OUTPUT, film);
    return place(part, stack);
  }
  part.classList.add("squeezed"); // breaks words where it must
}

// Code that has room on a slide of its own is not torn
const fitsAlone = (part) =>
  part.matches(".code") && part.getBoundingClientRect().height <= MOST_ALONE * ROOM;

// A new slide for what a cell shows; short code comes along, so that nobody sees one without the
// other. most: of the room, that it may take; film: pixels of a film, which cannot shrink
function openFor(part, stack, most, film = 0) {
  const code = stack.body.lastElementChild;
  const isItsOwn = code?.matches(".piece.code") && code.dataset.cell === part.dataset.cell;
  const isFirst = code?.previousElementSibling?.matches(".piece") !== true;
  const height = code ? code.getBoundingClientRect().height : 0;
  stack.open(running);
  const room = Math.min(most * ROOM, ROOM - film);
  if (isItsOwn && !isFirst && stack.used + height <= room) stack.body.append(code);
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

// Whether a picture's letters are nearly those of a slide; a photograph, whether it is large
function isLegibleHere(part) {
  const letters = [...part.querySelectorAll("svg text")].map(sizeOf);
  if (letters.length) return Math.min(...letters) >= LEGIBLE * SMALLEST;
  return part.getBoundingClientRect().height >= ROOM / 2;
}

const leftFor = (part, stack) => ROOM - (topOf(part) - topOf(stack.body)) - 12;

// A picture that is nearly as high as wide stands right of the words before it, if both have room.
// Returns whether it does.
function beside(part, stack) {
  const isWords = (each) => !each.matches(HEADING) && !each.querySelector(HEADING);
  const words = [...stack.body.children].filter(isWords);
  if (!words.length || !words.every((each) => each.matches(".prose"))) return false;
  const columns = element("div", "beside", element("div", "words", ...words), part);
  stack.body.append(columns);
  const drawn = drawnIn(part);
  const isTall = drawn.length === 1 && shapeOf(drawn[0]) >= TALL;
  const left = ROOM - (topOf(columns) - topOf(stack.body)) - 12;
  part.style.setProperty("--left", `${Math.min(left, tallOf(part, left))}px`);
  forARoom(part);
  if (isTall && stack.fits() && isLegibleHere(part)) return true;
  part.style.removeProperty("--left");
  columns.replaceWith(...words);
  return false;
}

// How tall a picture is across the slide; of several beside each other nobody knows
function tallOf(part, unknown) {
  const drawn = drawnIn(part);
  return drawn.length === 1 ? Math.ceil(part.clientWidth * shapeOf(drawn[0])) : unknown || Infinity;
}

const drawnIn = (part) =>
  [...part.querySelectorAll(PICTURE)].filter((each) => each.getClientRects().length);

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
    if (stack.fits()) return times >= LEGIBLE * most;
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
  const stack = goingOn(section, parts, notes) ?? new Stack(section);
  const startsSo = parts[0]?.querySelector(HEADING);
  if (!stack.goesOn) stack.open(startsSo ? null : running);
  const before = stack.body.children.length;
  parts.forEach((part, n) => {
    if (n === 2 && section.querySelector("h1")) stack.open(running); // a title slide is a title
    place(part, stack);
  });
  if (section.querySelector("h1")) makeTitle(section);
  if (stack.goesOn) {
    section.remove();
    const [first, ...more] = [...stack.first.querySelector(".content").children].slice(before);
    first?.classList.add("joined", "fragment");
    more.forEach((part) => part.matches(".fragment") || part.classList.add("with"));
  }
  finish(stack);
}

// Sizes and steps of all slides of a stack
function finish(stack) {
  for (let page = stack.first; page; page = page === stack.page ? null : page.nextElementSibling) {
    page.querySelectorAll(".code pre:not(.stepped)").forEach(stepThrough);
    const body = page.querySelector(".content");
    if (!page.matches(".title")) {
      grow(body);
      settle(body);
    }
    page.dataset.fits = body.scrollHeight <= ROOM && !tooWide(body);
  }
}

// A stack that begins on the slide before, if there is little on that one; else nothing
function goingOn(section, parts, notes) {
  const before = section.previousElementSibling;
  const body = before?.querySelector(":scope > .content");
  if (!body || before.matches(".title") || notes.length || !parts.length) return null;
  const isFull = body.querySelector(`${PICTURE}, .kernel-film`);
  if (isFull || parts[0].querySelector(HEADING)) return null;
  enlargeTo(body, "");
  const stack = new Stack(before);
  stack.body = body;
  if (stack.used <= LITTLE * ROOM) {
    stack.goesOn = before;
    return stack;
  }
  grow(body);
  return null;
}

// A few lines alone on a slide: the last words or the picture of the slide before come along, where
// something stays there
function accompany(section) {
  const body = section.querySelector(":scope > .content");
  const before = section.previousElementSibling?.querySelector(":scope > .content");
  const own = body ? [...body.querySelectorAll(":scope > .piece")] : [];
  if (!before || !own.length || own[0].querySelector(HEADING)) return;
  enlargeTo(body, "");
  const theirs = [...before.querySelectorAll(":scope > .piece")];
  const last = theirs.at(-1);
  const isFew = heightOf(body) <= ORPHAN * ROOM && own.every((part) => part.matches(".prose"));
  const isWhole = last?.matches(".prose, .picture") && !last.querySelector(HEADING);
  if (isFew && isWhole && theirs.length > 2) {
    last.classList.remove("fragment", "joined", "with");
    own[0].before(last);
    own[0].classList.add("fragment");
    if (last.matches(".picture")) {
      const left = ROOM - heightOf(body) + last.getBoundingClientRect().height - 12;
      last.style.setProperty("--left", `${Math.min(left, tallOf(last, left))}px`);
    }
    grow(before);
    settle(before);
  }
  grow(body);
  settle(body);
  section.dataset.fits = body.scrollHeight <= ROOM && !tooWide(body);
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
  const body = section.querySelector(".content");
  section.classList.add("title");
  body.append(element("p", "course", course));
  const words = [...body.querySelectorAll("p:not(.course)")];
  for (const size of TITLE_SIZES) {
    words.forEach((each) => Object.assign(each.style, size));
    if (body.scrollHeight <= ROOM) return;
  }
}

// A slide with little on it has larger letters, as long as no line of code must wrap for it, and no
// picture shrinks
function grow(body) {
  enlargeTo(body, "");
  const wrapped = wraps(body);
  if (!growing(body, GROWING, wrapped)) growing(body, WORDS, wrapped); // long lines of code stay
}

function growing(body, which, wrapped) {
  let largest = "";
  for (const zoom of LARGER) {
    enlargeTo(body, zoom, which);
    if (heightOf(body) > ROOM || tooWide(body) || wraps(body) > wrapped) break;
    largest = zoom;
  }
  enlargeTo(body, largest, which);
  return largest;
}

const heightOf = (body) => body.lastElementChild.getBoundingClientRect().bottom - topOf(body);

// What words and code have grown by: pictures have all of the width already
function enlargeTo(body, zoom, which = GROWING) {
  for (const part of body.querySelectorAll(which)) {
    part.style.zoom = zoom;
    part.style.setProperty("--grown", zoom || 1);
  }
}

function wraps(body) {
  const isTwo = (line) => {
    const zoom = line.closest(".piece").style.zoom || 1;
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

// Films draw themselves when they have been unpacked, and know then how tall they are
async function filmsDrawn() {
  const films = [...document.querySelectorAll(".kernel-film")];
  const isDrawn = (film) => film.shadowRoot?.querySelector(".where")?.textContent;
  for (let tries = 0; tries < PATIENCE && !films.every(isDrawn); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (!films.length) return;
  const boxes = films.map((film) => film.shadowRoot?.querySelector(".film")).filter(Boolean);
  await frames(); // they are as wide as the slide only now
  boxes.forEach(fillSlide);
  await frames();
  for (const box of boxes) box.style.maxHeight = `${Math.min(box.offsetHeight, tallest(box))}px`;
}

// Time in which a page has been laid out and drawn, and what watches its sizes has been told
async function frames() {
  for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame);
}

// A film that is lower than its room has larger letters
function fillSlide(box) {
  box.style.maxHeight = "none";
  const zoom = Math.min(LARGEST_FILM, Math.max(SMALLEST_FILM, FILM / box.offsetHeight));
  box.getRootNode().host.style.zoom = zoom;
}

const tallest = (box) => Math.floor(FILM / (box.getRootNode().host.style.zoom || 1));

window.addEventListener("load", async () => {
  document.body.classList.add("measuring"); // all is laid out, before reveal.js shows one slide
  await filmsDrawn();
  document.querySelectorAll(".slides > section > section").forEach(layOut);
  document.querySelectorAll(".slides > section > section:not(.title)").forEach(accompany);
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
