/**
 * RefreshTimer: tells an open page when to ask the daemon again: after the board has changed, but not more often than a user
 * can read.
 */
import { useEffect, useState } from "preact/hooks"
import { changed } from "./BoardStore.ts"

/** Minimum time between two requests, ms. */
const REST = 700

/** A number that increases when something has changed. */
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
