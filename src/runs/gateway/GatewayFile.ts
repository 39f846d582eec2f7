/**
 * GatewayFile: the text of the gateway's program, which its process reads from its standard input.
 * From the sources it names the file beside this one. The bundle, which is one program without
 * files beside it, puts the whole text in place of this module (`scripts/bundle.ts`), so that a
 * gateway that starts late is the one of its daemon.
 */
export const program = `import ${JSON.stringify(new URL("./main.ts", import.meta.url).href)}\n`
