/**
 * Hello: what the model agent tells a client about itself. Imports next to nothing, because `initialize` is answered
 * before anything else is loaded.
 */
import type { InitializeResponse } from "@agentclientprotocol/sdk"
import { VERSION } from "../config/Version.ts"

/** `fork` is not in the protocol's first version, but clients ask for it. */
export const HELLO = {
  protocolVersion: 1,
  agentInfo: { name: "agentd-model-agent", title: "agentd's model agent", version: VERSION },
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, embeddedContext: true },
    sessionCapabilities: { resume: {}, fork: {} }
  },
  authMethods: []
} satisfies InitializeResponse & {
  readonly agentCapabilities: { readonly sessionCapabilities: { readonly fork: object } }
}
