/**
 * `@bezel/sdk`: the definition of the HTTP API and its typed client.
 *
 * Neither is built yet; the name is kept for them. This package will depend on the API's definition alone and run in Node and in
 * a browser.
 */
export {}
