/**
 * Worker: installs the page's service worker, and caches the files that the worker serves. Only files with the daemon's
 * proof are cached. So even if another program occupies the daemon's port, loading the page gives agentd's own page.
 *
 * Guarantees: the worker is registered only while the daemon answers, with a tag of its content that the daemon has
 * proven. A worker that this page did not register is removed when it is found, and reported to the daemon.
 */
import * as Api from "./Api.ts"

const CACHE = "shell"
/** Cache key under which the cached page's tag is stored. */
const BUILD = "/build"
const FILES: { readonly [path: string]: string } = {
  "/": "text/html; charset=utf-8",
  "/page/app.js": "text/javascript; charset=utf-8",
  "/page/app.css": "text/css; charset=utf-8",
  "/page/icon.svg": "image/svg+xml",
  "/page/manifest.webmanifest": "application/manifest+json"
}
/** Maximum time in ms since the page was loaded during which it may be reloaded automatically. */
const JUST_BEGUN = 10_000

/** Caches the daemon's page. Returns true if another version was cached before. */
const fill = async (build: string): Promise<boolean> => {
  const cache = await caches.open(CACHE)
  const kept = await (await cache.match(BUILD))?.text()
  if (kept === build) return false
  const files = await Promise.all(
    Object.entries(FILES).map(async ([path, type]) => [path, await Api.proven(path, type)] as const)
  )
  for (const [path, file] of files) await cache.put(path, file)
  await cache.put(BUILD, new Response(build))
  // delete the caches of earlier versions
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

/** Removes foreign service workers: those with another scope or another script. */
const watch = async (): Promise<void> => {
  const own = new URL("/worker.js", location.origin).href
  for (const one of await navigator.serviceWorker.getRegistrations()) {
    const isOurs = one.scope === `${location.origin}/` && scripts(one).every((script) => script.split("?")[0] === own)
    if (!isOurs) await found(one)
  }
}

const urlOf = (tag: string): string => new URL(`/worker.js?tag=${tag}`, location.origin).href

/**
 * Checks a service worker that is being installed, and removes it unless it is the daemon's current worker and was not
 * active before.
 */
const check = async (own: ServiceWorkerRegistration): Promise<void> => {
  const ours = await Api.me().then(
    ({ worker }) => urlOf(worker),
    () => undefined
  )
  const isNew = own.active?.scriptURL !== ours
  if (ours === undefined || !isNew || !scripts(own).includes(ours)) await found(own)
}

/**
 * Ensures that this page can be loaded while the daemon does not answer, and that another program's page cannot replace
 * it.
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
    // a worker that is installed later comes from any program that has the port, so check it
    if (!isKnown) own.addEventListener("updatefound", () => void check(own).catch(() => undefined))
    isKnown = true
    if (isAnother && performance.now() < JUST_BEGUN) location.reload()
  } catch {
    // without service workers (no storage, or an origin other than https or loopback), the page is always loaded from
    // the daemon
    return
  }
}
