/** AccessProtocol: procedures that grant, list and revoke access over HTTP. */
import { Effect, Schema } from "effect"
import { Rpc } from "effect/rpc"
import { nameOf } from "../../access/Access.ts"
import { Right } from "../../access/AccessKinds.ts"
import * as Bounds from "../../board/Bounds.ts"
import { command, error, input, procedure, Speaks } from "./Procedure.ts"

/** A grant of access over HTTP, as `agentd access` lists it. */
export const AccessRow = Schema.Struct({
  id: Schema.String,
  right: Right,
  label: Schema.String,
  by: Schema.String,
  /** When the access was granted, in ms since the epoch. */
  since: Schema.Finite
})
export type AccessRow = typeof AccessRow.Type

const wanted = { right: Right, label: Bounds.line(100), caller: Bounds.caller }

export const access = [
  /**
   * Creates a one-time link that gives a page its key and expires after two minutes. First starts to listen on the
   * daemon's HTTP port, if the daemon does not listen yet.
   * `ownPort`: the page gets its own port instead of a host name below `localhost`.
   */
  procedure(
    Rpc.make("Invite", {
      payload: input({ ...wanted, ownPort: Schema.optionalKey(Schema.Boolean) }),
      success: Schema.Struct({ url: Schema.String }),
      error
    }).annotate(Speaks, "decides"),
    ({ access, daemon }, { caller, label, ownPort = false, right }) =>
      Effect.gen(function* () {
        const address = yield* daemon.address
        if (ownPort) {
          const port = yield* daemon.pagePort
          const code = yield* access.invite({ right, label, port }, caller)
          return { url: `http://127.0.0.1:${port}/#open=${code}` }
        }
        const code = yield* access.invite({ right, label }, caller)
        // a browser does not send the fragment of an address to any server
        return { url: `${address.replace("127.0.0.1", nameOf(code))}/#open=${code}` }
      })
  ),
  /** Creates a token for a program. The daemon returns the token only once. */
  procedure(
    Rpc.make("Grant", {
      payload: input(wanted),
      success: Schema.Struct({ id: Schema.String, token: Schema.String, address: Schema.String }),
      error
    }).annotate(Speaks, "decides"),
    ({ access, daemon }, { caller, label, right }) =>
      Effect.gen(function* () {
        const address = yield* daemon.address
        const { id, token } = yield* access.grant({ right, label }, caller)
        return { id, token, address }
      })
  ),
  procedure(Rpc.make("Accesses", { success: Schema.Array(AccessRow), error }), ({ access }) =>
    Effect.map(access.list, (grants) =>
      grants.map(({ by, id, label, right, since }) => ({ id, right, label, by, since }))
    )
  ),
  /** Revokes a grant. `name`: the grant's id, or a unique prefix of it. */
  procedure(command("Revoke", {}, "decides"), ({ access }, { caller, name }) =>
    Effect.map(access.revoke(name, caller), ({ eventId, grant }) => ({
      eventId,
      message: `Revoked: ${grant.id} (${grant.right}, ${grant.label}). It is no longer valid.`
    }))
  )
] as const
