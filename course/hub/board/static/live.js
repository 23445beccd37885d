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

// Calls show(data) with each news; the browser connects again by itself when the board comes back.
function follow(address, show, away) {
  // The Hub wants the page's own cookie back of whatever is no click on a link
  const source = new EventSource(`${address}?_xsrf=${encodeURIComponent(cookie("_xsrf"))}`);
  source.onmessage = (news) => show(JSON.parse(news.data));
  source.onerror = () => {
    away();
    // Some errors end it for good, such as the Hub's proxy answering while the board starts
    if (source.readyState === EventSource.CLOSED) setTimeout(loadAgain, 2000);
  };
}

// Loads the page anew once it is there, through the Hub's log-in where that is needed.
async function loadAgain() {
  const reply = await fetch(location.href).catch(() => null);
  if (reply && reply.ok) location.reload();
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
