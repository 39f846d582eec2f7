/**
 * ThreadFile: the URLs of the code of the log's threads, in files next to this one. The bundle is a single file and has
 * no files next to it, so it replaces this module with code of its own (`scripts/bundle.ts`).
 *
 * When agentd runs from its sources, each start of a thread strips the types from its source files. This takes longer
 * than the rest of the start, so the thread first enables Node's compile cache. The cache folder is next to the
 * packages, because users who can write there can change the code anyway. Node's default folder, the shared temporary
 * folder, is open to other users. If the cache folder cannot be written, nothing is cached, and there is no error.
 */
import { fileURLToPath } from "node:url"

const cache = fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url))

const threadOf = (file: string) => (): URL => {
  const entry = `import { enableCompileCache } from "node:module"
enableCompileCache(${JSON.stringify(cache)})
await import(${JSON.stringify(new URL(file, import.meta.url).href)})`
  return new URL(`data:text/javascript,${encodeURIComponent(entry)}`)
}

export const logThread = threadOf("./LogThread.ts")
export const verifyThread = threadOf("./VerifyThread.ts")
export const copyThread = threadOf("./CopyThread.ts")
