/**
 * ToolEnvironment: selects the environment variables for the commands that a model runs.
 *
 * Guarantees of `visible`: it excludes variables whose name suggests a secret, or whose value is an
 * address with a password. It also excludes variables that name a socket of the user's session.
 * agentd's own variables are removed earlier, by ChildEnvironment. The callers then add the variables in the config
 * unchanged: in this way, a user can pass a secret.
 */
import type { Environment } from "./ChildProcess.ts"

const SECRET_NAME = /key|token|secret|passw|passphrase|credential|auth|cookie|bearer|private|signature/i
/** Variables that give access to services of the user: key agents, buses, containers, clusters. */
const DOOR =
  /^(SSH_|GPG_|DBUS_|DOCKER_|CONTAINER_|PODMAN_|KUBECONFIG|XAUTHORITY|XDG_RUNTIME_DIR|WAYLAND_|VSCODE_|TMUX|STY)/
/** Pattern for addresses such as `https://name:password@host`. */
const PASSWORD = /\/\/[^/\s:@]*:[^/\s@]+@/

export const isSecret = (name: string, value: string): boolean => SECRET_NAME.test(name) || PASSWORD.test(value)

export const visible = (environment: Environment, secrets: ReadonlyArray<string | undefined>): Environment =>
  Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => value !== undefined && !isSecret(name, value) && !DOOR.test(name) && !secrets.includes(name)
    )
  )
