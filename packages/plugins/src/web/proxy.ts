/** The proxy that the environment names for an address, in the words of curl: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`. */

type Environment = { readonly [name: string]: string | undefined }

const valueOf = (env: Environment, name: string): string => (env[name.toLowerCase()] ?? env[name] ?? "").trim()

/** `example.com` and `.example.com` are for all below too, with a port only for that one; `*` is for all. */
const isExempt = (url: URL, list: string): boolean => {
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase()
  const port = url.port === "" ? url.protocol === "https:" ? "443" : "80" : url.port
  return list.toLowerCase().split(/[\s,]+/).filter((entry) => entry !== "").some((entry) => {
    if (entry === "*") return true
    // An IPv6 address without brackets has no port.
    const match = /^\[(.+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]*)(?::(\d+))?$/.exec(entry)
    const name = (match?.[1] ?? entry).replace(/^\*?\./, "")
    if (match?.[2] !== undefined && match[2] !== port) return false
    return host === name || host.endsWith(`.${name}`)
  })
}

/** `null`: it is reached directly. */
export const proxyFor = (url: URL, env: Environment = process.env): string | null => {
  const proxy = valueOf(env, url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY")
  return proxy === "" || isExempt(url, valueOf(env, "NO_PROXY")) ? null : proxy
}
