/**
 * ThreadFile: where the code of the log's threads is: files next to this one. The bundle is one program without files
 * next to it, so it puts its own text in place of this module (`scripts/bundle.ts`).
 *
 * When agentd runs from its sources, each start of a thread strips the types of its files. That takes longer than
 * everything else that a thread does to start, so the thread turns on Node's cache of compiled files first. The cache
 * is next to the packages: users who can write there can change the code itself, while Node's default place, the common
 * temporary folder, is open to others. A folder that cannot be written is no error: nothing is cached then.
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
