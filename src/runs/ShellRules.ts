/**
 * ShellRules: the environment and the sandbox rules of a shell command that a model agent runs. Pure.
 *
 * Guarantees: the model agent, which runs commands, and Reach, which shows what they can access, use the same rules.
 */
import type { ModelBackend } from "../config/BackendConfig.ts"
import type { RunSpec } from "./Backend.ts"
import type { Host } from "./Host.ts"
import * as ChildEnvironment from "./process/ChildEnvironment.ts"
import type { Environment } from "./process/ChildProcess.ts"
import * as ToolEnvironment from "./process/ToolEnvironment.ts"
import type { Rules } from "./sandbox/Confinement.ts"
import type { Mechanism } from "./sandbox/Sandbox.ts"

export interface ShellOptions {
  readonly config: ModelBackend
  readonly spec: Pick<RunSpec, "env" | "mounts">
  readonly host: Host
  readonly mechanism: Mechanism
}

/** Environment variables for programs that no user watches: no terminal, pager, editor or prompt. */
const UNATTENDED = { TERM: "dumb", PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "true" }

export const environmentOf = ({ config, host, mechanism, spec }: ShellOptions): Environment => ({
  ...ToolEnvironment.visible({ ...ChildEnvironment.given(host.environment), ...spec.env }, [config.keyEnv]),
  ...ChildEnvironment.named(host.environment, config.passEnv),
  ...(mechanism.kind === "none" ? {} : { TMPDIR: "/tmp" }),
  ...UNATTENDED,
  ...config.env
})

export const rulesOf = (
  { config, host, spec }: Pick<ShellOptions, "config" | "host" | "spec">,
  workspace: string,
  hidden: ReadonlyArray<string>
): Rules => ({
  workspace,
  ...(spec.mounts === undefined ? {} : { shared: spec.mounts }),
  network: config.network,
  hidden,
  environment: host.environment
})
