/**
 * McpEnvironment: the environment variables of a local server of the Model Context Protocol.
 */
import type { Host } from "../Host.ts"
import * as ChildEnvironment from "./ChildEnvironment.ts"
import type { Environment } from "./ChildProcess.ts"

interface Given {
  readonly env: { readonly [name: string]: string }
  readonly passEnv?: ReadonlyArray<string>
}

export const of = ({ env, passEnv }: Given, host: Host): Environment => ({
  ...ChildEnvironment.given(host.environment, { passEnv }),
  ...env
})
