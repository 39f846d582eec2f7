// Keeps the page's own files for when the daemon is away; of data and keys it knows nothing.
// While the daemon is there, the browser itself has the files: it is faster than any worker.
const SHELL = ["/page/app.js", "/page/app.css", "/page/icon.svg", "/page/manifest.webmanifest"]
// of what is in the shell: another build is another worker
const CACHE = "shell-%TAG%"
let isAway = false

self.addEventListener("install", (event) => {
  self.skipWaiting()
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...SHELL, "/"])))
})
const drop = async () => {
  for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name)
}
self.addEventListener("activate", (event) => event.waitUntil(Promise.all([self.clients.claim(), drop()])))
const shell = async (path) => {
  const cache = await caches.open(CACHE)
  return (await cache.match(path)) ?? Response.error()
}
const page = async (request) => {
  try {
    const response = await fetch(request)
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
  if (event.request.mode === "navigate" && pathname === "/") event.respondWith(page(event.request))
  else if (isAway && SHELL.includes(pathname)) event.respondWith(shell(pathname))
})
