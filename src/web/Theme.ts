/** Theme: the page's colours: light, dark, or as set in the system. */
import { effect, signal } from "@preact/signals"

const KEY = "agentd-theme"
const read = (): string => localStorage.getItem(KEY) ?? ""

export const theme = signal(read())

export const begin = (): void => {
  effect(() => {
    if (theme.value === "") delete document.documentElement.dataset["theme"]
    else document.documentElement.dataset["theme"] = theme.value
    localStorage.setItem(KEY, theme.value)
  })
}

export const flip = (): void => {
  const isDark = theme.peek() === "dark" || (theme.peek() === "" && matchMedia("(prefers-color-scheme: dark)").matches)
  theme.value = isDark ? "light" : "dark"
}
