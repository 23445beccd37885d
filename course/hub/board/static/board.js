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

function since(moment) {
  const minutes = Math.floor((Date.now() - Date.parse(moment)) / 60000);
  return minutes < 1 ? "just now" : `for ${minutes} min`;
}

function place(each) {
  return each.chapter ? `${each.chapter} · ${each.section}` : "nowhere yet";
}

function show(board) {
  part("count").textContent =
    `${board.learners} joined, ${board.here} of them did something in the last 20 minutes`;
  part("help").replaceChildren(...board.help.map(waiting));
  if (!board.help.length) part("help").append(element("li", "Nobody waits.", { class: "quiet" }));
  part("sections").replaceChildren(...board.sections.map(
    (each) => row(place(each), bar(each.count / board.here), String(each.count))));
  part("exercises").replaceChildren(...board.exercises.map(exercise));
  part("questions").replaceChildren(...board.questions.map((each) => question(each, board.wall)));
  part("people").replaceChildren(...board.people.map(
    (each) => row(each.label, place(each), `${each.solved.length} solved`, each.solved.join(", "))));
  onTheWall(board);
}

function waiting(each) {
  const made = element("li");
  made.append(element("strong", each.label), ` ${since(each.since)}, in ${place(each)} `);
  made.append(button("I was there", () => send("api/heard", { number: each.number })));
  return made;
}

function exercise(each) {
  const reasons = element("ul");
  for (const { count, reason } of each.reasons)
    reasons.append(element("li", `${count} of ${each.tried}: ${reason}`));
  return row(each.section, bar(each.solved / each.tried), `${each.solved} of ${each.tried} solved`, reasons);
}

function question(each, wall) {
  const isThere = each.chapter === wall.chapter && each.subject === wall.subject;
  const made = row(each.section, each.text, `${each.count} answered`,
    button(isThere ? "On the wall" : "Put on the wall",
      () => send("api/show", { chapter: each.chapter, subject: each.subject })));
  if (isThere) made.className = "on";
  return made;
}

function onTheWall(board) {
  const line = part("on-the-wall");
  line.replaceChildren();
  if (!board.wall.subject) return;
  line.append(
    button(board.wall.shown ? "Hide the answer" : "Show the answer",
      () => send("api/reveal", { shown: !board.wall.shown })), " ",
    button("Clear the wall", () => send("api/show", { chapter: "", subject: "" })));
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
