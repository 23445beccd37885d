const part = (id) => document.getElementById(id);

function show(hands) {
  if (!hands.text) {
    part("text").textContent = "Nothing is on the wall yet.";
    for (const id of ["chapter", "bars", "answers", "answer"]) part(id).replaceChildren();
    return;
  }
  part("chapter").textContent = hands.chapter;
  part("text").textContent = hands.text;
  part("answers").textContent = hands.answers === 1 ? "1 answer" : `${hands.answers} answers`;
  const most = Math.max(1, ...hands.bars.map((each) => each.count));
  part("bars").replaceChildren(...hands.bars.map((each) => drawn(each, most)));
  part("answer").replaceChildren(...answer(hands));
}

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
  return lines;
}

follow("api/wall", show, () => { part("answers").textContent = "The board does not answer; trying again …"; });
