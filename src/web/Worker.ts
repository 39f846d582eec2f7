/**
 * Worker: installs the page's service worker, and the files that it serves: only files that the daemon has proven. So a
 * page that is loaded while another program is at the daemon's port is still agentd's page.
 *
 * Guarantees: the worker is registered while the daemon answers, by the tag of its content as the daemon proved it. A
 * worker that this page did not register is removed as soon as it is seen, and reported to the daemon.
 */
import * as Api from "./Api.ts"

const CACHE = "shell"
/** Cache key for the tag of the cached page. */
const BUILD = "/build"
const FILES: { readonly [path: string]: string } = {
  "/": "text/html; charset=utf-8",
  "/page/app.js": "text/javascript; charset=utf-8",
  "/page/app.css": "text/css; charset=utf-8",
  "/page/icon.svg": "image/svg+xml",
  "/page/manifest.webmanifest": "application/manifest+json"
}
/** Maximum age of a page, in ms, that may be reloaded automatically. */
const JUST_BEGUN = 10_000

/** Caches the daemon's page; true: another version was cached before. */
const fill = async (build: string): Promise<boolean> => {
  const cache = await caches.open(CACHE)
  const kept = await (await cache.match(BUILD))?.text()
  if (kept === build) return false
  const files = await Promise.all(
    Object.entries(FILES).map(async ([path, type]) => [path, await Api.proven(path, type)] as const)
  )
  for (const [path, file] of files) await cache.put(path, file)
  await cache.put(BUILD, new Response(build))
  // caches of earlier versions
  for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name)
  return kept !== undefined
}

const scripts = ({ active, installing, waiting }: ServiceWorkerRegistration): ReadonlyArray<string> =>
  [installing, waiting, active].flatMap((worker) => (worker === null ? [] : [worker.scriptURL]))

let isKnown = false
const foreign = new Set<string>()
const found = async (registration: ServiceWorkerRegistration) => {
  for (const script of scripts(registration)) foreign.add(script)
  await registration.unregister()
  await Api.tellWorkers([...foreign])
}

/** Removes foreign workers: those with another scope or another script. */
const watch = async (): Promise<void> => {
  const own = new URL("/worker.js", location.origin).href
  for (const one of await navigator.serviceWorker.getRegistrations()) {
    const isOurs = one.scope === `${location.origin}/` && scripts(one).every((script) => script.split("?")[0] === own)
    if (!isOurs) await found(one)
  }
}

const urlOf = (tag: string): string => new URL(`/worker.js?tag=${tag}`, location.origin).href

/** Checks a worker that is being installed. It is ours only if the daemon has a new worker, and it is that one. */
const check = async (own: ServiceWorkerRegistration): Promise<void> => {
  const ours = await Api.me().then(
    ({ worker }) => urlOf(worker),
    () => undefined
  )
  const isNew = own.active?.scriptURL !== ours
  if (ours === undefined || !isNew || !scripts(own).includes(ours)) await found(own)
}

/**
 * Ensures that this page can be loaded while the daemon does not answer, and that no other program's page takes its
 * place.
 */
export const keep = async ({ build, worker }: Api.Me): Promise<void> => {
  if (!("serviceWorker" in navigator) || worker === "") return
  try {
    const isAnother = await fill(build)
    await watch()
    if (!isKnown || foreign.size > 0) await Api.tellWorkers([...foreign])
    const before = await navigator.serviceWorker.getRegistration("/")
    if (before === undefined || !scripts(before).includes(urlOf(worker)))
      await navigator.serviceWorker.register(urlOf(worker), { updateViaCache: "all" })
    const own = await navigator.serviceWorker.ready
    // a worker that is installed later comes from whatever program is at the port
    if (!isKnown) own.addEventListener("updatefound", () => void check(own).catch(() => undefined))
    isKnown = true
    if (isAnother && performance.now() < JUST_BEGUN) location.reload()
  } catch {
    // without a service worker (no storage, an origin other than https or loopback) the page loads only from the daemon
    return
  }
}
