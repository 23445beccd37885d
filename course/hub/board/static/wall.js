const part = (id) => document.getElementById(id);

function show(hands) {
  if (!hands.text) {
    part("text").textContent = "Nothing is on the wall yet.";
    for (const id of ["chapter", "bars", "answers", "answer"]) part(id).replaceChildren();
    part("code").hidden = true;
    return;
  }
  part("chapter").textContent = hands.chapter;
  part("text").textContent = hands.text;
  part("answers").textContent = counted(hands);
  const most = Math.max(1, ...hands.bars.map((each) => each.count));
  part("bars").replaceChildren(...hands.bars.map((each) => drawn(each, most)));
  part("answer").replaceChildren(...answer(hands));
  part("text").className = hands.text.length > 200 ? "long" : "";
  part("code").textContent = hands.code.replace(/\n{3,}/g, "\n\n");
  part("code").hidden = !hands.code;
  fit();
}

function counted(hands) {
  const told = `${hands.answers} of ${hands.learners} answered`;
  const number = hands.unit ? `a number of ${hands.unit}` : "a number";
  return hands.typed && !hands.shown ? `Type ${number} in your notebook. ${told}` : told;
}

// Code and printed lines as large as their place allows: a room reads them from its last row
const LETTER = 0.605; // width of a letter, and
const LINE = 1.35; // height of a line, in font sizes

function fit() {
  for (const each of document.querySelectorAll("pre:not([hidden])")) {
    const lines = each.textContent.trimEnd().split("\n");
    // A comment behind code may go on in the next line
    const code = lines.map((line) => line.replace(/\s+(#|\/\/).*/, ""));
    const longest = Math.max(24, ...code.map((line) => line.length));
    const height = Math.max(innerHeight / 4, innerHeight - each.getBoundingClientRect().top - 56);
    const wide = (each.clientWidth - 30) / (longest * LETTER);
    // A long line goes on in the next rather than make all others small
    const size = Math.min(Math.max(wide, innerHeight / 38), innerHeight / 28);
    each.style.fontSize = `${Math.max(14, Math.min(size, height / (lines.length * LINE)))}px`;
  }
}

addEventListener("resize", fit);
addEventListener("keydown", (event) => {
  if (event.key === "c" && !event.ctrlKey && !event.metaKey) document.body.classList.toggle("plain");
});

function drawn(each, most) {
  const line = element("div", undefined, { class: each.right ? "line right" : "line" });
  const frame = element("span", undefined, { class: "bar" });
  const filled = element("span");
  filled.style.width = `${(100 * each.count) / most}%`;
  frame.append(filled);
  line.append(element("span", (each.right ? "✓ " : "") + each.label, { class: "label" }), frame,
    element("span", String(each.count), { class: "count" }));
  return line;
}

function answer(hands) {
  if (!hands.shown) return [];
  const lines = [];
  if (hands.answer) lines.push(element("p", `It is: ${hands.answer}`, { class: "is" }));
  if (hands.seen)
    lines.push(element("p", `Measured here: ${hands.seen}, the median of ${hands.seen_by}`, { class: "is" }));
  if (hands.recorded)
    lines.push(element("p", "One run of it printed:", { class: "once" }), element("pre", hands.recorded));
  if (hands.why) lines.push(element("p", hands.why));
  return lines;
}

follow("api/wall", show, () => { part("answers").textContent = "The board does not answer; trying again …"; });
