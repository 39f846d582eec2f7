/**
 * AccountOf: the provider and the account that a backend uses, according to its config. Pure.
 *
 * Guarantees: The account contains the location of a key, never the key. A program that is not allowed to use a model
 * has no account.
 */
import type { BackendConfig, Provider } from "../../config/BackendConfig.ts"
import { APIS } from "../../config/BackendConfig.ts"
import type { Account } from "../../domain/ProviderStatus.ts"

interface Key {
  readonly baseUrl?: string | undefined
  readonly keyEnv?: string | undefined
  readonly keyFile?: string | undefined
}

/** The host of a base URL; if there is none, the name of the provider's API. */
const hostOf = (api: keyof typeof APIS, baseUrl: string | undefined): string =>
  baseUrl === undefined || !URL.canParse(baseUrl) || baseUrl === APIS[api].url ? api : new URL(baseUrl).host

const keyed = (api: keyof typeof APIS, { baseUrl, keyEnv, keyFile }: Key, otherwise: string): Account => ({
  provider: hostOf(api, baseUrl),
  account: keyFile ?? keyEnv ?? otherwise
})

/** A program's name without its path, followed by its arguments, for example "opencode acp". */
const programOf = ([program = "", ...args]: ReadonlyArray<string>): string =>
  [program.slice(program.lastIndexOf("/") + 1), ...args].join(" ").slice(0, 100)

/** Account of a program that uses the login of the daemon's user. A program with its own HOME has its own login. */
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
    case "codex": {
      const { env, provider } = backend
      const baseUrl = provider.baseUrl ?? env["OPENAI_BASE_URL"]
      return keyed("openai", { ...provider, baseUrl }, env["CODEX_HOME"] ?? env["HOME"] ?? LOGIN)
    }
    case "acp":
    case "exec":
      return given(backend.provider) ?? { provider: programOf(backend.argv), account: backend.env["HOME"] ?? LOGIN }
    case "command":
      return given(backend.provider)
  }
}
