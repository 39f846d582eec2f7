// Serves the page's own files from the cache, which the page fills only with files that the daemon has proven. So it
// does not matter which program is at the daemon's port. It handles no data and no keys.
self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))
const kept = async (request, pathname) => {
  const cache = await caches.open("shell")
  return (await cache.match(pathname)) ?? fetch(request)
}
self.addEventListener("fetch", (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  // signed requests are the page's own: do not handle them
  if (origin !== self.location.origin || request.method !== "GET" || request.headers.has("authorization")) return
  if (pathname === "/" || pathname.startsWith("/page/")) event.respondWith(kept(request, pathname))
})
