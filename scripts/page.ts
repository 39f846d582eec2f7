/**
 * page: builds the page: dist/web, of src/web. What it needs is in it: it loads nothing from elsewhere.
 */
import { cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { rolldown } from "rolldown"

const root = join(import.meta.dirname, "..")

/** Without comments, and with no space that means nothing. */
const small = (css: string): string =>
  css
    .replaceAll(/\/\*[^]*?\*\//g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ?([{};,>]) ?/g, "$1")

/** The style sheets, in the order of their names. */
const styles = async (): Promise<string> => {
  const folder = join(root, "src/web/styles")
  const names = (await readdir(folder)).filter((name) => name.endsWith(".css")).toSorted()
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n")
}

const put = async (file: string, content: string) => {
  await writeFile(`${file}.new`, content)
  await rename(`${file}.new`, file)
}

export const build = async (out: string): Promise<void> => {
  const page = await rolldown({
    cwd: root,
    input: "src/web/App.tsx",
    platform: "browser",
    // where JSX comes from, tsconfig.json says
    transform: { jsx: { runtime: "automatic" }, target: "es2022" }
  })
  const { output } = await page.generate({ format: "esm", minify: true })
  await page.close()
  const [entry, ...others] = output
  if (others.length > 0) throw new Error("page: it is not one file")
  await mkdir(out, { recursive: true })
  await cp(join(root, "src/web/static"), out, { recursive: true })
  await put(join(out, "app.js"), entry.code)
  await put(join(out, "app.css"), small(await styles()))
}
