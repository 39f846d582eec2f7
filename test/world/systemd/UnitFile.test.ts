/**
 * UnitFile: the texts of the units, read back by systemd's own tools where they are there: `systemd-analyze verify`, and
 * `security`, whose exposure may be 4.0 at most for the system's.
 */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe } from "vitest"
import * as UnitFile from "../../../src/systemd/UnitFile.ts"

const of = (more: Partial<UnitFile.UnitFile> = {}): UnitFile.UnitFile => ({
  unit: "agentd",
  manager: "user",
  socket: "/run/user/1000/100%/control.sock",
  command: ["/bin/sh", "/opt/agent d/100%/$HOME/agentd.mjs"],
  path: "/home/ada/bin:/usr/bin",
  environmentFile: "/home/ada/.config/agentd/environment",
  credentials: [{ name: "smtp", file: "/home/ada/.config/agentd/smtp" }],
  ...more
})
const system = of({ manager: "system", user: "daemon" })

describe("serviceText", () => {
  it("quotes what systemd would take for a specifier, a variable or two words", () => {
    const text = UnitFile.serviceText(of())
    assert.include(
      text,
      'ExecStart=/bin/sh --max-semi-space-size=1 --disable-sigusr1 "/opt/agent d/100%%/$$HOME/agentd.mjs" up\n'
    )
    assert.include(text, 'ExecReload=/bin/sh "/opt/agent d/100%%/$$HOME/agentd.mjs" service reload\n')
  })

  it("says that it is agentd's, is notified, watched, restarted, and mailed about", () => {
    const text = UnitFile.serviceText(of())
    assert.isTrue(text.startsWith(UnitFile.MARK))
    for (const line of [
      "Type=notify",
      "WatchdogSec=60",
      "Restart=on-failure",
      "OnFailure=agentd-failed.service",
      "LoadCredential=smtp:/home/ada/.config/agentd/smtp",
      "EnvironmentFile=-/home/ada/.config/agentd/environment",
      "KillMode=mixed",
      "TasksMax=8192"
    ]) {
      assert.include(text, `${line}\n`)
    }
    assert.include(UnitFile.failureText(of()), "service mail --once agentd\n")
  })

  it("has a socket, which it is handed by a name, for its user alone", () => {
    assert.include(UnitFile.serviceText(of()), "Wants=agentd.socket\nAfter=agentd.socket\n")
    const text = UnitFile.socketText(of())
    assert.isTrue(text.startsWith(UnitFile.MARK))
    for (const line of [
      "ListenStream=/run/user/1000/100%%/control.sock",
      "FileDescriptorName=control",
      "SocketMode=0600",
      "WantedBy=sockets.target"
    ]) {
      assert.include(text, `${line}\n`)
    }
    assert.notInclude(text, "SocketUser")
    assert.include(UnitFile.socketText(system), "SocketUser=daemon\n")
  })

  it("has a unit for the page's port, which comes and goes with its socket, where the port is known", () => {
    const unit = of({ page: ["127.0.0.1:7080", "[::1]:7080"] })
    const both = "agentd.socket agentd-page.socket"
    assert.include(UnitFile.serviceText(unit), `Wants=${both}\nAfter=${both}\n`)
    const text = UnitFile.pageText(unit)
    assert.isTrue(text.startsWith(UnitFile.MARK))
    for (const line of [
      "PartOf=agentd.socket",
      "ListenStream=127.0.0.1:7080",
      "ListenStream=[::1]:7080",
      "FileDescriptorName=page",
      "Service=agentd.service"
    ]) {
      assert.include(text, `${line}\n`)
    }
  })

  it("of the system runs as its user, and leaves the keeper alone, which is in it", () => {
    const text = UnitFile.serviceText(system)
    for (const line of ["User=daemon", "StateDirectory=agentd", "KillMode=process", "WantedBy=multi-user.target"]) {
      assert.include(text, `${line}\n`)
    }
  })

  it("closes off what agents do not need, and neither home nor /tmp nor namespaces, which they do", () => {
    assert.include(UnitFile.serviceText(system), "ProtectSystem=full\n")
    for (const text of [UnitFile.serviceText(of()), UnitFile.serviceText(system)]) {
      assert.include(text, "NoNewPrivileges=yes\n")
      assert.notMatch(text, /^(ProtectHome|PrivateTmp|ReadOnlyPaths|MemoryDenyWriteExecute)=/m)
      assert.include(text, "RestrictNamespaces=user mnt pid net ipc uts cgroup\n")
    }
  })

  it("of a user's asks for nothing that systemd would make a user namespace for: the daemon would see no caller", () => {
    const inNamespace =
      /^(Private\w+|Protect\w+|(ReadOnly|Inaccessible|ReadWrite)Paths|TemporaryFileSystem|CapabilityBoundingSet)=/m
    assert.notMatch(UnitFile.serviceText(of()), inNamespace)
    assert.match(UnitFile.serviceText(system), inNamespace)
  })
})

const isThere = spawnSync("systemd-analyze", ["--version"]).status === 0
if (!isThere) console.warn("SKIPPED: the units as systemd reads them (no systemd-analyze here)")

describe.skipIf(!isThere)("systemd's own reading", () => {
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "agentd-units-"))))
  afterEach(() => rmSync(folder, { recursive: true }))

  const analyze = (manager: "user" | "system", ...args: ReadonlyArray<string>) =>
    spawnSync("systemd-analyze", [`--${manager}`, ...args], {
      encoding: "utf8",
      env: { ...process.env, XDG_RUNTIME_DIR: folder, SYSTEMD_COLORS: "0" }
    })

  const kinds = [
    ["user", of()],
    ["user", of({ page: ["127.0.0.1:7080", "[::1]:7080"] })],
    ["system", system]
  ] as const

  it.each(kinds)("%s: verify has nothing to say", (_, unit) => {
    const files = ["agentd.service", "agentd-failed.service", "agentd.socket"].map((name) => join(folder, name))
    if (unit.page !== undefined) {
      files.push(join(folder, "agentd-page.socket"))
      writeFileSync(files[3]!, UnitFile.pageText(unit))
    }
    writeFileSync(files[0]!, UnitFile.serviceText(unit))
    writeFileSync(files[1]!, UnitFile.failureText(unit))
    writeFileSync(files[2]!, UnitFile.socketText(unit))
    const { status, stderr } = analyze(unit.manager, "verify", "--man=no", ...files)
    assert.strictEqual(
      stderr
        .split("\n")
        .filter((line) => line.includes("agentd"))
        .join("\n"),
      ""
    )
    assert.strictEqual(status, 0, stderr)
  })

  it("system: the exposure is 4.0 at most", () => {
    const file = join(folder, "agentd.service")
    writeFileSync(file, UnitFile.serviceText(system))
    const { stdout } = analyze("system", "security", "--offline=true", "--no-pager", file)
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1])
    assert.isAtMost(exposure, 4)
  })
})
