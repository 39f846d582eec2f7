/** Plants the bug that PLANT names in the source as it is loaded: `node --import ./test/simulation/plant.ts …`. */
import { registerHooks } from "node:module"
import { plants } from "./Plants.ts"

const name = process.env["PLANT"] ?? ""
const plant = plants[name]
if (plant === undefined) throw new Error(`no such plant: ${name}; there are ${Object.keys(plants).join(", ")}`)
const { file, from, to } = plant
registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    if (!url.endsWith(file)) return loaded
    const source = String(loaded.source)
    if (source.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`)
    return { ...loaded, source: source.replace(from, () => to) }
  }
})
