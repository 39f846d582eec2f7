/**
 * Estimated: the suffix of a model's name for tokens that were estimated, because no usage was reported.
 */
export const ESTIMATED = " (estimated)"

export const plainModel = (model: string): string =>
  model.endsWith(ESTIMATED) ? model.slice(0, -ESTIMATED.length) : model
