/** Manager: whether a systemd of this user's is there to start services. */
import { spawnSync } from "node:child_process"

const state = spawnSync("systemctl", ["--user", "is-system-running"], { encoding: "utf8" }).stdout?.trim() ?? ""

export const hasUserManager = process.env["XDG_RUNTIME_DIR"] !== undefined && ["running", "degraded"].includes(state)
