// Sends the page's token with the page's own request, so that the board stands in it, and keeps the shell for when the
// daemon is away. Data is never kept; the token is, as the page keeps it: a worker is ended and begun at any time.
// While the daemon is there, the browser itself has the files: it is faster than any worker.
const SHELL = ["/page/app.js", "/page/app.css", "/page/icon.svg", "/page/manifest.webmanifest"]
// of what is in the shell: another build is another worker
const CACHE = "shell-%TAG%"
const TOKEN = "token"
const KEPT = "/page/token"
let isAway = false

self.addEventListener("install", (event) => {
  self.skipWaiting()
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...SHELL, "/"])))
})
const drop = async () => {
  for (const name of await caches.keys()) if (name !== CACHE && name !== TOKEN) await caches.delete(name)
}
self.addEventListener("activate", (event) => event.waitUntil(Promise.all([self.clients.claim(), drop()])))
self.addEventListener("message", (event) => {
  const { data } = event
  if (!data || typeof data !== "object" || !("token" in data)) return
  event.waitUntil(
    caches
      .open(TOKEN)
      .then((cache) => (data.token === null ? cache.delete(KEPT) : cache.put(KEPT, new Response(data.token))))
  )
})
const shell = async (path) => {
  const cache = await caches.open(CACHE)
  return (await cache.match(path)) ?? Response.error()
}
const page = async () => {
  const held = await (await caches.open(TOKEN)).match(KEPT)
  const headers = held === undefined ? {} : { authorization: `Bearer ${await held.text()}` }
  try {
    const response = await fetch(new Request("/", { headers }))
    isAway = false
    return response
  } catch {
    isAway = true
    return shell("/")
  }
}
self.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url)
  if (origin !== self.location.origin) return
  if (event.request.mode === "navigate" && pathname === "/") event.respondWith(page())
  else if (isAway && SHELL.includes(pathname)) event.respondWith(shell(pathname))
})
