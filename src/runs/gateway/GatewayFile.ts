/**
 * GatewayFile: the text of the gateway's program, which its process reads from its standard input. When run from the
 * sources, the text imports the file next to this one. The bundle is one program without other files, so
 * `scripts/bundle.ts` replaces this module with the whole text. A gateway that starts late then has the same version as
 * its daemon.
 */
export const program = `import ${JSON.stringify(new URL("./main.ts", import.meta.url).href)}\n`
