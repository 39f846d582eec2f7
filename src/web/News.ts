/** News: when a page that is open asks anew: once the board has changed, and not more often than it can be read. */
import { useEffect, useState } from "preact/hooks"
import { changed } from "./Store.ts"

/** Between two questions, ms. */
const REST = 700

/** Rises when something has changed. */
export const useNews = (rest = REST): number => {
  const [news, setNews] = useState(0)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isFirst = true
    const ends = changed.subscribe(() => {
      if (isFirst || timer !== undefined) return void (isFirst = false)
      timer = setTimeout(() => {
        timer = undefined
        setNews((count) => count + 1)
      }, rest)
    })
    return () => {
      ends()
      clearTimeout(timer)
    }
  }, [rest])
  return news
}
