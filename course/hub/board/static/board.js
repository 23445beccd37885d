const part = (id) => document.getElementById(id);

function button(text, act) {
  const made = element("button", text);
  made.onclick = act;
  return made;
}

function bar(share) {
  const frame = element("span", "", { class: "bar" });
  const filled = element("span", "");
  filled.style.width = `${100 * share}%`;
  frame.append(filled);
  return frame;
}

// Moments are the board's, and this machine's clock may be another's
let ahead = 0;

function since(moment) {
  const minutes = Math.floor((Date.now() - ahead - Date.parse(moment)) / 60000);
  return minutes < 1 ? "just now" : `for ${minutes} min`;
}

// Time goes on without news
setInterval(() => {
  for (const each of document.querySelectorAll("time")) {
    const text = since(each.dateTime);
    if (each.textContent !== text) each.textContent = text;
  }
}, 5000);

function place(each) {
  if (!each.chapter) return "nowhere yet";
  return each.section === each.chapter ? each.chapter : `${each.chapter} · ${each.section}`;
}

function show(board) {
  ahead = Date.now() - Date.parse(board.now);
  part("count").textContent =
    `${board.learners} joined, ${board.here} of them did something in the last 20 minutes`;
  part("help").replaceChildren(...board.help.map(waiting));
  if (!board.help.length) part("help").append(element("li", "Nobody waits.", { class: "quiet" }));
  part("sections").replaceChildren(...board.sections.map(
    (each) => row(place(each), bar(each.count / board.here), String(each.count))));
  part("exercises").replaceChildren(...board.exercises.map((each) => exercise(each, board.learners)));
  part("questions").replaceChildren(...board.questions.map((each) => question(each, board)));
  if (!board.questions.length)
    part("questions").append(row("The questions of a chapter come here once somebody has run a cell of it."));
  part("people").replaceChildren(...board.people.map(
    (each) => row(each.label, place(each), `${each.solved.length} solved`, each.titles.join(", "))));
}

function waiting(each) {
  const made = element("li");
  const time = element("time", since(each.since), { datetime: each.since });
  made.append(element("strong", each.label), " ", time, each.chapter ? `, in ${place(each)} ` : " ");
  made.append(button("I was there", () => send("api/heard", { number: each.number })));
  return made;
}

function exercise(each, learners) {
  const reasons = element("ul");
  for (const { count, reason } of each.reasons)
    reasons.append(element("li", `${count} of ${each.tried} who tried: ${reason}`));
  return row(`${each.chapter} · ${each.title}`, bar(each.solved / learners),
    `${each.solved} of ${learners} solved, ${each.tried} tried`, reasons);
}

function question(each, board) {
  const wall = board.wall;
  const isThere = each.chapter === wall.chapter && each.subject === wall.subject;
  const buttons = element("div", undefined, { class: "buttons" });
  if (isThere)
    buttons.append(
      button(wall.shown ? "Hide the answer" : "Show the answer",
        () => send("api/reveal", { shown: !wall.shown })),
      button("Clear the wall", () => send("api/show", { chapter: "", subject: "" })));
  else
    buttons.append(button("Put on the wall",
      () => send("api/show", { chapter: each.chapter, subject: each.subject })));
  const where = place({ chapter: each.title, section: each.section });
  const made = row(where, each.text, `${each.count} of ${board.learners} answered`, buttons);
  if (isThere) made.className = "on";
  return made;
}

// Each news draws the page anew; a button that is being pressed must not go meanwhile
let news = null;
let pressed = false;

function draw() {
  if (news !== null && !pressed) show(news);
}

addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"])
  addEventListener(end, () => { setTimeout(() => { pressed = false; draw(); }, 0); });

follow("api/board", (data) => { news = data; draw(); }, () => { part("count").textContent = "The board does not answer; trying again …"; });
