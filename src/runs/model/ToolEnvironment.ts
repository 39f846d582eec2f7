/**
 * ToolEnvironment: which of the daemon's variables a model's commands may see.
 *
 * Guarantees: none whose name speaks of a secret, whose value carries a password in an
 * address, or that names a socket of the user's session; nor any of agentd's own. What a
 * config sets itself is set as it stands: that is the way to hand a secret over.
 */
import type { Environment } from "../process/ChildProcess.ts"

const SECRET_NAME = /key|token|secret|passw|passphrase|credential|auth|cookie|bearer|private|signature/i
/** Ways to what the user has unlocked: agents for keys, buses, containers, clusters. */
const DOOR =
  /^(SSH_|GPG_|DBUS_|DOCKER_|CONTAINER_|PODMAN_|KUBECONFIG|XAUTHORITY|XDG_RUNTIME_DIR|WAYLAND_|VSCODE_|TMUX|STY)/
/** `https://name:password@host`. */
const PASSWORD = /\/\/[^/\s:@]*:[^/\s@]+@/

/** Whether the variable is a secret, by its name or by a password in its address. */
export const isSecret = (name: string, value: string): boolean => SECRET_NAME.test(name) || PASSWORD.test(value)

export const visible = (environment: Environment, secrets: ReadonlyArray<string | undefined>): Environment =>
  Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => value !== undefined && !isSecret(name, value) && !DOOR.test(name) && !secrets.includes(name)
    )
  )
