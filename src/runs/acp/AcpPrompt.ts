/**
 * AcpPrompt: the content of a prompt to an ACP agent: its text and its files.
 *
 * Guarantees: the content of a text file is written into the prompt, because every agent accepts text. An image or a
 * PDF is sent in the prompt if the agent says that it accepts this type. Otherwise the file is put into a folder of the
 * run, and the prompt links to it. No file is left out silently.
 */
import type { ContentBlock, PromptRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import { pathToFileURL } from "node:url"
import { type BackendError, denialOf, type TurnInput } from "../Backend.ts"
import * as FileContents from "../FileContents.ts"

/** The kinds of content that an agent accepts besides text and links. */
export interface Takes {
  readonly images: boolean
  readonly resources: boolean
  /**
   * Gemini CLI, and forks of it, ignore the images of a prompt that contains a resource or a link to a file. They
   * forward any content that is sent as an image, even a PDF.
   */
  readonly leavesOut: boolean
}

export type Content = (
  input: Pick<TurnInput, "text"> & { readonly files?: TurnInput["files"] | undefined },
  takes: Takes
) => Effect.Effect<Array<ContentBlock>, BackendError>

const uriOf = ({ filename, sha256 }: FileContents.Content): string =>
  `agentd://files/${sha256}/${encodeURIComponent(filename.toWellFormed())}`

/** The content as a part of the prompt; undefined if the prompt can only link to it. */
const within = (content: FileContents.Content, takes: Takes): ContentBlock | undefined => {
  const { type: mimeType } = content
  const data = FileContents.base64Of(content)
  if (FileContents.isImage(content) || takes.leavesOut)
    return takes.images ? { type: "image", mimeType, data } : undefined
  return takes.resources ? { type: "resource", resource: { uri: uriOf(content), mimeType, blob: data } } : undefined
}

/** Builds the prompt. `folder`: the folder from which the agent reads linked files. */
export const make =
  (read: FileContents.Reader, folder: Effect.Effect<FileContents.Folder, BackendError>): Content =>
  ({ files, text }, takes) =>
    Effect.gen(function* () {
      const { found, gone } = yield* read(files)
      const blocks: Array<ContentBlock> = [{ type: "text", text }]
      for (const content of found) {
        if (FileContents.isText(content)) {
          blocks.push({ type: "text", text: `\n${FileContents.fenced(content)}\n` })
          continue
        }
        const { filename: name, label, type: mimeType } = content
        const block = within(content, takes)
        if (block !== undefined) {
          blocks.push({ type: "text", text: `\n${label}:\n` }, block)
          continue
        }
        const [path = ""] = yield* (yield* folder).put([content])
        blocks.push(
          { type: "text", text: `\n${label}: ${path}\n` },
          { type: "resource_link", name, mimeType, size: content.bytes.length, uri: pathToFileURL(path).href }
        )
      }
      return [...blocks, ...gone.map((line): ContentBlock => ({ type: "text", text: line }))]
    })

/** Builds a prompt that tells the agent why its calls were denied. */
export const refusals = (words: ReadonlyArray<string>): PromptRequest["prompt"] => [
  { type: "text", text: words.map(denialOf).join("\n") }
]
