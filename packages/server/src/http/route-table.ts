/**
 * From a method and a path to the endpoint of the definition that they name, with everything that each needs to be decoded.
 *
 * Built once from the definition, so a route that is defined is served, and one that is served is defined.
 */
import { BezelApi, RequiredScope } from "@bezel/sdk/api"
import * as Context from "effect/Context"
import type { Exit } from "effect/Exit"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as Schema from "effect/Schema"
import type { SchemaError } from "effect/Schema"

type Decode = (value: unknown) => Exit<unknown, SchemaError>

export interface Route {
  /** `session.prompt`: the group and the endpoint. */
  readonly name: string
  readonly method: string
  readonly path: string
  readonly scope: RequiredScope
  /** Of the answer that is no error. */
  readonly status: number
  /** Names of its parameters, in the order of the path. */
  readonly names: ReadonlyArray<string>
  readonly query: Decode | null
  readonly payload: Decode | null
}

export type Match =
  | { readonly type: "found"; readonly route: Route; readonly params: { readonly [name: string]: string } }
  | { readonly type: "method"; readonly allowed: ReadonlyArray<string> }
  | { readonly type: "none" }

interface Node {
  readonly literal: Map<string, Node>
  parameter: Node | null
  readonly routes: Map<string, Route>
}

const makeNode = (): Node => ({ literal: new Map(), parameter: null, routes: new Map() })

/** The erasure point of the table: what an endpoint's schemas need of services is nothing, by the definition. */
const decoder = (schema: Schema.Top | undefined): Decode | null =>
  schema === undefined
    ? null
    : Schema.decodeUnknownExit(schema as Schema.Codec<unknown, unknown>, {
      onExcessProperty: "error",
      errors: "all"
    })

const toRoute = (group: string, endpoint: HttpApiEndpoint.Top, scope: RequiredScope, status: number): Route => {
  const payload = [...endpoint.payload.values()][0]?.schemas[0]
  return {
    name: `${group}.${endpoint.identifier}`,
    method: endpoint.method,
    path: endpoint.path,
    scope,
    status,
    names: [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name),
    query: decoder(endpoint.query),
    payload: decoder(payload)
  }
}

export interface RouteTable {
  readonly routes: ReadonlyArray<Route>
  /** `segments` are the decoded parts of the path. */
  readonly match: (method: string, segments: ReadonlyArray<string>) => Match
}

export const makeRouteTable = (): RouteTable => {
  const root = makeNode()
  const routes: Array<Route> = []
  HttpApi.reflect(BezelApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, mergedAnnotations, successes }) => {
      const [status = 204] = successes.keys()
      const route = toRoute(group.identifier, endpoint, Context.get(mergedAnnotations, RequiredScope), status)
      routes.push(route)
      let node = root
      for (const segment of route.path.split("/").slice(1)) {
        const known = segment.startsWith(":") ? node.parameter : node.literal.get(segment)
        const next = known ?? makeNode()
        if (segment.startsWith(":")) node.parameter = next
        else node.literal.set(segment, next)
        node = next
      }
      node.routes.set(route.method, route)
    }
  })

  const find = (node: Node, segments: ReadonlyArray<string>, at: number): [Node, ReadonlyArray<string>] | null => {
    const segment = segments[at]
    if (segment === undefined) return node.routes.size === 0 ? null : [node, []]
    const literal = node.literal.get(segment)
    const found = literal === undefined ? null : find(literal, segments, at + 1)
    if (found !== null) return found
    if (node.parameter === null || segment === "") return null
    const below = find(node.parameter, segments, at + 1)
    return below === null ? null : [below[0], [segment, ...below[1]]]
  }

  return {
    routes,
    match: (method, segments) => {
      const found = find(root, segments, 0)
      if (found === null) return { type: "none" }
      const [node, values] = found
      const route = node.routes.get(method)
      if (route === undefined) return { type: "method", allowed: [...node.routes.keys()] }
      return {
        type: "found",
        route,
        params: Object.fromEntries(route.names.map((name, index) => [name, values[index] ?? ""]))
      }
    }
  }
}
