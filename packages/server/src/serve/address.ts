/** What an address to listen on means. */
import { isIP } from "node:net"

/** Whether nobody beyond this machine can connect to it. */
export const isLoopback = (host: string): boolean => {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase()
  if (bare === "localhost" || bare.endsWith(".localhost")) return true
  return isIP(bare) === 4 ? bare.startsWith("127.") : isIP(bare) === 6 && /^(0*:)*:?0*1$|^::ffff:127\./.test(bare)
}

/** Whether it stands for all addresses of the machine, loopback among them. */
export const isEveryAddress = (host: string): boolean => ["0.0.0.0", "::", "[::]"].includes(host)
