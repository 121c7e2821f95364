/** What the environment says of the terminal that it may not be able to show. */

/** The character set of the locale, as far as it is named: `ISO-8859-1` of `de_DE.ISO-8859-1@euro`. */
const charset = (environment: NodeJS.ProcessEnv): string | null => {
  const locale = [environment["LC_ALL"], environment["LC_CTYPE"], environment["LANG"]].find((name) =>
    name !== undefined && name !== ""
  )
  return /\.([^@]+)/.exec(locale ?? "")?.[1] ?? null
}

/**
 * A sentence for a person whose locale names another character set than UTF-8, which is what is written. One that names none,
 * such as `C`, says nothing of the terminal: most show UTF-8 all the same.
 */
export const localeWarning = (environment: NodeJS.ProcessEnv): string | null => {
  const name = charset(environment)
  return name === null || /^utf-?8$/i.test(name)
    ? null
    : `The locale says ${
      name.slice(0, 40)
    }, and what is shown here is UTF-8: where lines and letters look wrong, set LANG=C.UTF-8.`
}

/** Whether the terminal can place text; one that cannot would show what moves the cursor. */
export const canPlaceText = (environment: NodeJS.ProcessEnv): boolean => environment["TERM"] !== "dumb"
