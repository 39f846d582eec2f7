/**
 * RefreshTimer: tells an open page when to request its data again: after the board has changed, but not faster than a
 * user can read.
 */
import { useEffect, useState } from "preact/hooks"
import { changed } from "./BoardStore.ts"

/** Minimum time between two requests, in ms. */
const REST = 700

/** A counter that increases when the board has changed, but at most once per `rest` ms. */
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
