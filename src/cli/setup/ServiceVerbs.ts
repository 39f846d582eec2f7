/** ServiceVerbs: the commands that manage the daemon as a systemd service. */
import { Argument, Command, Flag } from "effect/cli"
import type { Input } from "./Service.ts"
import { off, verb, yes } from "../parse/Verb.ts"

const scope = {
  user: off("user", "Use your user's systemd (the default without --system)"),
  system: off("system", "Use the system's systemd, with a separate user, for servers; needs root")
}

const NOTHING: Omit<Input, "action" | "system"> = { as: "agents", credential: [], linger: false, yes: false }

const inService = verb(() => import("./Service.ts"))

const install = Command.make(
  "install",
  {
    ...scope,
    as: Flag.String("as").pipe(
      Flag.withMetavar("USER"),
      Flag.withDescription("User that a system service runs as; created if it does not exist"),
      Flag.withDefault("agents")
    ),
    credential: Flag.String("credential").pipe(
      Flag.withMetavar("NAME=FILE"),
      Flag.withDescription("Secret that systemd passes only to the daemon; repeatable"),
      Flag.between(0, 64)
    ),
    linger: off("linger", "Start the service at boot, and keep it after the last logout (loginctl enable-linger)"),
    yes
  },
  (input) => inService({ action: "install", ...input })
).pipe(
  Command.withDescription("Write the daemon's systemd unit, then enable and start it"),
  Command.withExamples([
    {
      command: "agentd service install --linger",
      description: "Install a service of your user that runs from boot, also when you are logged out"
    },
    {
      command: "agentd service install --credential smtp=/home/ada/.config/agentd/smtp-password",
      description: 'Pass a password as a credential; refer to it by "passwordCredential": "smtp" in the mail section'
    },
    {
      command: "sudo agentd service install --system",
      description: "Install a service on a server, which runs as the user agents"
    }
  ])
)

const uninstall = Command.make("uninstall", { ...scope, yes }, (input) =>
  inService({ action: "uninstall", ...NOTHING, ...input })
).pipe(
  Command.withDescription("Stop the service and remove its unit; the daemon's data is kept"),
  Command.withExamples([
    {
      command: "agentd service uninstall",
      description: "Remove the service after confirmation; in a script, add --yes"
    }
  ])
)

const status = Command.make("status", scope, (input) => inService({ action: "status", ...NOTHING, ...input })).pipe(
  Command.withDescription(
    "Show whether the service is installed, enabled and running, and whether it continues after a logout"
  ),
  Command.withExamples([{ command: "agentd service status --json", description: "Print the status as one JSON value" }])
)

const reload = Command.make(
  "reload",
  {},
  verb(() => import("./Service.ts").then(({ reload }) => reload))
).pipe(
  Command.withDescription("Read every project's config again, as systemctl reload does"),
  Command.withExamples([
    {
      command: "agentd service reload",
      description: "Read all configs again; a dangerous change waits for agentd trust"
    }
  ])
)

const mail = Command.make(
  "mail",
  {
    unit: Argument.String("unit").pipe(Argument.withDescription("Name of the unit that has failed")),
    once: off("once", "Send no mail if this failure was already mailed and no daemon has started since")
  },
  verb(() => import("./Service.ts").then(({ mail }) => mail))
).pipe(
  Command.withDescription(
    "Send a mail which says that the daemon has failed permanently; the unit's OnFailure= runs this"
  ),
  Command.withExamples([
    { command: "agentd service mail agentd", description: "Send the mail, to test that it arrives" }
  ])
)

export const service = Command.make("service").pipe(
  Command.withDescription("Install, remove or check the daemon's systemd service"),
  Command.withSubcommands([install, uninstall, status, reload, mail])
)
