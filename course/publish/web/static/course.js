// What a page does by itself: quizzes answer, long code folds, the first page's sliders move,
// white pictures follow a dark theme, answers are unfolded on paper.

// ---- quizzes: the form knows the reply to each answer, the one to "" is for all others

function answerQuiz(event) {
  event.preventDefault();
  const form = event.target;
  const given = new FormData(form).get(form.querySelector("input").name);
  const replies = JSON.parse(form.dataset.replies);
  const output = form.querySelector("output");
  const does = form.querySelector("[type=radio]") ? "Pick" : "Write";
  if (given === null || given === "") output.textContent = `${does} an answer first.`;
  else output.innerHTML = replies[given] ?? replies[""];
}

// ---- a guess unfolds its answer, and is marked once that is unfolded

const NEAR = 16; // cells and paragraphs, at most, from the question to its answer

function markGuess(form) {
  const answer = form.dataset.answer;
  const chosen = form.querySelector("input:checked")?.parentElement;
  if (!chosen) return; // who has not guessed is told nothing
  for (const label of form.querySelectorAll("label")) {
    const isRight = label.textContent.trim() === answer;
    label.classList.toggle("right", isRight);
    label.classList.toggle("wrong", label === chosen && !isRight);
  }
  let said = form.querySelector("[role=status]");
  if (!said) {
    said = document.createElement("p");
    said.setAttribute("role", "status");
    form.append(said);
  }
  said.textContent = chosen.textContent.trim() === answer ? "Right." : `It is: ${answer}.`;
}

// What is folded below a question until the guess is made: outputs, and the answer in words
function foldedBelow(question) {
  const found = [];
  let cell = question.closest(".cell");
  for (let n = 0; n < NEAR && cell; n++) {
    cell = cell.nextElementSibling;
    if (!cell || cell.querySelector(".predict")) break;
    if (cell.matches("details.answer")) return [...found, cell];
    found.push(...cell.querySelectorAll("details.below-input"));
  }
  return found;
}

function waitForGuess(question) {
  const answers = foldedBelow(question);
  const mark = () => question.dataset.answer && markGuess(question);
  question.addEventListener("change", () => {
    for (const each of answers) each.open = true;
    if (answers.length) mark();
  });
  for (const each of answers) each.addEventListener("toggle", () => each.open && mark());
}

// ---- the navigation begins where the reader is, not at the first chapter

function showPlace(navigation) {
  const here = navigation.querySelector(".current-page");
  if (!here) return;
  const down = here.getBoundingClientRect().top - navigation.getBoundingClientRect().top;
  const height = navigation.clientHeight;
  if (down > 0.8 * height) navigation.scrollBy({ top: down - height / 2, behavior: "instant" });
}

// ---- folding

const LONG = 12; // lines

function addFold(input) {
  const lines = input.textContent.trimEnd().split("\n").length;
  if (lines < LONG) return;
  const button = document.createElement("button");
  button.className = "fold";
  const show = (folded) => {
    input.classList.toggle("folded", folded);
    button.textContent = folded ? `show all ${lines} lines` : `fold these ${lines} lines`;
    button.setAttribute("aria-expanded", String(!folded));
  };
  button.addEventListener("click", () => show(!input.classList.contains("folded")));
  input.after(button);
  show(false);
}

// ---- sliders of the first page: which thread of which block takes which element

const SHOWN = 160; // cells

function drawLaunch(launch) {
  const colours = JSON.parse(launch.dataset.colours);
  const value = (name) => Number(launch.querySelector(`[name=${name}]`).value);
  const [blocks, threads, elements] = ["blocks", "threads", "elements"].map(value);
  const started = blocks * threads;
  const cells = [];
  for (let i = 0; i < Math.min(Math.max(started, elements), SHOWN); i++) {
    const cell = document.createElement("span");
    cell.textContent = i;
    if (i < started) {
      const colour = colours[Math.floor(i / threads) % colours.length];
      cell.style.background = colour;
      cell.style.borderColor = colour;
    }
    if (i >= elements) cell.className = "idle";
    if (i >= started) cell.className = "missed";
    cells.push(cell);
  }
  launch.querySelector(".map").replaceChildren(...cells);
  const idle = Math.max(started - elements, 0);
  const missed = Math.max(elements - started, 0);
  launch.querySelector("[role=status]").textContent =
    `${blocks} × ${threads} = ${started} threads for ${elements} elements` +
    (idle ? `: the guard stops ${idle} (hollow)` : "") +
    (missed ? `: ${missed} NOT REACHED (red)` : "");
  for (const field of launch.querySelectorAll("input")) {
    field.nextElementSibling.value = field.value;
  }
}

// ---- the first page's tabs: the reader's own system first

function chooseSystem(tabs) {
  const system = (navigator.userAgentData?.platform ?? navigator.platform).toLowerCase();
  const own = [...tabs.querySelectorAll("[data-system]")];
  const found = own.find((field) => system.startsWith(field.dataset.system));
  if (found) found.checked = true;
}

// ---- pictures saved as PNG: a drawing has few colours, a photograph many

const FEW_COLOURS = 16;
const MOST_OF_IT = 0.7; // of a drawing's pixels have these few colours

function isDrawing(image) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(image.naturalWidth / 2);
  canvas.height = Math.ceil(image.naturalHeight / 2);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const times = new Map();
  for (const pixel of new Uint32Array(pixels.buffer)) {
    times.set(pixel, (times.get(pixel) ?? 0) + 1);
  }
  const most = [...times.values()].sort((one, other) => other - one).slice(0, FEW_COLOURS);
  return most.reduce((sum, each) => sum + each, 0) > MOST_OF_IT * canvas.width * canvas.height;
}

async function tellApart(image) {
  await image.decode();
  image.classList.add(isDrawing(image) ? "drawing" : "photograph");
}

// ---- letters of pictures that can be read on a phone: a picture that would have smaller ones is
// shown whole, with a button that enlarges it; then it is wider than the screen, and scrolls

const LETTERS = 11; // pixels, at least

function makeLegible(picture) {
  const frame = picture.parentElement;
  const keeper = picture.closest(".course-frame") ?? frame; // a slider's picture is drawn anew
  if (frame.querySelector(":scope > .enlarge")) return;
  const { minWidth, maxWidth } = picture.style;
  picture.style.minWidth = 0;
  const sizes = [...picture.querySelectorAll("text")].map((text) => {
    const { a, b } = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
  });
  const least = Math.min(...sizes.filter((size) => size > 0));
  if (!(least < LETTERS - 0.5)) return void (picture.style.minWidth = minWidth);
  const width = Math.ceil((picture.getBoundingClientRect().width * LETTERS) / least);
  const button = document.createElement("button");
  button.className = "enlarge";
  const show = (isLarge) => {
    const wide = `${width}px`;
    picture.style.minWidth = isLarge ? wide : 0;
    picture.style.maxWidth = isLarge && width > parseFloat(maxWidth) ? wide : maxWidth;
    frame.style.overflowX = isLarge ? "auto" : "";
    button.textContent = isLarge ? "Show the whole picture" : "Enlarge the picture";
    button.setAttribute("aria-pressed", String(isLarge));
    keeper.toggleAttribute("data-large", isLarge);
  };
  button.addEventListener("click", () => show(!keeper.hasAttribute("data-large")));
  picture.after(button);
  show(keeper.hasAttribute("data-large"));
}

function makeAllLegible(inside) {
  inside.querySelectorAll(".course-picture svg, .race svg").forEach(makeLegible);
}

// ---- on paper nothing can be unfolded: answers and further sections are printed, and closed again

const PRINTED = "details:is(.below-input, .further, .answer):not([open])";
const opened = new Set();

window.addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll(PRINTED)) {
    each.open = true;
    opened.add(each);
  }
});
window.addEventListener("afterprint", () => {
  for (const each of opened) each.open = false;
  opened.clear();
});

document.querySelectorAll('img[src^="data:image/png"]').forEach(tellApart);
makeAllLegible(document);
document.querySelectorAll(".course-frame").forEach((frame) =>
  new MutationObserver(() => makeAllLegible(frame)).observe(frame, { childList: true }));
document.querySelectorAll("form.quiz").forEach((form) =>
  form.addEventListener("submit", answerQuiz));
document.querySelectorAll("form.predict").forEach((form) =>
  form.addEventListener("submit", (event) => event.preventDefault()));
document.querySelectorAll(".predict").forEach(waitForGuess);
document.querySelectorAll(".sidebar-scroll").forEach(showPlace);
document.querySelectorAll(".cell_input").forEach(addFold);
document.querySelectorAll(".tabs").forEach(chooseSystem);
document.querySelectorAll(".launch").forEach((launch) => {
  launch.addEventListener("input", () => drawLaunch(launch));
  drawLaunch(launch);
});
