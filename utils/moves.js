// A picture and what moves it: a function of the element that hosts them, the fields, and all the
// pictures, drawn beforehand and packed. It asks nobody, so it answers at once, and without Python.
//
// fields: [[name, [value, …], position at first]]. The pictures stand in the order of the
// positions, those of the last field side by side.
(host, fields, packed) => {
  "use strict";
  const frame = host.querySelector(".course-frame");
  const bar = host.querySelector(".course-bar");
  if (!frame || !bar || bar.childElementCount) return;
  const make = (tag, attributes, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpacking = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const pictures = new Response(unpacking).json();

  const said = make("span", { role: "status", class: "course-said" });
  const at = fields.map(([, , first]) => first);
  const show = async () => {
    const number = fields.reduce((sum, [, values], n) => sum * values.length + at[n], 0);
    const all = await pictures;
    frame.innerHTML = all.frames[all.order[number]];
    said.textContent = frame.querySelector("[aria-label]")?.getAttribute("aria-label") ?? frame.textContent.trim();
  };
  const slider = (n, name, values) => {
    const range = make("input", { type: "range", min: 0, max: values.length - 1, value: at[n], "aria-label": name });
    const value = make("output", {}, `${values[at[n]]}`);
    const go = (to) => {
      at[n] = to;
      range.value = to;
      value.textContent = values[to];
      range.setAttribute("aria-valuetext", values[to]);
      return show();
    };
    range.addEventListener("input", () => go(+range.value));
    const field = make("label", {}, `${name} `, range, value);
    bar.append(field);
    if (values.length > 3) bar.append(player(name, values, () => at[n], go));
  };
  const player = (name, values, now, go) => {
    const button = make("button", { type: "button", "aria-label": `play ${name}`, title: `play ${name}` }, "▶\uFE0E");
    let clock = 0;
    const stop = () => { clearInterval(clock); clock = 0; button.textContent = "▶\uFE0E"; };
    button.addEventListener("click", () => {
      if (clock) return stop();
      if (now() === values.length - 1) go(0);
      button.textContent = "❚❚";
      clock = setInterval(() => {
        if (!host.isConnected || now() >= values.length - 1) return stop();
        go(now() + 1);
      }, Math.max(150, Math.min(900, 9000 / values.length)));
    });
    bar.addEventListener("input", stop);
    return button;
  };
  const menu = (n, name, values) => {
    const chosen = make("select", { "aria-label": name }, ...values.map((value, number) => make("option", { value: number }, `${value}`)));
    chosen.selectedIndex = at[n];
    chosen.addEventListener("change", () => { at[n] = chosen.selectedIndex; show(); });
    bar.append(make("label", {}, `${name} `, chosen));
  };
  fields.forEach(([name, values], n) => (typeof values[0] === "number" ? slider : menu)(n, name, values));
  bar.append(said);
  bar.addEventListener("keydown", (event) => event.stopPropagation());
}
