/** UpgradePlan: where agentd is installed, and whether a package may take its place. Pure. */
import { basename, dirname, join } from "node:path"
import type { Manifest } from "./PackageFile.ts"

/** How this program came to where it is. `root`: the folder of its package. */
export type Installation =
  | { readonly _tag: "Npm"; readonly root: string; readonly prefix: string }
  | { readonly _tag: "Clone"; readonly root: string }
  | { readonly _tag: "Other"; readonly root: string }

/** `script`: its real path. `hasSources`: whether a folder holds agentd's sources. */
export const installationOf = (script: string, hasSources: (root: string) => boolean): Installation => {
  const root = dirname(dirname(script))
  const modules = dirname(root)
  const isNpms = basename(root) === "agentd" && basename(modules) === "node_modules"
  if (isNpms && basename(dirname(modules)) === "lib") return { _tag: "Npm", root, prefix: dirname(dirname(modules)) }
  return { _tag: hasSources(root) ? "Clone" : "Other", root }
}

const numbersOf = (version: string): ReadonlyArray<number> => version.split(/[-+]/, 1)[0]!.split(".").map(Number)

const aheadOf = (version: string): string | undefined => /^[^-+]*-([^+]*)/.exec(version)?.[1]

/** Below 0: `a` is older than `b`. What comes ahead of a release (1.0.0-rc.1) is older than that. */
export const compare = (a: string, b: string): number => {
  const [left, right] = [numbersOf(a), numbersOf(b)]
  for (const at of [0, 1, 2]) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0)
    if (difference !== 0) return difference
  }
  const [before, after] = [aheadOf(a), aheadOf(b)]
  if (before === after) return 0
  if (before === undefined || after === undefined) return before === undefined ? 1 : -1
  return before.localeCompare(after, "en", { numeric: true })
}

/** Whether a Node of that version will do; another form than ">=24.15.0" cannot be told, and npm has its say. */
export const fits = (wanted: string | undefined, version: string): boolean => {
  const least = /^>=\s*v?(\d+(?:\.\d+){0,2})$/.exec(wanted?.trim() ?? "")?.[1]
  return least === undefined || compare(version.replace(/^v/, ""), least) >= 0
}

export interface Facts {
  readonly from: string
  readonly offered: Manifest
  readonly state: string
  /** Of the store; undefined: there is none. */
  readonly schema: number | undefined
  /** The version of this Node, and its system and machine: "linux-x64". */
  readonly node: string
  readonly platform: string
}

export interface Objection {
  readonly message: string
  readonly remedy: string
}

/** Whether npm brings a Node with the package that will do. */
const bringsNode = ({ needs, node }: Manifest, platform: string): boolean => {
  const pinned = needs[`node-${platform}`]
  return pinned !== undefined && fits(node, pinned)
}

/** Why that package may not take this one's place; undefined: it may. */
export const objectionTo = ({ from, node, offered, platform, schema, state }: Facts): Objection | undefined => {
  const { version } = offered
  if (!fits(offered.node, node) && !bringsNode(offered, platform)) {
    return {
      message: `agentd ${version} needs Node ${offered.node}; this one is ${node}, and the package brings none. Nothing was done.`,
      remedy: "Install a newer Node first: https://nodejs.org/en/download"
    }
  }
  if (schema === undefined || schema === 0) return undefined
  const stay = `Stay with agentd ${from}, or let the other one begin a store of its own: --state DIR`
  if (offered.schema !== undefined && offered.schema < schema) {
    return {
      message: `The store in ${state} has schema ${schema}; agentd ${version} reads no newer one than ${offered.schema}. Nothing was done.`,
      remedy: stay
    }
  }
  if (offered.schema === undefined && compare(version, from) < 0) {
    return {
      message: `agentd ${version} is older than ${from} and does not say which stores it reads; the one in ${state} has schema ${schema}. Nothing was done.`,
      remedy: stay
    }
  }
  return undefined
}

/** Where the package before is kept: npm passes over what begins with a dot. */
export const keptAt = (root: string, version: string): string => join(dirname(root), `.agentd-${version}-kept`)

/** The folder of the lock that one upgrade of a package holds: the kernel frees it, however that ends. */
export const lockAt = (root: string): string => join(dirname(root), ".agentd-upgrading")

/** Whether a name in that folder is one of a package that was kept. */
export const isKept = (name: string): boolean => /^\.agentd-\d.*-kept$/.test(name)
