/**
 * Version: which agentd this is. A test holds it against package.json; a bundle
 * has no package.json beside it.
 */
export const VERSION = "0.1.0"
