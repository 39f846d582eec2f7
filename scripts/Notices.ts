/**
 * Notices: the notices of the packages whose code a build contains (THIRD-PARTY-NOTICES), and a list of these packages
 * for programs (agentd.cdx.json, an SBOM in CycloneDX 1.6).
 *
 * Guarantees: both are made from the modules that the bundler has written, not from package.json. A package without a
 * licence or without the text of its licence fails the build. The same build makes the same files.
 */
import { readdirSync, readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { Plugin } from "rolldown"

export const NOTICES = "THIRD-PARTY-NOTICES"
export const SBOM = "agentd.cdx.json"

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly license?: unknown
  readonly dependencies?: { readonly [name: string]: string }
  readonly devDependencies?: { readonly [name: string]: string }
  readonly peerDependencies?: { readonly [name: string]: string }
}

export interface Package {
  readonly manifest: Manifest
  /** The SPDX expression of the licence. */
  readonly license: string
  /** The texts of the licence and of further notices. */
  readonly texts: ReadonlyArray<string>
  /** Path of the package in the lock file. */
  readonly path: string
}

/** A plugin that adds the modules of each written chunk to `modules`. */
export const listModules = (modules: Set<string>): Plugin => ({
  name: "modules",
  generateBundle: (_, files) => {
    for (const file of Object.values(files)) if (file.type === "chunk") for (const id of file.moduleIds) modules.add(id)
  }
})

/** The folder of the package that contains the module; undefined for a module of agentd. */
const folderOf = (module: string): string | undefined =>
  /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module.replace(/^\0/, ""))?.[0]

const read = (folder: string): Package => {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const { license, name, version } = manifest
  if (typeof license !== "string") throw new Error(`notices: ${name} ${version} names no licence`)
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying|third[-_]?party)/i.test(file))
  if (files.length === 0) throw new Error(`notices: ${name} ${version} comes without the text of its licence`)
  return {
    manifest,
    license,
    texts: files.toSorted().map((file) => readFileSync(join(folder, file), "utf8").trim()),
    path: folder.slice(folder.indexOf("/node_modules/") + 1)
  }
}

export const idOf = ({ name, version }: Pick<Manifest, "name" | "version">): string => `${name}@${version}`

/** The packages that contain these modules, by name. */
export const packagesOf = (modules: Iterable<string>): ReadonlyArray<Package> => {
  const folders = new Set(Array.from(modules, folderOf).filter((folder) => folder !== undefined))
  const packages = new Map(Array.from(folders, read).map((one) => [idOf(one.manifest), one]))
  return [...packages.values()].toSorted((a, b) => (idOf(a.manifest) < idOf(b.manifest) ? -1 : 1))
}

const LINE = "-".repeat(80)

export const noticesOf = (packages: ReadonlyArray<Package>): string =>
  [
    `agentd contains code of ${packages.length} other packages. Their notices:`,
    ...packages.map(
      ({ license, manifest, texts }) => `${LINE}\n${idOf(manifest)} (${license})\n\n${texts.join("\n\n")}`
    )
  ].join("\n\n") + "\n"

const purlOf = (manifest: Manifest): string => `pkg:npm/${idOf(manifest).replace(/^@/, "%40")}`

const licensesOf = (license: string) => [
  /[\s()]/.test(license) ? { expression: license } : { license: { id: license } }
]

/** The hash in a lock file's `integrity`, as CycloneDX writes it. */
const hashesOf = (integrity: string | undefined) => {
  const [, base64] = /^sha512-(\S+)$/.exec(integrity ?? "") ?? []
  return base64 === undefined
    ? {}
    : { hashes: [{ alg: "SHA-512", content: Buffer.from(base64, "base64").toString("hex") }] }
}

type Locked = { readonly [path: string]: { readonly integrity?: string } }

/** `own`: the manifest of agentd. `locked`: the packages of the lock file. */
export const sbomOf = (packages: ReadonlyArray<Package>, own: Manifest, locked: Locked) => {
  /** The contained packages that have one of these names. */
  const among = (names: object) => packages.filter(({ manifest }) => manifest.name in names)
  const needs = packages.map(({ manifest }) => ({
    ref: idOf(manifest),
    dependsOn: among({ ...manifest.dependencies, ...manifest.peerDependencies }).map((one) => idOf(one.manifest))
  }))
  const needed = new Set(needs.flatMap(({ dependsOn }) => dependsOn))
  const direct = packages.filter(
    ({ manifest }) => manifest.name in { ...own.devDependencies } || !needed.has(idOf(manifest))
  )
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      lifecycles: [{ phase: "build" }],
      component: {
        "bom-ref": idOf(own),
        type: "application",
        name: own.name,
        version: own.version,
        description: own.description,
        licenses: licensesOf(String(own.license)),
        purl: purlOf(own)
      }
    },
    components: packages.map(({ license, manifest, path }) => {
      const [, group, name] = /^(?:(@[^/]+)\/)?(.+)$/.exec(manifest.name)!
      return {
        "bom-ref": idOf(manifest),
        type: "library",
        ...(group === undefined ? {} : { group }),
        name,
        version: manifest.version,
        ...hashesOf(locked[path]?.integrity),
        licenses: licensesOf(license),
        purl: purlOf(manifest)
      }
    }),
    dependencies: [{ ref: idOf(own), dependsOn: direct.map(({ manifest }) => idOf(manifest)) }, ...needs]
  }
}

/** The packages that are not in both files of a folder. */
export const missingIn = (folder: string, packages: ReadonlyArray<Package>): ReadonlyArray<string> => {
  const notices = readFileSync(join(folder, NOTICES), "utf8")
  const { components }: ReturnType<typeof sbomOf> = JSON.parse(readFileSync(join(folder, SBOM), "utf8"))
  const listed = new Set(components.map(({ purl }) => purl))
  return packages
    .filter(
      ({ license, manifest, texts }) =>
        !notices.includes(`\n${idOf(manifest)} (${license})\n\n${texts.join("\n\n")}\n`) ||
        !listed.has(purlOf(manifest))
    )
    .map(({ manifest }) => idOf(manifest))
}

/** Writes both files into a folder. `root`: the folder of agentd's package.json and lock file. */
export const write = async (folder: string, root: string, modules: Iterable<string>): Promise<void> => {
  const json = (name: string) => JSON.parse(readFileSync(join(root, name), "utf8"))
  const packages = packagesOf(modules)
  await writeFile(join(folder, NOTICES), noticesOf(packages))
  const sbom = sbomOf(packages, json("package.json"), json("package-lock.json").packages)
  await writeFile(join(folder, SBOM), `${JSON.stringify(sbom, null, 1)}\n`)
}
