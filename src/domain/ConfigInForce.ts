/** ConfigInForce: says which config of a project applies while its file cannot be used. Pure. */
import type { ProjectInfo } from "./Messages.ts"

export const inForce = ({ lost }: Pick<ProjectInfo, "lost">): string =>
  lost === true ? "none of its agents runs" : "the last usable version stays in force"
