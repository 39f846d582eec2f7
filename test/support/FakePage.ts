/**
 * FakePage: the part of a browser's document that the page needs to be drawn in Node: elements, texts, attributes.
 * `shown` reads the result as a person would see it: each text and each attribute.
 */

class FakeNode extends EventTarget {
  childNodes: Array<FakeNode> = []
  parentNode: FakeNode | null = null
  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null
  }
  get nextSibling(): FakeNode | null {
    const all = this.parentNode?.childNodes ?? []
    return all[all.indexOf(this) + 1] ?? null
  }
  insertBefore(node: FakeNode, before: FakeNode | null): FakeNode {
    node.remove()
    const at = before === null ? -1 : this.childNodes.indexOf(before)
    this.childNodes.splice(at < 0 ? this.childNodes.length : at, 0, node)
    node.parentNode = this
    return node
  }
  appendChild(node: FakeNode): FakeNode {
    return this.insertBefore(node, null)
  }
  removeChild(node: FakeNode): void {
    this.childNodes = this.childNodes.filter((one) => one !== node)
    node.parentNode = null
  }
  remove(): void {
    this.parentNode?.removeChild(this)
  }
  contains(node: FakeNode | null): boolean {
    return node !== null && (node === this || this.contains(node.parentNode))
  }
}

class FakeText extends FakeNode {
  readonly nodeType = 3
  data: string
  constructor(data: string) {
    super()
    this.data = data
  }
}

const nothing = () => undefined
const box = () => ({ top: 0, bottom: 0, height: 0, width: 0, left: 0, right: 0 })

class FakeElement extends FakeNode {
  readonly nodeType = 1
  readonly attributes = new Map<string, string>()
  readonly style: Record<string, unknown> = { setProperty: nothing }
  readonly dataset = {}
  scrollTop = 0
  scrollHeight = 0
  clientHeight = 0
  clientWidth = 0
  offsetTop = 0
  parentElement = null
  nextElementSibling = null
  readonly focus = nothing
  readonly blur = nothing
  readonly scrollIntoView = nothing
  readonly scrollTo = nothing
  readonly scrollBy = nothing
  readonly getBoundingClientRect = box
  readonly localName: string
  constructor(localName: string) {
    super()
    this.localName = localName
  }
  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name, String(value))
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name)
  }
  querySelector(): null {
    return null
  }
}

/** Every text and attribute in a node, each with its place: `pre>code`, `button@title`. */
export const shown = (node: unknown, place = ""): ReadonlyArray<readonly [place: string, text: string]> => {
  if (node instanceof FakeText) return [[place, String(node.data)]]
  const element = node as FakeElement
  const name = element.attributes.get("class")
  const here = `${place}>${element.localName}${name === undefined ? "" : `.${name.trim().replaceAll(/\s+/g, ".")}`}`
  return [
    ...[...element.attributes].map(([name, value]) => [`${here}@${name}`, value] as const),
    ...element.childNodes.flatMap((child) => shown(child, here))
  ]
}

const storage = new Map<string, string>()

/** The global variables of a page; `fetch` answers in place of the daemon. */
export const globals = (fetch: (path: string, init?: { readonly body?: string }) => Promise<unknown>) => {
  const page = new EventTarget()
  const hears = {
    addEventListener: page.addEventListener.bind(page),
    removeEventListener: page.removeEventListener.bind(page)
  }
  const document = Object.assign(new FakeElement("document"), {
    hidden: false,
    visibilityState: "visible",
    documentElement: new FakeElement("html"),
    body: new FakeElement("body"),
    activeElement: null,
    createElementNS: (_: string, name: string) => new FakeElement(name),
    createElement: (name: string) => new FakeElement(name),
    createTextNode: (text: string) => new FakeText(text),
    getElementById: () => null
  })
  const observer = class {
    readonly observe = nothing
    readonly disconnect = nothing
  }
  return {
    ...hears,
    document,
    fetch,
    HTMLElement: FakeElement,
    ResizeObserver: observer,
    IntersectionObserver: observer,
    Worker: class extends FakeElement {
      readonly postMessage = nothing
      readonly terminate = nothing
    },
    innerHeight: 900,
    innerWidth: 1_440,
    getComputedStyle: () => ({ overflowY: "visible", getPropertyValue: () => "" }),
    matchMedia: () => ({ matches: false, addEventListener: nothing, removeEventListener: nothing }),
    requestAnimationFrame: (run: () => void) => setTimeout(run, 0),
    cancelAnimationFrame: clearTimeout,
    location: { hash: "", origin: "http://127.0.0.1:1", pathname: "/" },
    history: { replaceState: nothing },
    localStorage: {
      getItem: (key: string) => storage.get(key) ?? null,
      setItem: (key: string, value: string) => storage.set(key, value),
      removeItem: (key: string) => storage.delete(key)
    }
  }
}
export const root = () => new FakeElement("div")
