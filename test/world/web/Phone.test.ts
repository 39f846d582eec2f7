/**
 * A goal worked from a phone alone, as a story: written, its plan read and approved, a question answered, a call
 * approved, met. Fingers only: nothing is typed but the goal, no key is pressed. `SHOTS=folder`: a picture of each step.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as Stage from "../../support/Stage.ts"
import { type Step, toldTo } from "../../support/Told.ts"
import { browser, freePort, isMissing, linkOf, missing, openPage, PHONE } from "./Browser.ts"

const SHOTS = process.env["SHOTS"]

const GOAL = "Publish the receipts of October. It is done when there is a file that says so."
const PLAN = {
  tasks: [
    { id: "region", title: "Choose the region", description: "Ask which one; the small one goes first.", owner: "ann" },
    {
      id: "publish",
      title: "Publish the receipts",
      description: "Ask before anything leaves this machine.",
      dependsOn: ["region"],
      owner: "ben"
    }
  ]
}
/** Makes a commit, which is the work that is reviewed. */
const PUBLISH = [
  "date > receipts.txt",
  "git add receipts.txt",
  'git -c user.name=ben -c user.email=ben@example.org commit -qm "receipts of October"'
].join(" && ")
const question: Step = {
  tool: [
    "AskUserQuestion",
    {
      questions: [
        {
          question: "Which region goes first?",
          header: "Region",
          multiSelect: false,
          options: [
            { label: "eu-west", description: "small" },
            { label: "us-east", description: "large" }
          ]
        }
      ]
    }
  ]
}

describe.skipIf(isMissing)(`a phone${missing}`, () => {
  it.live("alone takes a goal from its words to its end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const stage = yield* Stage.make
        stage.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
        const planner = {
          backend: { type: "command", shell: `cat >/dev/null; echo '${JSON.stringify(PLAN)}'`, readyAfter: "50ms" },
          minRunInterval: "0ms"
        }
        const shop = stage.home({
          name: "shop",
          agents: {
            planner,
            ann: stage.agent("claude", { role: "operates", instructions: toldTo("ann", question) }),
            ben: stage.agent("acp", {
              role: "publishes",
              worktree: true,
              instructions: toldTo("ben", { ask: PUBLISH })
            })
          },
          goals: { planner: "planner", workers: ["ann", "ben"] }
        })
        const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: shop.root, encoding: "utf8" })
        git("init", "-q", "-b", "main")
        git("-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "begin")
        yield* stage.up
        yield* shop.register
        const link = yield* linkOf(shop)
        const chromium = yield* browser
        const { context, faults, page } = yield* Effect.promise(() =>
          openPage(chromium, link, PHONE, { hasTouch: true, isMobile: true, colorScheme: "light" })
        )
        let shots = 0
        const shot = async (name: string) => {
          if (SHOTS === undefined) return
          shots++
          await page.waitForTimeout(400)
          for (const colorScheme of ["dark", "light"] as const) {
            await page.emulateMedia({ colorScheme })
            await page.screenshot({ path: `${SHOTS}/phone-${shots}-${name}-${colorScheme}.png` })
          }
        }
        const tab = (name: string) => page.getByRole("navigation", { name: "Pages" }).getByText(name).last().tap()
        const has = (text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()
        /** A button counts once what it decides has been in sight for a moment. */
        const tapAway = async (name: string | RegExp) => {
          const button = page.getByRole("button", { name })
          await button.waitFor()
          for (let taps = 0; taps < 60 && (await button.count()) > 0; taps++) {
            await button.tap({ timeout: 1_000 }).catch(() => undefined)
            await button.waitFor({ state: "detached", timeout: 1_000 }).catch(() => undefined)
          }
          assert.strictEqual(await button.count(), 0, `${name} is there no more`)
        }

        yield* Effect.promise(async () => {
          await page.getByRole("heading", { name: "Board" }).waitFor()
          assert.notInclude(page.url(), "open=")
          await shot("board")

          await tab("Goals")
          await has("No goals yet")
          await shot("no-goals")
          await page.getByRole("link", { name: "New goal" }).first().tap()
          await page.getByRole("textbox", { name: "What should be achieved" }).fill(GOAL)
          await page.getByRole("textbox", { name: /Commands that must succeed/ }).fill("test -s receipts.txt")
          await shot("written")
          await page.getByRole("button", { name: "Submit the goal" }).tap()

          await page.getByRole("heading", { name: /Publish the receipts of October/ }).waitFor()
          await has("Ask before anything leaves this machine.")
          await has("ben, after region")
          await shot("plan")
          await tapAway("Approve the plan")

          await page.locator(".task.t-running", { hasText: "Choose the region" }).waitFor()
          await shot("under-way")
          await page.getByRole("navigation", { name: "Pages" }).getByLabel("1 wait").first().waitFor()
          await tab("Needs you")
          await has("Which region goes first?")
          await shot("question")
          await tapAway(/eu-west/)

          await has("Asks to run")
          await has(/date > receipts.txt/)
          assert.notInclude(git("log", "--all", "--format=%s"), "receipts", "nothing is made before leave is given")
          await shot("call")
          await tapAway("Approve once")
          await has("Nothing waits for you")
          await tab("Goals")
          await page.locator("a.card", { hasText: "2 of 2 tasks done" }).tap()
          await page.getByRole("img", { name: "done" }).first().waitFor()
          await has(/it is met|is met/)
          await shot("met")
          assert.deepStrictEqual(faults, [])
          await context.close()
        })
        assert.include(git("log", "--format=%s", "agentd/ben"), "receipts of October")
        const { goal } = yield* shop.stage.rpc((client) => client.Goal({ name: "g1", from: 0, caller: shop.caller }))
        assert.strictEqual(goal.state, "goal_met")
        // each act is in the log as the page's
        const runes = yield* shop.log("plan.goal_received", "plan.approved", "tool.approved")
        assert.isTrue(runes.length >= 3, JSON.stringify(runes.map(({ kind }) => kind)))
      })
    )
  )
})
