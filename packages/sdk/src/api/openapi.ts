/** The OpenAPI document of the API: what the definition says, and the token and the scope that each route demands. */
import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { BezelApi } from "./definition.ts"
import { RequiredScope } from "./scope.ts"

/** OpenAPI 3.1. */
export const openApi = (): OpenApi.OpenAPISpec => {
  const document = OpenApi.fromApi(BezelApi)
  const scopes = new Map<string, RequiredScope>()
  HttpApi.reflect(BezelApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}")
      scopes.set(`${endpoint.method.toLowerCase()} ${path}`, Context.get(mergedAnnotations, RequiredScope))
    }
  })
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const scope = scopes.get(`${method} ${path}`) ?? "read"
      if (typeof operation !== "object" || !("responses" in operation)) continue
      operation.security = scope === "none" ? [] : [{ bearer: [] }]
      if (scope !== "none") operation.description = `Takes a token of scope \`${scope}\` or more.`
    }
  }
  return {
    ...document,
    components: {
      ...document.components,
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "A token of this server." } }
    }
  }
}
