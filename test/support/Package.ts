/** Package: lays out agentd as npm packs and installs it: this tree's program, with another version number. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { VERSION } from "../../src/api/rpc/Version.ts"
import { PROGRAM } from "./Program.ts"

const root = join(import.meta.dirname, "..", "..")

/** Writes a package of that version into a folder, with the layout of npm; returns the folder. */
export const layOut = (folder: string, version: string, more: object = {}): string => {
  for (const name of ["agentd", "find-node.sh"]) {
    fs.cpSync(join(root, "scripts", name), join(folder, "scripts", name))
  }
  fs.cpSync(dirname(PROGRAM), join(folder, "dist"), { recursive: true })
  const chunks = join(folder, "dist", "chunks")
  for (const name of fs.readdirSync(chunks)) {
    const file = join(chunks, name)
    // V8 would use the cache for any text of the same length
    if (name.endsWith(".cache")) fs.rmSync(file)
    else fs.writeFileSync(file, fs.readFileSync(file, "utf8").replaceAll(`\`${VERSION}\``, `\`${version}\``))
  }
  const { bin, files } = JSON.parse(fs.readFileSync(join(root, "package.json"), "utf8"))
  const manifest = { name: "agentd", version, type: "module", bin, files }
  fs.writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, ...more }))
  return folder
}

export const write = (file: string, text: string) => fs.writeFileSync(file, text, { mode: 0o755 })

/** Changes an installed program so that its daemon exits at once. */
export const ending = (at: string): void => {
  fs.renameSync(join(at, "dist", "agentd.mjs"), join(at, "dist", "whole.mjs"))
  const up = 'console.error("no good"); process.exit(1)'
  write(join(at, "dist", "agentd.mjs"), `if (process.argv.includes("up")) { ${up} }\nawait import("./whole.mjs")\n`)
}

/** Packs packages into a folder; `change` modifies the package's files first. */
export const packer =
  (folder: string, env: NodeJS.ProcessEnv) =>
  (version: string, more: object = {}, change: (folder: string) => void = () => {}): string => {
    const from = layOut(join(folder, `packed-${version}`), version, more)
    change(from)
    execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], { cwd: from, env })
    return join(folder, `agentd-${version}.tgz`)
  }
