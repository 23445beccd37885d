// What a page does by itself: quizzes answer, long code folds, the first page's sliders move.

// ---- quizzes: the form knows the reply to each answer, the one to "" is for all others

function answerQuiz(event) {
  event.preventDefault();
  const form = event.target;
  const given = new FormData(form).get(form.querySelector("input").name);
  const replies = JSON.parse(form.dataset.replies);
  const output = form.querySelector("output");
  if (given === null || given === "") output.textContent = "Pick an answer first.";
  else output.innerHTML = replies[given] ?? replies[""];
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

document.querySelectorAll("form.quiz").forEach((form) =>
  form.addEventListener("submit", answerQuiz));
document.querySelectorAll("form.predict").forEach((form) =>
  form.addEventListener("submit", (event) => event.preventDefault()));
document.querySelectorAll(".cell_input").forEach(addFold);
document.querySelectorAll(".launch").forEach((launch) => {
  launch.addEventListener("input", () => drawLaunch(launch));
  drawLaunch(launch);
});
