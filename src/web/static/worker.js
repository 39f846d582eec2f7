// Serves the page's own files, which the page has put there as the daemon proved them, whoever is at the daemon's port.
// Of data and keys it knows nothing.
self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))
const kept = async (request, pathname) => {
  const cache = await caches.open("shell")
  return (await cache.match(pathname)) ?? fetch(request)
}
self.addEventListener("fetch", (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  // what is asked with a signature is the page's own business
  if (origin !== self.location.origin || request.method !== "GET" || request.headers.has("authorization")) return
  if (pathname === "/" || pathname.startsWith("/page/")) event.respondWith(kept(request, pathname))
})
