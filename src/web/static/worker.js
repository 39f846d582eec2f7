// Sends the page's token with the page's own request, so that the board stands in it, and keeps the shell for when the
// daemon is away. Data is never kept.
const SHELL = ["/page/app.js", "/page/app.css", "/page/icon.svg", "/page/manifest.webmanifest"]
const CACHE = "shell-1"
let token = null

self.addEventListener("install", (event) => {
  self.skipWaiting()
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...SHELL, "/"])))
})
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))
self.addEventListener("message", ({ data }) => {
  if (data && typeof data === "object" && "token" in data) token = data.token
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
self.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url)
  if (origin !== self.location.origin) return
  if (event.request.mode === "navigate" && pathname === "/") {
    const headers = token === null ? {} : { authorization: `Bearer ${token}` }
    event.respondWith(kept(new Request("/", { headers }), "/"))
  } else if (SHELL.includes(pathname)) event.respondWith(kept(event.request, pathname))
})
