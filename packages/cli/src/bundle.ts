declare const BEZEL_BUNDLE: "lean" | "sharing" | undefined

/** Which build of the program this is: `scripts/build.ts` puts the name in; run from source, there is none. */
export const bundle: "lean" | "sharing" | "source" = typeof BEZEL_BUNDLE === "undefined" ? "source" : BEZEL_BUNDLE
