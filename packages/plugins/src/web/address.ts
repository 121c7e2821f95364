/**
 * Which network addresses are not the public internet: this machine, private and link-local networks, and what only carries
 * such an address inside (IPv4 in IPv6). By the registries of special-purpose addresses of IANA (RFC 6890).
 */
import { BlockList, isIP, isIPv4 } from "node:net"

// Two lists: an IPv4 address is looked for in IPv6 networks too, as one that it is mapped into.
const special4 = new BlockList()
const special6 = new BlockList()

for (
  const [network, prefix] of [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.88.99.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 4],
    ["240.0.0.0", 4]
  ] as const
) special4.addSubnet(network, prefix, "ipv4")

// Everything that is no global unicast (2000::/3), and what of that is special or tunnels other addresses.
for (
  const [network, prefix] of [
    ["::", 3],
    ["4000::", 2],
    ["8000::", 1],
    ["2001::", 23],
    ["2001:db8::", 32],
    ["2002::", 16],
    ["3fff::", 20]
  ] as const
) special6.addSubnet(network, prefix, "ipv6")

/** `::ffff:a.b.c.d`, however it is written, is the IPv4 address inside. */
const mapped = (address: string): string | null => {
  try {
    const { hostname } = new URL(`http://[${address}]/`)
    const match = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname)
    if (match === null) return null
    const [high, low] = [parseInt(match[1] ?? "0", 16), parseInt(match[2] ?? "0", 16)]
    return [high >> 8, high & 255, low >> 8, low & 255].join(".")
  } catch {
    return null
  }
}

/** True for what is no address of the public internet, and for what is no address. */
export const isPrivateAddress = (address: string): boolean => {
  const plain = address.split("%", 1)[0] ?? ""
  if (isIP(plain) === 0) return true
  if (isIPv4(plain)) return special4.check(plain, "ipv4")
  const inside = mapped(plain)
  return inside === null ? special6.check(plain, "ipv6") : special4.check(inside, "ipv4")
}
