/** Channels as a config means them, in a world of one test: its environment, its mail section, its files. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Schema } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type AlertChannel, AlertChannels, type Message, nameOf } from "../../../src/alerts/AlertChannel.ts"
import { ChannelConfig } from "../../../src/config/NotifyConfig.ts"
import type { MailConfig } from "../../../src/config/Config.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import * as Channels from "../../../src/alerts/channels/Channels.ts"
import { PATIENCE } from "../../support/Patience.ts"

const decode = Schema.decodeUnknownSync(ChannelConfig)

const NOTICE = {
  id: "7-abc@phone",
  kind: "needsYou",
  word: "needs you",
  title: "shop/builder asks to run Bash",
  body: "npm publish --tag <next> && git tag v4\nIt waits 16 min more.",
  command: "agentd approve c9e0488f",
  urgency: "now",
  about: "call:c9e0488f",
  project: "shop",
  rune: 7,
  at: 0,
  count: 1
} as const

export const MESSAGE: Message = {
  id: "0123456789abcdef",
  host: "lab",
  title: NOTICE.title,
  body: NOTICE.body,
  command: NOTICE.command,
  urgency: "now",
  notices: [NOTICE],
  more: 0
}

export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-notify-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export interface World {
  readonly mail?: MailConfig
  readonly environment?: Record<string, string>
  readonly command?: readonly [string, ...ReadonlyArray<string>]
}

const options = ({ command = ["/bin/true"], environment = {}, mail }: World) => ({
  command,
  state: "/nowhere",
  environment,
  mail: Effect.succeed(mail)
})

/** Does something with the channel that a config means. */
export const withChannel = <A, E, R>(
  config: object,
  use: (channel: AlertChannel, config: ChannelConfig) => Effect.Effect<A, E, R>,
  world: World = {}
) =>
  Effect.gen(function* () {
    const decoded = decode(config)
    const channel = (yield* AlertChannels).find(({ name }) => name === nameOf(decoded))
    return yield* use(channel!, decoded)
  }).pipe(
    Effect.provide(
      Channels.layer(options(world)).pipe(
        Layer.provideMerge(Redact.layer),
        Layer.provideMerge(NodeServices.layer),
        Layer.provideMerge(
          ConfigProvider.layer(ConfigProvider.fromUnknown({ PATH: process.env["PATH"]!, ...world.environment }))
        )
      )
    )
  )

export const send = (config: object, message: Message = MESSAGE, world: World = {}) =>
  withChannel(config, (channel, decoded) => channel.send(decoded, message), world)

export const failing = (config: object, world: World = {}) => Effect.flip(send(config, MESSAGE, world))

export const secretIn = (path: string, text: string) => {
  const file = join(path, "secret")
  writeFileSync(file, `${text}\n`, { mode: 0o600 })
  return { file }
}

export const until = (what: string, holds: () => boolean) =>
  Effect.gen(function* () {
    for (let round = 0; round < PATIENCE / 20; round++) {
      if (holds()) return
      yield* Effect.promise(() => new Promise((resume) => setTimeout(resume, 20)))
    }
    assert.fail(`never: ${what}`)
  })
