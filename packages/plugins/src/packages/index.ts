/** Packages that a person has installed beside the program, for plugins and for model providers. */
export * from "./installed.ts"
export * from "./settings-file.ts"
