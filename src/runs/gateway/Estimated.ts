/** Estimated: a suffix that is added to a model's name if its tokens were estimated because no usage was reported. */
export const ESTIMATED = " (estimated)"

export const plainModel = (model: string): string =>
  model.endsWith(ESTIMATED) ? model.slice(0, -ESTIMATED.length) : model
