/**
 * Recorded: the answers that a real OTP gave to thousands of scenarios, packed into
 * one file, so that the comparison runs where no Erlang is. `npm run otp -- record`
 * writes the file, `npm run otp -- check` asks an Erlang again.
 *
 * The file holds no scenario, only the seed of the first and a hash of what the
 * generator made of all: with another generator the answers are answers to nothing.
 */
import { createHash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib"
import { normal, scenario, toErlang } from "./Scenario.ts"

export interface Recorded {
  /** The OTP release that answered. */
  readonly otp: string
  readonly first: number
  /** Of the scenarios in Erlang's words. */
  readonly hash: string
  /** The lines of each scenario, normal. */
  readonly answers: ReadonlyArray<ReadonlyArray<string>>
}

const file = join(import.meta.dirname, "recorded.br")

export const seedsOf = (first: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, n) => first + n)

export const hashOf = (first: number, count: number): string => {
  const hash = createHash("sha256")
  for (const seed of seedsOf(first, count)) hash.update(toErlang(scenario(seed)))
  return hash.digest("hex")
}

export const read = (): Recorded => {
  const [head, ...blocks] = brotliDecompressSync(readFileSync(file)).toString("utf8").split("\n\n")
  const { first, hash, otp } = JSON.parse(head!) as Omit<Recorded, "answers">
  return { first, hash, otp, answers: blocks.map((block) => block.split("\n")) }
}

/** Answers how many bytes the file has. */
export const write = ({ answers, ...head }: Recorded): number => {
  const text = [JSON.stringify(head), ...answers.map((lines) => lines.join("\n"))].join("\n\n")
  const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  const packed = brotliCompressSync(text, { params })
  writeFileSync(file, packed)
  return packed.length
}

/** The difference between two lives of a scenario, for a person to read. */
export const difference = (seed: number, ours: ReadonlyArray<string>, theirs: ReadonlyArray<string>) => {
  const chosen = scenario(seed)
  const [mine, other] = [ours, theirs].map((lines) => lines.map((line) => normal(chosen, line)))
  const at = other!.findIndex((line, n) => line !== mine![n])
  if (at < 0 && mine!.length === other!.length) return undefined
  const before = other!.slice(Math.max(0, at - 3), at).map((line) => `       ${line}`)
  return [
    `seed ${seed}; replay with: npm run otp -- compare ${seed} 1`,
    toErlang(chosen),
    ...before,
    `OTP:   ${other![at]}`,
    `ours:  ${mine![at]}`
  ].join("\n")
}
