/**
 * Version: the version of this program, the same as in package.json. It is repeated here because the bundle has no
 * package.json. A test compares the two.
 */
export const VERSION = "0.1.0"
