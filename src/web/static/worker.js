// Sends the page's token with the page's own request, so that the board stands in it, and keeps the shell for when the
// daemon is away. Data is never kept; the token is, as the page keeps it: a worker is ended and begun at any time.
const SHELL = ["/page/app.js", "/page/app.css", "/page/icon.svg", "/page/manifest.webmanifest"]
const CACHE = "shell-1"
const KEPT = "/page/token"

self.addEventListener("install", (event) => {
  self.skipWaiting()
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...SHELL, "/"])))
})
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))
self.addEventListener("message", (event) => {
  const { data } = event
  if (!data || typeof data !== "object" || !("token" in data)) return
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => (data.token === null ? cache.delete(KEPT) : cache.put(KEPT, new Response(data.token))))
  )
})
const kept = (request, path) =>
  fetch(request).then(
    (response) => {
      if (response.ok && SHELL.includes(path)) {
        const copy = response.clone()
        caches.open(CACHE).then((cache) => cache.put(path, copy))
      }
      return response
    },
    () => caches.match(path)
  )
const page = async () => {
  const held = await caches.match(KEPT)
  const headers = held === undefined ? {} : { authorization: `Bearer ${await held.text()}` }
  return kept(new Request("/", { headers }), "/")
}
self.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url)
  if (origin !== self.location.origin) return
  if (event.request.mode === "navigate" && pathname === "/") event.respondWith(page())
  else if (SHELL.includes(pathname)) event.respondWith(kept(event.request, pathname))
})
