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

async function keptOrNew(event) {
  const cache = await caches.open(NAME);
  return (await cache.match(event.request.url)) ?? fetched(cache, event);
}

async function newOrKept(event) {
  const cache = await caches.open(NAME);
  try {
    return await fetched(cache, event);
  } catch (error) {
    const kept = await cache.match(event.request.url, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}

async function fetched(cache, event) {
  const response = await fetch(event.request);
  if (response.status === 200) event.waitUntil(keep(cache, event.request.url, response.clone()));
  return response;
}

async function keep(cache, url, response) {
  try {
    await cache.put(url, response);
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
