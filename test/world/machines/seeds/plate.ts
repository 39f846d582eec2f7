/** The plate's transition function, as its source has it. */

export type Status = "Starting" | "Running" | "Idle" | "AwaitingInput" | "AwaitingApproval" | "Error" | "Closed"

export const statuses: ReadonlyArray<Status> = [
  "Starting",
  "Running",
  "Idle",
  "AwaitingInput",
  "AwaitingApproval",
  "Error",
  "Closed"
]

export type SeedEvent =
  | { readonly _tag: "SessionStart" }
  | { readonly _tag: "PromptSubmit" }
  | { readonly _tag: "ToolStart"; readonly tool: string }
  | { readonly _tag: "ToolCall" }
  | { readonly _tag: "Stop"; readonly error: string | null }
  | { readonly _tag: "HealthCheckRecovery" }

export const events: ReadonlyArray<SeedEvent> = [
  { _tag: "SessionStart" },
  { _tag: "PromptSubmit" },
  { _tag: "ToolStart", tool: "AskUserQuestion" },
  { _tag: "ToolStart", tool: "ExitPlanMode" },
  { _tag: "ToolStart", tool: "Bash" },
  { _tag: "ToolCall" },
  { _tag: "Stop", error: null },
  { _tag: "Stop", error: "it broke" },
  { _tag: "HealthCheckRecovery" }
]

export const transition = (status: Status, event: SeedEvent): Status => {
  switch (event._tag) {
    case "SessionStart":
    case "PromptSubmit":
    case "ToolCall":
      return "Running"
    case "ToolStart":
      if (event.tool === "AskUserQuestion") return "AwaitingInput"
      return event.tool === "ExitPlanMode" ? "AwaitingApproval" : "Running"
    case "Stop":
      return event.error === null ? "Idle" : "Error"
    case "HealthCheckRecovery":
      return ["AwaitingInput", "AwaitingApproval", "Error"].includes(status) ? "Idle" : status
  }
}
