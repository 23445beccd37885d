// Shows the slides, and makes those smaller that would not fit: down to SMALLEST, where code is
// nearly as small as in JupyterLab. If that is not enough, outputs scroll. Prose and code never do:
// dataset.fits says that a slide has too much of them.
const SCREEN = { width: 1280, height: 720 };
const SMALLEST = 0.6;

function fits(slide) {
  const parts = [slide, ...slide.querySelectorAll("pre, table, img")];
  const tooWide = parts.some((part) => part.scrollWidth > part.clientWidth + 1);
  return slide.scrollHeight <= SCREEN.height && !tooWide;
}

function fit(slide) {
  const content = document.createElement("div");
  content.className = "content";
  content.append(...slide.childNodes);
  slide.append(content);
  for (let zoom = 1; !fits(slide) && zoom > SMALLEST;) {
    zoom = Math.max(SMALLEST, zoom - 0.05);
    content.style.zoom = zoom;
  }
  if (!fits(slide)) content.classList.add("tight");            // outputs scroll, pictures shrink
  slide.dataset.fits = fits(slide);
}

window.addEventListener("load", async () => {
  // all slides are laid out, before reveal.js hides all but one
  document.body.classList.add("measuring");
  document.querySelectorAll(".slides > section > section").forEach(fit);
  document.body.classList.remove("measuring");
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
