/**
 * Runs the benches of this folder and prints a table each.
 *
 *     node --expose-gc scripts/bench/main.ts [NAME…]
 *
 * Without a name those run that do not take long. `HISTORIES=FOLDER` keeps the long logs that some of them
 * make, for the next time.
 */
import { readdirSync } from "node:fs"
import { availableParallelism, loadavg } from "node:os"
import { type Bench, table, verdicts } from "./Bench.ts"

const wanted = process.argv.slice(2)
const files = readdirSync(import.meta.dirname).filter(
  (file) => file.endsWith(".ts") && file !== "main.ts" && /^[a-z]/.test(file)
)
const modules = files.toSorted().map((file) => import(`./${file}`) as Promise<{ readonly bench: Bench }>)
const benches = (await Promise.all(modules)).map(({ bench }) => bench)
const names = benches.map(({ name }) => name)
const unknown = wanted.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  console.error(`There is no bench "${unknown.join('", "')}". There are: ${names.join(", ")}`)
  process.exit(64)
}
for (const bench of benches) {
  if (wanted.length > 0 ? !wanted.includes(bench.name) : bench.isLong === true) continue
  // beside other work a figure says little, and a ratio less
  const load = loadavg()[0]!.toFixed(1)
  console.log(`${bench.name} (node ${process.versions.node}, load ${load} of ${availableParallelism()} cores)`)
  const rows = await bench.run()
  console.log(table(rows))
  if (bench.aims !== undefined) console.log(`\n${verdicts(bench.aims, rows)}`)
  console.log()
}
