/**
 * BundlerSpy: a node_modules of links to this tree's packages, with a rolldown that notes each module that any build
 * writes. So a test knows what a bundle contains without asking the scripts that build it.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const modules = join(import.meta.dirname, "../../node_modules")

const spyOf = (record: string): string => `
import { appendFileSync } from "node:fs"
import * as real from ${JSON.stringify(join(modules, "rolldown/dist/index.mjs"))}
export * from ${JSON.stringify(join(modules, "rolldown/dist/index.mjs"))}
const spy = {
  name: "spy",
  generateBundle: (_, files) => {
    for (const { moduleIds = [] } of Object.values(files))
      appendFileSync(${JSON.stringify(record)}, moduleIds.map((id) => id + "\\n").join(""))
  }
}
export const rolldown = (options) => real.rolldown({ ...options, plugins: [options.plugins ?? [], spy] })
`

/** Makes the folder. `record`: the file to which the modules are written, a line each. */
export const make = (folder: string, record: string): void => {
  mkdirSync(join(folder, "rolldown"), { recursive: true })
  for (const name of readdirSync(modules))
    if (name !== "rolldown" && !name.startsWith(".package")) symlinkSync(join(modules, name), join(folder, name))
  writeFileSync(
    join(folder, "rolldown/package.json"),
    '{ "name": "rolldown", "type": "module", "exports": "./index.mjs" }'
  )
  writeFileSync(join(folder, "rolldown/index.mjs"), spyOf(record))
}

/** The packages of the recorded modules, each "name@version" with its folder. */
export const packagesIn = (record: string): ReadonlyMap<string, string> => {
  const packages = new Map<string, string>()
  for (const id of new Set(readFileSync(record, "utf8").split("\n"))) {
    const [before, after] = [id.slice(0, id.lastIndexOf("/node_modules/")), id.split("/node_modules/").at(-1)!]
    if (!id.includes("/node_modules/")) continue
    const name = after
      .split("/")
      .slice(0, after.startsWith("@") ? 2 : 1)
      .join("/")
    const folder = join(before, "node_modules", name)
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    packages.set(`${name}@${version}`, folder)
  }
  return packages
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
}

/** Adds a package of one module to a node_modules. */
export const plant = (folder: string, manifest: Manifest, files: { readonly [name: string]: string }) => {
  const all = { "package.json": JSON.stringify({ type: "module", exports: "./index.js", ...manifest }), ...files }
  for (const [name, text] of Object.entries(all)) {
    const file = join(folder, manifest.name, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}
