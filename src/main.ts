#!/usr/bin/env node
/**
 * main: the first module of agentd. Turns on Node's compile cache before any other
 * module is loaded, because it serves only what is loaded after it. The cache lies
 * in the user's own folder: in a shared one others could put code into this process.
 */
import { enableCompileCache } from "node:module"
import { isAbsolute, join } from "node:path"

// Read bare: loading Config first would load what is to be cached.
const { XDG_CACHE_HOME: xdg = "", HOME: home = "" } = process.env
const cache = isAbsolute(xdg) ? xdg : isAbsolute(home) ? join(home, ".cache") : undefined
if (cache !== undefined) enableCompileCache(join(cache, "agentd", "compile"))

await import("./app/Bin.ts")
