// What both pages of the board share. Everything a learner had a part in is set as text, never as HTML.

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function row(...cells) {
  const made = element("tr");
  for (const each of cells) {
    const cell = element("td");
    cell.append(each);
    made.append(cell);
  }
  return made;
}

// Seconds without a word after which the board is taken to be away: it speaks every twenty. The Hub's
// proxy may keep a connection open behind which nobody is any more.
const SILENT = 50;

// Calls show(data) with each news; the browser connects again by itself when the board comes back.
function follow(address, show, away) {
  // The Hub wants the page's own cookie back of whatever is no click on a link
  const source = new EventSource(`${address}?_xsrf=${encodeURIComponent(cookie("_xsrf"))}`);
  let alarm;
  const heard = () => {
    clearTimeout(alarm);
    alarm = setTimeout(() => { source.close(); away(); loadAgain(); }, 1000 * SILENT);
  };
  heard();
  source.addEventListener("still", heard);
  source.onmessage = (news) => { heard(); show(JSON.parse(news.data)); };
  source.onerror = () => {
    away();
    // Some errors end it for good, such as the Hub's proxy answering while the board starts
    if (source.readyState === EventSource.CLOSED) setTimeout(loadAgain, 2000);
  };
}

// Loads the page anew, through the Hub's log-in, once Hub and board are there. Both are asked for
// what needs no log-in: in the background that would go round in circles. Board and wall reload at
// different moments, since each log-in replaces the cookie of the other's.
async function loadAgain() {
  const asked = ["/hub/health", "/services/board/static/live.js"].map((path) =>
    fetch(path, { cache: "no-store", redirect: "error" }).then((reply) => reply.ok, () => false),
  );
  const there = (await Promise.all(asked)).every((each) => each);
  if (there) setTimeout(() => location.reload(), 3000 * Math.random());
  else setTimeout(loadAgain, 2000);
}

function cookie(name) {
  const found = document.cookie.split("; ").find((each) => each.startsWith(name + "="));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
}

async function send(address, content) {
  const reply = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-XSRFToken": cookie("_xsrf") },
    body: JSON.stringify(content),
  });
  if (!reply.ok) alert(await reply.text());
}
