#!/usr/bin/env node
/**
 * main: the first module of agentd. Turns on Node's compile cache before any other module is loaded, because the cache
 * only works for modules that are loaded after it. The cache is in the user's own folder: in a shared folder, others
 * could inject code into this process.
 */
import { enableCompileCache } from "node:module"
import { isAbsolute, join } from "node:path"
import { isatty } from "node:tty"

// Without a listener, Node would open its debugger port on this signal.
process.on("SIGUSR1", () => {})

// Read process.env directly: loading Config first would load modules without the cache.
const { XDG_CACHE_HOME: xdg = "", HOME: home = "" } = process.env
const cache = isAbsolute(xdg) ? xdg : isAbsolute(home) ? join(home, ".cache") : undefined
const compiled = cache === undefined ? undefined : join(cache, "agentd", "compile")

/**
 * True for the arguments with which a program starts a daemon. Nobody sees the output, so the CLI code is not loaded.
 */
const isUnattended = (args: ReadonlyArray<string>): boolean => {
  const isUp = args.at(-1) === "up" && (args.length === 1 || (args.length === 3 && args[0] === "--state"))
  const isSeen = isatty(0) || isatty(1) || process.env["FORCE_COLOR"] !== undefined
  return isUp && !isSeen && args[1]?.trim() !== ""
}

const args = process.argv.slice(2)
if (compiled !== undefined) enableCompileCache(compiled)
if (args.at(-1) === "dial-stdio") (await import("./app/DialStdio.ts")).dial(args, process.env)
else if (args[0] === "model-agent" && args.length === 1) await import("./model-agent/main.ts")
else if (isUnattended(args)) (await import("./app/DaemonBin.ts")).start()
else await import("./app/Bin.ts")
