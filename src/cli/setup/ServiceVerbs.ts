/** ServiceVerbs: the commands that make the daemon a systemd service. */
import { Argument, Command, Flag } from "effect/cli"
import type { Input } from "./Service.ts"
import { off, verb, yes } from "../parse/Verb.ts"

const scope = {
  user: off("user", "Use this user's systemd (unless --system is given)"),
  system: off("system", "Use the system's, with a separate user: for servers; needs root")
}

const NOTHING: Omit<Input, "action" | "system"> = { as: "agents", credential: [], linger: false, yes: false }

const inService = verb(() => import("./Service.ts"))

const install = Command.make(
  "install",
  {
    ...scope,
    as: Flag.String("as").pipe(
      Flag.withMetavar("USER"),
      Flag.withDescription("The user that a system service runs as; added where there is none"),
      Flag.withDefault("agents")
    ),
    credential: Flag.String("credential").pipe(
      Flag.withMetavar("NAME=FILE"),
      Flag.withDescription("A secret that systemd hands to the daemon alone; may be given more than once"),
      Flag.between(0, 64)
    ),
    linger: off("linger", "Start it at boot and keep it after the last logout (loginctl enable-linger)"),
    yes
  },
  (input) => inService({ action: "install", ...input })
).pipe(
  Command.withDescription("Write the daemon's unit, enable and start it"),
  Command.withExamples([
    {
      command: "agentd service install --linger",
      description: "For your user: runs from boot, also when you are logged out"
    },
    {
      command: "agentd service install --credential smtp=/home/ada/.config/agentd/smtp-password",
      description: 'Then "passwordCredential": "smtp" in the mail section'
    },
    { command: "sudo agentd service install --system", description: "On a server, as the user agents" }
  ])
)

const uninstall = Command.make("uninstall", { ...scope, yes }, (input) =>
  inService({ action: "uninstall", ...NOTHING, ...input })
).pipe(
  Command.withDescription("Stop the service and remove its unit; the daemon's data stays"),
  Command.withExamples([{ command: "agentd service uninstall", description: "It asks first; --yes in a script" }])
)

const status = Command.make("status", scope, (input) => inService({ action: "status", ...NOTHING, ...input })).pipe(
  Command.withDescription("Show whether it is installed, enabled and running, and whether it outlives a logout"),
  Command.withExamples([{ command: "agentd service status --json", description: "One JSON value" }])
)

const reload = Command.make(
  "reload",
  {},
  verb(() => import("./Service.ts").then(({ reload }) => reload))
).pipe(
  Command.withDescription("Read every project's file again: what systemctl reload does"),
  Command.withExamples([{ command: "agentd service reload", description: "A dangerous change waits: agentd trust" }])
)

const mail = Command.make(
  "mail",
  {
    unit: Argument.String("unit").pipe(Argument.withDescription("The unit that has failed")),
    once: off("once", "Skip it if this failure was mailed and no daemon has started since, as the unit does")
  },
  verb(() => import("./Service.ts").then(({ mail }) => mail))
).pipe(
  Command.withDescription("Mail that the daemon has failed for good: what the unit's OnFailure= does"),
  Command.withExamples([{ command: "agentd service mail agentd", description: "To see that such a mail arrives" }])
)

export const service = Command.make("service").pipe(
  Command.withDescription("The daemon as a service of systemd"),
  Command.withSubcommands([install, uninstall, status, reload, mail])
)
