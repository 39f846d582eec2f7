/** ProviderKinds: the kinds of runes of a provider's status. */
import { Schema } from "effect"
import { machineKinds } from "../core/event-actor/MachineKinds.ts"
import * as ProviderMachine from "./ProviderMachine.ts"

/**
 * `provider.lasting`: an outage has lasted so long that a user is notified. `provider.recovered`: that outage is over.
 * `provider.used`: usage windows of the account.
 */
export const providerKinds = machineKinds(ProviderMachine, {
  "provider.recovered": {
    fields: { provider: Schema.String, account: Schema.String, told_by: Schema.optionalKey(Schema.String) }
  }
})
