/** Estimated: the end of a model's name under which its tokens are counted that were estimated: nobody told them. */
export const ESTIMATED = " (estimated)"

export const plainModel = (model: string): string =>
  model.endsWith(ESTIMATED) ? model.slice(0, -ESTIMATED.length) : model
