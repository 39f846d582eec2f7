/** InPage: scripts that tests run in a page, as texts: the tests themselves know no browser's types. */

/** Presses a key in the very moment in which the words come into sight. */
export const pressAtOnce = (key: string, words: string): string => `new Promise((resolve) => {
  const press = () => {
    if (!document.body.innerText.includes(${JSON.stringify(words)})) return
    watch.disconnect()
    dispatchEvent(new KeyboardEvent("keydown", { key: ${JSON.stringify(key)} }))
    resolve()
  }
  const watch = new MutationObserver(press)
  watch.observe(document.body, { childList: true, subtree: true })
  press()
})`

/** Asks in every way that a page of elsewhere has; answers with what it could read. */
export const attack = (target: string): string => `(async () => {
  const target = ${JSON.stringify(target)}
  const got = []
  const ask = async (path, init) => {
    const response = await fetch(target + path, init).catch(() => undefined)
    const text = response === undefined ? "" : await response.text().catch(() => "")
    if (response?.ok === true || text.includes("talker")) got.push(path + ": " + text.slice(0, 80))
  }
  const stop = '{"name":"shop/talker"}'
  for (const credentials of ["include", "omit"]) {
    await ask("/board", { credentials })
    await ask("/", { credentials })
    await ask("/page/app.js", { credentials })
    await ask("/v1/Status", { method: "POST", body: "{}", credentials })
    await ask("/v1/Stop", { method: "POST", body: stop, credentials })
    await ask("/v1/Stop", { method: "POST", body: stop, mode: "no-cors", credentials })
    await ask("/access/claim", { method: "POST", body: '{"code":"x"}', credentials })
  }
  const frame = document.createElement("iframe")
  const loaded = new Promise((resolve) => {
    frame.addEventListener("load", resolve)
    frame.addEventListener("error", resolve)
  })
  frame.src = target + "/"
  document.body.append(frame)
  await loaded
  try {
    const text = frame.contentDocument?.body.innerText ?? ""
    if (text !== "") got.push("frame: " + text.slice(0, 80))
  } catch {}
  const other = open(target + "/")
  await new Promise((resolve) => setTimeout(resolve, 300))
  try {
    const text = other?.document.body.innerText ?? ""
    if (text !== "") got.push("window: " + text.slice(0, 80))
  } catch {}
  other?.close()
  return got
})()`

/** Once the page's service worker is there. */
export const workerReady = "navigator.serviceWorker.ready.then(() => undefined)"

/** Runs axe, which is there already: each violation with the parts that have it. */
export const axe = `axe
  .run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
  .then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 120)).join(" | "))
  )`
