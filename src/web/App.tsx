/** App: starts the page: renders the first rows of the board, then connects to the board's stream. */
import { effect } from "@preact/signals"
import { render } from "preact"
import * as Api from "./Api.ts"
import { cursor, items, moved } from "./Filter.ts"
import * as Foreign from "./Foreign.ts"
import { PageFrame } from "./PageFrame.tsx"
import * as KeyMap from "./KeyMap.ts"
import { close, dialog } from "./Palette.tsx"
import { pages } from "./Pages.ts"
import { go, hrefTo } from "./Router.ts"
import { connect, link, loaded } from "./BoardStore.ts"
import * as Theme from "./Theme.ts"
import { isPhone } from "./Ui.tsx"

Foreign.begin()
Theme.begin()
const chosen = effect(() => {
  if (!loaded.value) return
  queueMicrotask(() => chosen())
  if (!isPhone() && cursor.peek() === undefined) cursor.value = moved(items.peek(), undefined, 1)
})

KeyMap.listen(
  (action) => {
    if (action.is === "palette") dialog.value = dialog.peek() === "palette" ? "" : "palette"
    else if (action.is === "help") dialog.value = dialog.peek() === "help" ? "" : "help"
    else if (action.is === "back" && dialog.peek() !== "") close()
    else if (action.is === "go") {
      const page = pages.find(({ key }) => key === action.to)
      if (page === undefined) return false
      go(hrefTo(page.route))
    } else return false
    return true
  },
  () => dialog.peek() !== ""
)

const problemOf = async (): Promise<Api.Problem | undefined> => {
  try {
    await Api.begin()
    return undefined
  } catch (error) {
    return error instanceof Api.Refused ? error.problem : undefined
  }
}

const problem = await problemOf()
render(<PageFrame />, document.getElementById("app")!)
connect()
// an expired link could not be used: report that
if (problem !== undefined && link.peek().state === "locked") link.value = { ...link.peek(), problem }
