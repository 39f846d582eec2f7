/**
 * ThreadFile: where the code of the log's threads is: files beside this one. The
 * bundle, which is one program without files beside it, puts its own text in place of
 * this module (`scripts/bundle.ts`).
 *
 * From its sources a thread strips the types of its files anew, which takes longer than all
 * else that it does to start: so it turns on node's cache of compiled files first. The cache
 * lies beside the packages: who can write there can change the code itself, while node's own
 * place for it, the common temporary folder, is open to others. A folder that cannot be
 * written is no error: nothing is kept, then.
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
