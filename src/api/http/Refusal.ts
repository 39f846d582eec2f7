/**
 * Refusal: the error answer to a request that is not carried out: its status, its code, the problem, the invalid field,
 * and the remedy. The form is the same for all routes and reasons.
 */
import { HttpServerResponse } from "effect/http"
import { type RefusalCode, refusalCodes } from "../../domain/RefusalCode.ts"

export interface Refusal {
  readonly _tag: "Refusal"
  readonly status: number
  readonly code: RefusalCode
  readonly error: string
  /** The field of the request that is invalid; null if no particular field is. */
  readonly field: string | null
  readonly remedy: string
  /** Methods that the route supports; set if the request used another method. */
  readonly allow?: string
}

export const refusal = (
  code: RefusalCode,
  error: string,
  remedy: string,
  field: string | null = null,
  status: number = refusalCodes[code].status
): Refusal => ({ _tag: "Refusal", status, code, error, remedy, field })

export const toBody = ({ code, error, field, remedy }: Refusal) => ({ error, code, field, remedy })

export const toResponse = (refused: Refusal): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(toBody(refused), {
    status: refused.status,
    headers: refused.allow === undefined ? {} : { allow: refused.allow }
  })
