export async function main(argv: ReadonlyArray<string>, version: string): Promise<void> {
  process.stderr.write(`bezel ${version}: not built yet: ${argv.join(" ")}\n`)
  process.exitCode = 2
}
