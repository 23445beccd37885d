// What the course adds to JupyterLab, and to slides shown live from it (jupyterlab-rise):
//
// - a cell that begins with `%%writefile x.cu` or `%%cuda` has the colours of CUDA C, one with
//   `%%bash` a shell's;
// - opening a notebook does not mark it as changed;
// - with the start page the file browser shows the chapters;
// - the first line of an answer does not stand below its question, folded as it is;
// - saved widgets say once, in words, that their cell must run, and stay until it does;
// - in a dark theme white charts and untrusted pictures are dark, and code can be read in both;
// - sliders have names, for those who do not see their labels;
// - text has lines that can be read, and what is for Colab alone is not shown;
// - what another machine printed says so, until the cell has run here;
// - a guess is marked once the cell that answers it has run;
// - slides have letters for a room, a heading each, and nothing folded.
//
// Written by hand, so that nothing must be built: JupyterLab loads an extension as a "container" of
// webpack's module federation, an object with `init` and `get`, and shares its own modules with it.
// https://jupyterlab.readthedocs.io/en/stable/extension/extension_dev.html

(() => {
  const NAME = "cuda-course";
  let shared; // {package: {version: {get, loaded}}}, JupyterLab's

  async function module(name) {
    const versions = Object.values(shared[name]);
    const used = versions.find((version) => version.loaded) ?? versions[0];
    return (await used.get())();
  }

  // ---- CUDA C, as a stream of tokens (CodeMirror's StreamLanguage)

  const words = (text) => new Set(text.split(/\s+/));

  const KEYWORDS = words(`
    alignas alignof asm auto break case catch class const constexpr continue decltype default
    delete do else enum explicit extern false for friend goto if inline namespace new noexcept
    nullptr operator private protected public register return sizeof static static_assert
    static_cast reinterpret_cast const_cast struct switch template this throw true try typedef
    typename union using virtual volatile while
    __global__ __device__ __host__ __shared__ __constant__ __managed__ __restrict__
    __forceinline__ __noinline__ __launch_bounds__ __cluster_dims__ __grid_constant__ __align__
  `);

  const TYPES = words(`
    bool char double float int long short signed unsigned void size_t
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t
    dim3 int2 int3 int4 uint2 uint3 uint4 float2 float3 float4 double2 uchar4
    half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 __nv_fp8_e4m3 __nv_fp8_e5m2
    cudaError_t cudaStream_t cudaEvent_t cudaGraph_t cudaGraphExec_t cudaDeviceProp
  `);

  const BUILT_IN = words("threadIdx blockIdx blockDim gridDim warpSize");

  const START = { comment: false, magic: true };

  function blockComment(stream, state) {
    const ends = stream.match(/^.*?\*\//);
    if (!ends) stream.skipToEnd();
    state.comment = !ends;
    return "comment";
  }

  function word(text) {
    if (KEYWORDS.has(text)) return "keyword";
    return TYPES.has(text) || BUILT_IN.has(text) ? "variableName.standard" : "variableName";
  }

  function token(stream, state) {
    const first = state.magic;
    state.magic = false;
    if (first && stream.match(/^%%.*/)) return "meta";
    if (state.comment) return blockComment(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match(/^\/\/.*/)) return "comment";
    if (stream.match("/*")) return blockComment(stream, state);
    if (stream.match(/^#\s*include\s*(<[^>]*>|"[^"]*")/)) return "meta";
    if (stream.match(/^#\s*[a-z]+/)) return "meta";
    if (stream.match(/^R"\(.*?\)"/)) return "string";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)'/)) return "string";
    if (stream.match(/^(?:0[xX][\da-fA-F']+|0b[01']+)[uUlL]*/)) return "number";
    if (stream.match(/^(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*/)) return "number";
    const name = stream.match(/^[A-Za-z_]\w*/);
    if (name) return word(name[0]);
    stream.next();
    return "operator";
  }

  const CUDA = {
    name: "cuda",
    startState: () => ({ ...START }),
    copyState: (state) => ({ ...state }),
    token,
    languageData: {
      commentTokens: { line: "//", block: { open: "/*", close: "*/" } },
      closeBrackets: { brackets: ["(", "[", "{", '"'] },
    },
  };
  const CUDA_TYPE = "text/x-cuda";

  // ---- a notebook's cells

  // The type of what a cell holds, "" for the kernel's own language
  function typeOf(source) {
    const magic = /^%%(\w+)(.*)/.exec(source);
    if (!magic) return "";
    if (magic[1] === "bash" || magic[1] === "sh") return "text/x-sh";
    if (magic[1] === "cuda") return CUDA_TYPE;
    if (magic[1] !== "writefile") return "";
    const ending = /\.(\w+)\s*$/.exec(magic[2])?.[1] ?? "";
    if (["cu", "cuh", "h", "hpp", "c", "cpp"].includes(ending)) return CUDA_TYPE;
    return ending === "py" ? "" : "text/plain";
  }

  // An editor shows the language whose parser comes last. So that this is ours, the one before must
  // be there already.
  function colour(cell, notebook, languages) {
    if (cell.type !== "code") return;
    const wanted = () => typeOf(cell.sharedModel.getSource()) || notebook.codeMimetype;
    const paint = async () => {
      if (cell.mimeType === wanted()) return;
      await languages.getLanguage(cell.mimeType);
      setTimeout(() => {
        if (!cell.isDisposed) cell.mimeType = wanted();
      });
    };
    paint();
    cell.contentChanged.connect(paint);
    cell.mimeTypeChanged.connect(paint); // the notebook sets it once the kernel is there
  }

  function colourAll(panel, languages) {
    const cells = panel.content.model.cells;
    const colourEach = (some) => some.forEach((cell) => colour(cell, panel.content, languages));
    colourEach([...cells]);
    cells.changed.connect((_, change) => {
      if (change.type === "add") colourEach(change.newValues);
    });
  }

  // ---- opening is not changing

  // What a learner can change in a notebook; the rest is written by JupyterLab when a kernel starts
  function content(model) {
    const notebook = model.toJSON();
    delete notebook.metadata.language_info;
    delete notebook.metadata.kernelspec;
    return JSON.stringify(notebook);
  }

  // JupyterLab marks a notebook as changed when its kernel says what Python it is, and again when
  // its widgets are there. Until the learner does something, that is no change.
  function stayClean(panel) {
    const model = panel.context.model;
    const before = content(model);
    const clean = () => {
      if (!model.isDisposed && model.dirty && content(model) === before) model.dirty = false;
    };
    const changed = (_, change) => {
      if (change.name === "dirty" && change.newValue) setTimeout(clean);
    };
    model.stateChanged.connect(changed);
    const stop = () => model.stateChanged.disconnect(changed);
    for (const act of ["keydown", "pointerdown"]) {
      panel.node.addEventListener(act, stop, { once: true, capture: true });
    }
    clean();
  }

  // ---- widgets of cells that have not run stay

  const WIDGETS = "application/vnd.jupyter.widget-state+json";
  const VIEW = "application/vnd.jupyter.widget-view+json";
  const MODEL = /"(?:IPY_MODEL_)?([0-9a-f]{32})"/g; // another model, in a model's state

  // The ids of the widgets that the notebook's outputs show
  function shownWidgets(model) {
    const outputs = [...model.cells].flatMap((cell) => cell.outputs?.toJSON() ?? []);
    return outputs.flatMap((output) => output.data?.[VIEW]?.model_id ?? []);
  }

  // Those of the models that these need, and what they are made of
  function needed(ids, models) {
    const found = {};
    const open = [...ids];
    while (open.length) {
      const id = open.pop();
      if (found[id] || !models[id]) continue;
      found[id] = models[id];
      for (const [, part] of JSON.stringify(models[id]).matchAll(MODEL)) open.push(part);
    }
    return found;
  }

  // ipywidgets saves the widgets that this kernel made, and forgets all others
  function keepWidgets(panel) {
    const model = panel.context.model;
    let before = {};
    const keep = () => {
      const saved = model.getMetadata("widgets")?.[WIDGETS] ?? {};
      const kept = needed(shownWidgets(model), { ...before, ...saved.state });
      const forgotten = Object.keys(kept).some((id) => !saved.state?.[id]);
      before = { ...kept, ...saved.state };
      if (!forgotten) return;
      const all = { version_major: 2, version_minor: 0, ...saved, state: before };
      model.setMetadata("widgets", { [WIDGETS]: all });
    };
    keep();
    model.metadataChanged.connect((_, change) => {
      if (change.key === "widgets") keep();
    });
  }

  // ---- the file browser stands where the chapters are

  const START_PAGE = /(^|\/)course\/index\.ipynb$/;

  function showChapters(app, panel) {
    const path = panel.context.localPath;
    if (!START_PAGE.test(path) || !app.commands.hasCommand("filebrowser:go-to-path")) return;
    const chapters = path.replace(START_PAGE, "$1chapters");
    app.restored.then(() =>
      app.commands.execute("filebrowser:go-to-path", { path: chapters, dontShowBrowser: true }),
    );
  }

  // ---- what is for Colab alone, and what was saved on another machine

  function markSaved(panel) {
    for (const cell of panel.content.widgets) {
      const tags = cell.model.getMetadata("tags") ?? [];
      cell.toggleClass("course-colab", tags.includes("colab"));
      cell.toggleClass("course-others", tags.includes("setup") && cell.model.outputs?.length > 0);
    }
  }

  // ---- a guess, once the cell that answers it has run

  const ASKED = 3; // cells, at most, from the question to its answer

  // The cell with the question that this one answers, if there is one with a known answer
  function questionOf(notebook, cell) {
    const at = notebook.widgets.indexOf(cell);
    for (const before of notebook.widgets.slice(Math.max(0, at - ASKED), at).reverse()) {
      if (before.model.type !== "code") continue;
      const tags = before.model.getMetadata("tags") ?? [];
      return tags.includes("predict") && before.model.getMetadata("answer") ? before : null;
    }
    return null;
  }

  // Marks the button that was clicked; who has not guessed is told nothing
  function markGuess(notebook, cell) {
    const question = questionOf(notebook, cell);
    if (!question) return;
    const answer = question.model.getMetadata("answer");
    const guess = question.node.querySelector(".jupyter-button.mod-info");
    if (!guess) return;
    for (const button of guess.parentElement.querySelectorAll(".jupyter-button")) {
      const isRight = button.textContent.trim() === answer;
      button.classList.toggle("course-right", isRight);
      button.classList.toggle("course-wrong", button === guess && !isRight);
    }
    const said = guess.textContent.trim() === answer ? "Right." : `It is: ${answer}.`;
    let line = question.node.querySelector(".course-verdict");
    if (!line) {
      line = document.createElement("p");
      line.className = "course-verdict";
      line.setAttribute("role", "status");
      guess.parentElement.after(line);
    }
    line.textContent = said;
  }

  async function opened(app, panel, languages) {
    await panel.context.ready;
    colourAll(panel, languages);
    hideCalls(panel);
    markSaved(panel);
    keepWidgets(panel);
    stayClean(panel);
    showChapters(app, panel);
  }

  // Does it whenever the page has changed, once a frame
  function watch(action) {
    let waits = false;
    const soon = () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        action();
      });
    };
    new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  }

  // ---- names for sliders (ipywidgets gives their handles none)

  function nameSliders() {
    for (const handle of document.querySelectorAll(".noUi-handle:not([aria-label])")) {
      const label = handle.closest(".widget-inline-hbox, .jupyter-widgets")?.querySelector("label");
      handle.setAttribute("aria-label", label?.textContent.trim() || "value");
    }
  }

  // ---- the theme: code, prompts and errors with the contrast that WCAG asks for, where
  // JupyterLab's own colours have less; in the dark a white drawing, which has few colours, is
  // turned into its negative

  const FEW_COLOURS = 16;
  const MOST_OF_IT = 0.7; // of a drawing's pixels have these few colours
  const STYLE = `
  body {
    --jp-mirror-editor-bracket-color: #6b6b47;
    --jp-mirror-editor-comment-color: #2e6b6b;
    --jp-mirror-editor-meta-color: #8a1ae0;
    --jp-mirror-editor-number-color: #007000;
    --jp-mirror-editor-operator-color: #8a1ae0;
    --jp-cell-prompt-not-active-opacity: 1;
  }
  body[data-jp-theme-light="false"] {
    --jp-mirror-editor-bracket-color: #b5b58a;
    --jp-mirror-editor-comment-color: #6fa8a8;
    --jp-mirror-editor-def-color: #4ea5f2;
    --jp-mirror-editor-meta-color: #c080ff;
    --jp-mirror-editor-number-color: #66bb6a;
    --jp-mirror-editor-operator-color: #c080ff;
  }
  .jp-RenderedText pre .ansi-red-fg { color: #a3221b; }
  .jp-RenderedText pre .ansi-green-fg { color: #007000; }
  .jp-RenderedText pre .ansi-cyan-fg { color: #006b73; }
  body[data-jp-theme-light="false"] .jp-RenderedText pre .ansi-red-fg { color: #ff9d99; }
  body[data-jp-theme-light="false"] .jp-RenderedText pre .ansi-green-fg { color: #66d08a; }
  body[data-jp-theme-light="false"] .jp-RenderedText pre .ansi-cyan-fg { color: #60c6c8; }
  .jp-OutputArea-output pre { word-break: normal; overflow-wrap: anywhere; }
  .jp-OutputArea-output.jp-RenderedMarkdown pre { margin: 0; }
  .jp-OutputArea-output.jp-RenderedMarkdown pre code { font-size: var(--jp-code-font-size); }
  .jp-OutputPlaceholder .jp-PlaceholderText { display: none; }
  .jp-OutputPlaceholder .jp-Placeholder-contentContainer::before {
    content: "The answer, saved and folded: run the cell to see your own";
    font-family: var(--jp-ui-font-family);
  }
  .jupyter-widgets-disconnected::before { content: none; }
  .jupyter-widgets-disconnected:not(.jupyter-widgets-disconnected *)::before {
    content: "As saved: run the cell to use this";
    color: var(--jp-ui-font-color2);
    font-family: var(--jp-ui-font-family);
    font-size: var(--jp-ui-font-size1);
    font-weight: normal;
  }
  .jupyter-widgets-disconnected .jupyter-button {
    background: none;
    outline: 1px dashed var(--jp-border-color0);
    outline-offset: -1px;
    cursor: default;
  }
  .jp-Notebook .jp-RenderedMarkdown > :is(p, ul, ol, blockquote) { max-width: 47em; }
  .reveal .jp-Notebook .jp-RenderedMarkdown > :is(p, ul, ol, blockquote) { max-width: none; }
  .jp-RenderedHTMLCommon table { margin-left: 0; }
  .course-colab { display: none; }
  .course-others .jp-Cell-outputArea::before {
    content: "As saved. Run the cell to see the machine that you are on:";
    color: var(--jp-ui-font-color2);
    font-family: var(--jp-ui-font-family);
    font-size: var(--jp-ui-font-size1);
    padding-left: calc(var(--jp-cell-prompt-width) + var(--jp-code-padding));
  }
  .jp-OutputArea .jupyter-button.course-right { box-shadow: inset 0 0 0 2px #12805c; }
  .jp-OutputArea .jupyter-button.course-wrong { box-shadow: inset 0 0 0 2px #d03a00; }
  .course-right::before { content: "✓ "; }
  .course-wrong::before { content: "✗ "; }
  .course-verdict { font-weight: 600; margin: 4px 2px; }
  body[data-jp-theme-light="false"] img[data-kind="drawing"] {
    filter: invert(1) hue-rotate(180deg) brightness(1.2);
    mix-blend-mode: screen;
  }`;

  function kindOf(image) {
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
    const drawn = most.reduce((sum, each) => sum + each, 0);
    const all = canvas.width * canvas.height;
    return drawn > MOST_OF_IT * all ? "drawing" : "photograph";
  }

  function tellPicturesApart() {
    if (document.body.dataset.jpThemeLight !== "false") return;
    const outputs = ".jp-OutputArea-output img[src^='data:image/png']:not([data-kind])";
    for (const image of document.querySelectorAll(outputs)) {
      image.dataset.kind = "";
      const tell = () => {
        image.dataset.kind = kindOf(image);
      };
      image.decode().then(tell, () => {}); // a broken picture stays as it is
    }
  }

  // Where JupyterLab does not trust a picture's SVG, the image beside it stays (utils/plots/svg.py)
  const STILLS =
    ".jp-OutputArea-output :not(.course-picture[hidden]) + img[src^='data:image/svg+xml;base64,']";
  const LIGHT_INK = "background:#fff;color:#222";
  const DARK_INK = "background:#111;color:#eee;--paper:#111";

  function inkStills() {
    const isDark = document.body.dataset.jpThemeLight === "false";
    const [before, now] = isDark ? [LIGHT_INK, DARK_INK] : [DARK_INK, LIGHT_INK];
    for (const image of document.querySelectorAll(STILLS)) {
      if (image.classList.contains("course-dark") === isDark) continue;
      image.classList.toggle("course-dark");
      const [kind, data] = image.src.split(",");
      image.src = `${kind},${btoa(atob(data).replace(before, now))}`;
    }
  }

  function paintPictures() {
    tellPicturesApart();
    inkStills();
  }

  function followTheme() {
    const style = document.createElement("style");
    style.textContent = STYLE;
    document.head.append(style);
    watch(paintPictures);
    const theme = { attributes: true, attributeFilter: ["data-jp-theme-light"] };
    new MutationObserver(paintPictures).observe(document.body, theme);
  }

  // ---- live slides: letters for a room, and a heading on each (chapters/rise.css has the rest)

  const SMALLEST = 20 / 1280; // of the window's width

  function enlarge(slide) {
    for (const node of slide.querySelectorAll(".jp-OutputArea-output *, .jp-RenderedMarkdown *")) {
      if (node.closest("svg, math, mjx-container, sup, sub, style")) continue;
      const size = parseFloat(getComputedStyle(node).fontSize);
      if (size < SMALLEST * window.innerWidth) {
        node.style.setProperty("font-size", `${SMALLEST * 100}vw`, "important");
      }
    }
  }

  // What is folded in the notebook, a section or the call that asks for a prediction, is for who
  // reads: a room sees the section and the question.
  function unfold(slide) {
    for (const button of slide.querySelectorAll(".jp-showHiddenCellsButton")) button.click();
  }

  // What %%writefile says, which its first line says already
  const WRITTEN = /^\s*(Writing|Overwriting|Appending to) \S+\s*$/;

  function hideWritten(slide) {
    for (const said of slide.querySelectorAll(".jp-OutputArea-child")) {
      if (WRITTEN.test(said.textContent)) said.classList.add("course-written");
    }
  }

  const HINT = "# exercises.hint(";

  function hideCalls(panel) {
    for (const cell of panel.content.widgets) {
      const tags = cell.model.getMetadata("tags") ?? [];
      cell.toggleClass("course-no-input", tags.includes("remove-input"));
      cell.toggleClass("course-hint", cell.model.sharedModel.getSource().startsWith(HINT));
    }
  }

  // ---- live slides with room left: larger letters, as far as no heading, no line of code or of an
  // output must wrap for it; longer than the screen: smaller letters, then smaller pictures, as far
  // as a room can read them; what even so does not fit scrolls

  const LARGER = [1.5, 1.35, 1.2, 1.1]; // times the usual size
  const TEXTS = ".jp-RenderedMarkdown, .jp-RenderedHTML, .jp-RenderedHTML > div";
  const LINES = ".cm-line, .jp-OutputArea-output pre, :is(h2, h3, h4)";
  const MOST = 0.95; // of the window's height: RISE has longer slides scroll
  const SMALLEST_PICTURE = 0.5; // of the height it takes: below that its letters are too small

  const tooLong = (slide) => slide.scrollHeight - slide.clientHeight;

  const isTall = (slide) => tooLong(slide) > 2 || slide.scrollHeight > MOST * window.innerHeight;

  // Each time anew: what was there before may be shorter by now
  function shrinkPictures(slide) {
    const pictures = ".jp-OutputArea-output :is(.course-picture > svg, img)";
    const found = [...slide.querySelectorAll(pictures)];
    for (const picture of found) picture.style.removeProperty("max-height");
    if (tooLong(slide) <= 2) return;
    const heights = found.map((picture) => picture.getBoundingClientRect().height);
    const all = heights.reduce((sum, height) => sum + height, 0);
    const share = Math.max((all - tooLong(slide)) / all, SMALLEST_PICTURE);
    found.forEach((picture, at) => {
      picture.style.setProperty("max-height", `${heights[at] * share}px`, "important");
    });
  }

  function wraps(lines) {
    const count = lines.textContent.replace(/\n$/, "").split("\n").length;
    const { lineHeight } = getComputedStyle(lines);
    return lines.getBoundingClientRect().height > (count + 0.8) * parseFloat(lineHeight);
  }

  const overflows = (text) => text.scrollWidth > text.clientWidth + 2; // as a formula may
  const any = (slide, kind, is) => [...slide.querySelectorAll(kind)].some(is);

  // A slide grows when it comes to the screen, and when an output is done later
  const resized = new ResizeObserver(() => requestAnimationFrame(prepareSlide));

  // From the largest letters down: what was too large once stays out, however often a cell runs
  function grow(slide) {
    if (!slide.larger) {
      slide.larger = [...LARGER];
      resized.observe(slide);
    }
    for (; slide.larger.length; slide.larger.shift()) {
      slide.style.setProperty("--course-larger", slide.larger[0]);
      const isFull = isTall(slide) || any(slide, LINES, wraps) || any(slide, TEXTS, overflows);
      if (!isFull) return;
    }
    slide.style.removeProperty("--course-larger");
  }

  function fit(slide) {
    grow(slide);
    // RISE looks at a slide as it turns there, before its sections are unfolded and its cells run
    if (isTall(slide)) slide.style.overflowY = "auto";
    if (tooLong(slide) > 2) slide.classList.add("course-tight");
    shrinkPictures(slide);
    showMore(slide);
    headTheFoot(slide);
  }

  // A full slide's repeated heading stands behind its number (chapters/rise.css)
  function headTheFoot(slide) {
    const isFull = slide.classList.contains("course-tight");
    const number = document.querySelector(".reveal .slide-number");
    const words = isFull ? (slide.dataset.running ?? "") : "";
    if (number && number.dataset.running !== words) number.dataset.running = words;
  }

  // Whether there is more below, for the shadow at the slide's end
  function showMore(slide) {
    slide.classList.toggle("course-more", tooLong(slide) - slide.scrollTop > 20);
  }

  function repeatHeadings() {
    let last = "";
    for (const slide of document.querySelectorAll(".reveal .slides section section")) {
      const heading = slide.querySelector(".jp-RenderedMarkdown :is(h1, h2, h3, h4)");
      if (heading) last = heading.textContent.replace("¶", "");
      if (heading) delete slide.dataset.running;
      else if (last && slide.dataset.running !== last) slide.dataset.running = last;
    }
  }

  // ---- live slides that go on below the screen: the keys that lead on scroll first

  const PRESENT = ".reveal section.present section.present";
  const TYPING = "input, textarea, select, button, [role=slider], .cm-content";

  // Pixels of the slide that are still to be seen; a fragment that is not yet shown ends them.
  function below(slide) {
    const hidden = slide.querySelector(".fragment:not(.visible)");
    const place = slide.getBoundingClientRect();
    if (hidden) return hidden.getBoundingClientRect().top - place.bottom;
    return slide.scrollHeight - slide.clientHeight - slide.scrollTop;
  }

  function scrollFirst(event) {
    const down = event.key === "PageDown" || (event.key === " " && !event.shiftKey);
    const up = event.key === "PageUp" || (event.key === " " && event.shiftKey);
    const slide = document.querySelector(PRESENT);
    if (!(down || up) || !slide || event.target.closest(TYPING)) return;
    const left = down ? below(slide) : slide.scrollTop;
    if (left < 2) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    slide.scrollBy(0, (down ? 0.8 : -0.8) * slide.clientHeight);
  }

  function prepareSlide() {
    repeatHeadings();
    const slide = document.querySelector(PRESENT);
    if (!slide?.clientHeight) return; // not yet on the screen
    unfold(slide);
    hideWritten(slide);
    enlarge(slide);
    fit(slide);
  }

  async function extension() {
    const { INotebookTracker, NotebookActions } = await module("@jupyterlab/notebook");
    const { IEditorLanguageRegistry } = await module("@jupyterlab/codemirror");
    const { LanguageSupport, StreamLanguage } = await module("@codemirror/language");
    return {
      id: "cuda-course:lab",
      autoStart: true,
      requires: [INotebookTracker, IEditorLanguageRegistry],
      activate: (app, notebooks, languages) => {
        languages.addLanguage({
          name: "cuda",
          displayName: "CUDA C",
          mime: CUDA_TYPE,
          extensions: ["cu", "cuh"],
          load: async () => new LanguageSupport(StreamLanguage.define(CUDA)),
        });
        notebooks.forEach((panel) => opened(app, panel, languages));
        notebooks.widgetAdded.connect((_, panel) => opened(app, panel, languages));
        NotebookActions.executed.connect((_, { notebook, cell }) => {
          cell.removeClass("course-others");
          markGuess(notebook, cell);
        });
        watch(nameSliders);
        followTheme();
        if (document.querySelector(".reveal") || location.pathname.includes("/rise/")) {
          watch(prepareSlide);
          window.addEventListener("hashchange", () => setTimeout(prepareSlide));
          window.addEventListener("keydown", scrollFirst, true);
          const scrolled = (event) => event.target.matches?.(PRESENT) && showMore(event.target);
          window.addEventListener("scroll", scrolled, true);
        }
      },
    };
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB[NAME] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const plugin = await extension();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
