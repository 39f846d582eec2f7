/**
 * Refusal: a request that is not carried out: its status, what is wrong, with
 * which field, and what to do. One shape for every route and every reason.
 */
import { HttpServerResponse } from "effect/http"

export interface Refusal {
  readonly _tag: "Refusal"
  readonly status: number
  readonly error: string
  /** Null: no field in particular. */
  readonly field: string | null
  readonly remedy: string
  /** The methods that the route has, where it was another one that was asked for. */
  readonly allow?: string
}

export const refusal = (status: number, error: string, remedy: string, field: string | null = null): Refusal => ({
  _tag: "Refusal",
  status,
  error,
  remedy,
  field
})

export const toResponse = ({ allow, error, field, remedy, status }: Refusal): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe({ error, field, remedy }, { status, headers: allow === undefined ? {} : { allow } })
