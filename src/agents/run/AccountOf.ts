/**
 * AccountOf: which provider of models a backend asks, and on whose account, as far as its config
 * says. Pure.
 *
 * Guarantees: a key's place is named, never the key; a program of which nobody knows whether it
 * asks a model at all has none.
 */
import type { BackendConfig, Provider } from "../../config/BackendConfig.ts"
import { APIS } from "../../config/BackendConfig.ts"
import type { Account } from "../../domain/Weather.ts"

interface Key {
  readonly baseUrl?: string | undefined
  readonly keyEnv?: string | undefined
  readonly keyFile?: string | undefined
}

/** The host of an address, unless it is the provider's own. */
const hostOf = (api: keyof typeof APIS, baseUrl: string | undefined): string =>
  baseUrl === undefined || !URL.canParse(baseUrl) || baseUrl === APIS[api].url ? api : new URL(baseUrl).host

const keyed = (api: keyof typeof APIS, { baseUrl, keyEnv, keyFile }: Key, otherwise: string): Account => ({
  provider: hostOf(api, baseUrl),
  account: keyFile ?? keyEnv ?? otherwise
})

/** The program and what it is told to be: "opencode acp", whatever its path. */
const programOf = ([program = "", ...args]: ReadonlyArray<string>): string =>
  [program.slice(program.lastIndexOf("/") + 1), ...args].join(" ").slice(0, 100)

/** Of a program that has its login where the daemon's user has it; one with a home of its own has a login of its own. */
const LOGIN = "login"

const given = (provider: Provider | undefined): Account | undefined =>
  provider === undefined ? undefined : keyed(provider.api, provider, APIS[provider.api].key)

export const accountOf = (backend: BackendConfig): Account | undefined => {
  switch (backend.type) {
    case "model":
      return keyed(backend.provider, backend, APIS[backend.provider].key)
    case "claude": {
      const { env, provider } = backend
      const baseUrl = provider.baseUrl ?? env["ANTHROPIC_BASE_URL"]
      return keyed("anthropic", { ...provider, baseUrl }, env["CLAUDE_CONFIG_DIR"] ?? env["HOME"] ?? LOGIN)
    }
    case "acp":
    case "exec":
      return given(backend.provider) ?? { provider: programOf(backend.argv), account: backend.env["HOME"] ?? LOGIN }
    case "command":
      return given(backend.provider)
  }
}
