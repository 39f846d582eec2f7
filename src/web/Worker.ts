/** Worker: the page's service worker, which keeps the page's own files for when the daemon is away. */

/** Without it (another origin than https or loopback), the page begins with the daemon alone. */
export const begin = async (): Promise<void> => {
  if (!("serviceWorker" in navigator)) return
  await navigator.serviceWorker.register("/worker.js").catch(() => undefined)
}
