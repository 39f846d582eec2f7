/**
 * Worker: the page's service worker, which sends the token with the page's own request, so that the board stands in
 * the page when it comes.
 */
import { effect } from "@preact/signals"
import { link } from "./Store.ts"

const tell = async (token: string | null): Promise<void> => {
  const { active } = await navigator.serviceWorker.ready
  active?.postMessage({ token })
}

/** Without it (another origin than https or loopback), the page only begins without its board. */
export const begin = async (token: string | null): Promise<void> => {
  if (!("serviceWorker" in navigator)) return
  try {
    await navigator.serviceWorker.register("/worker.js")
    await tell(token)
    // a token that opens nothing is not kept
    effect(() => {
      if (link.value.state === "locked") void tell(null)
    })
  } catch {
    return
  }
}
