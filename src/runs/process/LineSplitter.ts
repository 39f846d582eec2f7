/** LineSplitter: the name under which `runs/acp` and `runs/model` import it; see config/LineSplitter.ts. */
export { CONTINUED, type Line, LineSplitter } from "../../config/LineSplitter.ts"
