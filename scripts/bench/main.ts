/**
 * Runs the benches of this folder and prints a table each.
 *
 *     node --expose-gc scripts/bench/main.ts [NAME…]
 */
import { readdirSync } from "node:fs"
import { type Bench, table } from "./Bench.ts"

const wanted = process.argv.slice(2)
const files = readdirSync(import.meta.dirname).filter(
  (file) => file.endsWith(".ts") && file !== "main.ts" && /^[a-z]/.test(file)
)
for (const file of files.toSorted()) {
  const { bench } = (await import(`./${file}`)) as { readonly bench: Bench }
  if (wanted.length > 0 && !wanted.includes(bench.name)) continue
  console.log(`${bench.name} (node ${process.versions.node})`)
  console.log(table(await bench.run()))
  console.log()
}
