/** ClientInfo: how agentd introduces itself to an agent. The backends, which are a library, import nothing of agentd. */
export const CLIENT_INFO = { name: "agentd", title: "agentd", version: "0.1.0" } as const
