/**
 * Worker: the page's service worker, and the files that it serves: those that the daemon has proven, and no others. A
 * page that is loaded while another program is at the daemon's port is agentd's page all the same.
 *
 * Guarantees: the worker is registered while the daemon is there, by its content's tag as the daemon proved it; one that
 * this page did not register is taken away as soon as it is seen, and the daemon is told.
 */
import * as Api from "./Api.ts"

const CACHE = "shell"
/** The tag of the page that is kept. */
const BUILD = "/build"
const FILES: { readonly [path: string]: string } = {
  "/": "text/html; charset=utf-8",
  "/page/app.js": "text/javascript; charset=utf-8",
  "/page/app.css": "text/css; charset=utf-8",
  "/page/icon.svg": "image/svg+xml",
  "/page/manifest.webmanifest": "application/manifest+json"
}
/** A page that was begun so long ago is not loaded anew by itself, ms. */
const JUST_BEGUN = 10_000

/** Keeps the daemon's page; true: another one was kept before. */
const fill = async (build: string): Promise<boolean> => {
  const cache = await caches.open(CACHE)
  const kept = await (await cache.match(BUILD))?.text()
  if (kept === build) return false
  const files = await Promise.all(
    Object.entries(FILES).map(async ([path, type]) => [path, await Api.proven(path, type)] as const)
  )
  for (const [path, file] of files) await cache.put(path, file)
  await cache.put(BUILD, new Response(build))
  // of earlier versions
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

/** Takes away what is not ours: of another place, or of our own name with other content. */
const watch = async (): Promise<void> => {
  const own = new URL("/worker.js", location.origin).href
  for (const one of await navigator.serviceWorker.getRegistrations()) {
    const isOurs = one.scope === `${location.origin}/` && scripts(one).every((script) => script.split("?")[0] === own)
    if (!isOurs) await found(one)
  }
}

const urlOf = (tag: string): string => new URL(`/worker.js?tag=${tag}`, location.origin).href

/** Another worker is being installed: ours where the daemon has another one by now, and it is that. */
const check = async (own: ServiceWorkerRegistration): Promise<void> => {
  const ours = await Api.me().then(
    ({ worker }) => urlOf(worker),
    () => undefined
  )
  const isNew = own.active?.scriptURL !== ours
  if (ours === undefined || !isNew || !scripts(own).includes(ours)) await found(own)
}

/** Sees to it that this page is there when the daemon is away, and no other one in its place. */
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
    // what comes later comes from whoever is at the port
    if (!isKnown) own.addEventListener("updatefound", () => void check(own).catch(() => undefined))
    isKnown = true
    if (isAnother && performance.now() < JUST_BEGUN) location.reload()
  } catch {
    // without it (no store, another origin than https or loopback) the page begins with the daemon alone
    return
  }
}
