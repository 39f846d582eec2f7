/**
 * Choices: shows an agent's questions. The user answers each by choosing options or typing text, and all answers are
 * sent together.
 */
import { useRef, useState } from "preact/hooks"
import type { Question } from "../../runs/Question.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import { act, isReady } from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { mayAct } from "../BoardStore.ts"
import { Kbd } from "../Ui.tsx"
import type { Read } from "../Whole.tsx"

interface Props {
  readonly asked: AskedCall
  readonly questions: ReadonlyArray<Question>
  readonly isSettled: () => boolean
  readonly read: Read
  readonly next: () => void
}

interface AskProps {
  readonly question: Question
  readonly chosen: ReadonlyArray<number>
  /** True for the question that the number keys answer. */
  readonly isCurrent: boolean
  readonly pick: (option: number) => void
  readonly say: (text: string) => void
}

const OwnWords = ({ question: { options }, say }: Pick<AskProps, "question" | "say">) => {
  const input = useRef<HTMLInputElement>(null)
  useKeys(({ is }) => {
    if (is !== "deny" && is !== "send") return false
    input.current?.focus()
    return true
  })
  return (
    <form
      class="deny"
      onSubmit={(event) => {
        event.preventDefault()
        const text = input.current?.value.trim() ?? ""
        if (text !== "") say(text)
      }}
    >
      <input
        ref={input}
        placeholder={options.length === 0 ? "Your answer" : "Or in your own words"}
        aria-label="In your own words"
      />
      <button class="btn">
        Answer<Kbd>d</Kbd>
      </button>
    </form>
  )
}

const Ask = ({ chosen, isCurrent, pick, question, say }: AskProps) => (
  <section class={isCurrent ? "question" : "question dim"} aria-label={question.question}>
    <p class="asked told">{question.question}</p>
    <ul class="options">
      {question.options.map(({ description, label }, n) => (
        <li key={n}>
          <button type="button" aria-pressed={chosen.includes(n)} disabled={!mayAct.value} onClick={() => pick(n)}>
            {isCurrent && n < 9 ? <kbd>{n + 1}</kbd> : <i class="no-glyph" />}
            <span>
              <b>{label}</b>
              {description !== "" && <span class="muted">{description}</span>}
            </span>
          </button>
        </li>
      ))}
    </ul>
    {isCurrent && mayAct.value && <OwnWords question={question} say={say} />}
  </section>
)

/** The answer for these selected options. */
const numbers = (chosen: ReadonlyArray<number>): string => chosen.map((n) => n + 1).join(",")

export const Choices = ({ asked, isSettled, next, questions, read }: Props) => {
  const [picked, setPicked] = useState<ReadonlyArray<number>>([])
  const [answers, setAnswers] = useState<ReadonlyArray<string>>([])
  const isBusy = useRef(false)
  const question = questions[answers.length]
  const answer = async (text: string) => {
    if (!read.isWhole) return read.goOn()
    if (!isSettled() || isBusy.current || !isReady()) return
    const all = [...answers, text]
    setPicked([])
    if (all.length < questions.length) return setAnswers(all)
    isBusy.current = true
    const { hash, id } = asked
    if (await act("Answer", { name: id, decision: "allow", reason: "", answers: all, hash })) next()
    else setAnswers([])
    isBusy.current = false
  }
  const pick = (n: number) => {
    if (question === undefined || n >= question.options.length || !isReady()) return
    if (!question.several) return void answer(String(n + 1))
    setPicked(picked.includes(n) ? picked.filter((one) => one !== n) : [...picked, n].toSorted())
  }
  useKeys((action) => {
    if (action.is === "option") pick(action.option - 1)
    else if (action.is === "open" && picked.length > 0) void answer(numbers(picked))
    else return false
    return true
  })
  return (
    <>
      <div class="fields" ref={read.box}>
        {questions.map((one, n) => (
          <Ask
            key={n}
            question={one}
            isCurrent={n === answers.length}
            chosen={
              n === answers.length
                ? picked
                : one.options.flatMap((_, at) => (answers[n]?.split(",").includes(String(at + 1)) ? [at] : []))
            }
            pick={pick}
            say={(text) => void answer(text)}
          />
        ))}
      </div>
      <div class="answers">
        {question?.several === true && mayAct.value && (
          <button
            type="button"
            class="btn primary large"
            disabled={picked.length === 0}
            onClick={() => void answer(numbers(picked))}
          >
            Choose these<Kbd>↵</Kbd>
          </button>
        )}
        <span class="grow" />
        <button type="button" class="btn quiet-btn large" onClick={next}>
          Later<Kbd>j</Kbd>
        </button>
      </div>
    </>
  )
}
