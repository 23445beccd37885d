// Keeps what pages that run Python have loaded, so that they open without a network, too.
const NAME = "cuda-course:here";
const FILES = new URL("files/", self.registration.scope).href; // each version in a folder of its own

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(`${location.origin}/`)) return;
  const answer = request.url.startsWith(FILES) ? keptOrNew : newOrKept;
  event.respondWith(answer(event));
});

// The answer that is kept for a request, or undefined; a browser may forbid to keep anything
async function kept(request, how) {
  try {
    return await (await caches.open(NAME)).match(request.url, how);
  } catch {
    return undefined;
  }
}

async function keptOrNew(event) {
  return (await kept(event.request)) ?? fetched(event);
}

async function newOrKept(event) {
  try {
    return await fetched(event);
  } catch (error) {
    const old = await kept(event.request, { ignoreSearch: true });
    if (old) return old;
    if (event.request.mode === "navigate") return notKept();
    throw error;
  }
}

// In place of a browser's own words, when a page is asked for without a network
async function notKept() {
  const cache = await caches.open(NAME);
  const pages = (await cache.keys()).filter(({ url }) => url.endsWith(".html"));
  const name = ({ url }) => url.split("/").at(-1);
  const items = pages.map((page) => `<li><a href="${encodeURI(page.url)}">${name(page)}</a></li>`);
  const text =
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not kept</title>' +
    '<meta name="viewport" content="width=device-width">' +
    "<p>There is no network, and this browser has not kept this page. It has kept these:</p>" +
    `<ul>${items.join("")}</ul>`;
  return new Response(text, { status: 503, headers: { "Content-Type": "text/html" } });
}

async function fetched(event) {
  const response = await fetch(event.request);
  if (response.status === 200) event.waitUntil(keep(event.request.url, response.clone()));
  return response;
}

async function keep(url, response) {
  try {
    await (await caches.open(NAME)).put(url, response);
  } catch {
    // no room: the page works all the same, but not without a network
  }
}

// A page says what it had loaded before this worker answered for it, and which version it uses
self.addEventListener("message", (event) => event.waitUntil(arrived(event.data)));

async function arrived({ loaded, files }) {
  const cache = await caches.open(NAME);
  for (const { url } of await cache.keys()) {
    if (url.startsWith(FILES) && !url.startsWith(files)) await cache.delete(url);
  }
  const own = loaded.filter((url) => url.startsWith(`${location.origin}/`));
  await Promise.allSettled(own.map(async (url) => (await cache.match(url)) ?? cache.add(url)));
}
