/**
 * ThreadFile: where the code of the log's threads is: files beside this one. The
 * bundle, which is one program without files beside it, puts its own text in place of
 * this module (`scripts/bundle.ts`).
 */
export const logThread = new URL("./LogThread.ts", import.meta.url)
export const verifyThread = new URL("./VerifyThread.ts", import.meta.url)
