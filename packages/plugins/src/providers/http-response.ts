/**
 * The parts of the Fetch standard that an answer to a provider package needs, without the platform's own: those load all of
 * its HTTP client, which costs a start more than the request does. What providers never use is handed to the platform.
 */

type HeaderSource = ConstructorParameters<typeof globalThis.Headers>[0]

/** `Headers`: names without regard to case, in order of the alphabet; values of one name are joined, cookies are not. */
export class HttpHeaders implements Headers {
  readonly #values = new Map<string, string>()
  readonly #cookies: Array<string> = []

  constructor(source?: HeaderSource) {
    if (source === undefined || source === null) return
    const entries: Iterable<readonly [string, string]> = Symbol.iterator in source
      ? source as Iterable<readonly [string, string]>
      : Object.entries(source as { readonly [name: string]: string })
    for (const [name, value] of entries) this.append(name, value)
  }
  append(name: string, value: string): void {
    const key = name.toLowerCase()
    const text = String(value).trim()
    if (key === "set-cookie") {
      this.#cookies.push(text)
      return
    }
    const before = this.#values.get(key)
    this.#values.set(key, before === undefined ? text : `${before}, ${text}`)
  }
  set(name: string, value: string): void {
    this.delete(name)
    this.append(name, value)
  }
  delete(name: string): void {
    const key = name.toLowerCase()
    if (key === "set-cookie") this.#cookies.length = 0
    else this.#values.delete(key)
  }
  get(name: string): string | null {
    const key = name.toLowerCase()
    if (key !== "set-cookie") return this.#values.get(key) ?? null
    return this.#cookies.length === 0 ? null : this.#cookies.join(", ")
  }
  getSetCookie(): Array<string> {
    return [...this.#cookies]
  }
  has(name: string): boolean {
    return this.get(name) !== null
  }
  forEach(callback: (value: string, key: string, all: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) Reflect.apply(callback, thisArg, [value, name, this])
  }
  entries() {
    return this.#sorted().values()
  }
  keys() {
    return this.#sorted().map(([name]) => name).values()
  }
  values() {
    return this.#sorted().map(([, value]) => value).values()
  }
  [Symbol.iterator]() {
    return this.entries()
  }
  #sorted(): Array<[string, string]> {
    const all = [...this.#values, ...this.#cookies.map((value): [string, string] => ["set-cookie", value])]
    return all.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0)
  }
}

export interface HttpResponseInit {
  readonly status: number
  readonly statusText: string
  readonly headers: HttpHeaders
  readonly url: string
}

const noBytes = (): ReadableStream<Uint8Array> => new ReadableStream({ start: (controller) => controller.close() })

/** `Response`, of a body that is read once. */
export class HttpResponse implements Response {
  readonly status: number
  readonly statusText: string
  readonly headers: HttpHeaders
  readonly url: string
  readonly type = "basic"
  readonly redirected = false
  #body: ReadableStream<Uint8Array> | null
  #used = false

  constructor(body: ReadableStream<Uint8Array> | null, init: HttpResponseInit) {
    this.#body = body
    this.status = init.status
    this.statusText = init.statusText
    this.headers = init.headers
    this.url = init.url
  }
  get ok(): boolean {
    return this.status >= 200 && this.status < 300
  }
  get body(): ReadableStream<Uint8Array> | null {
    return this.#body
  }
  get bodyUsed(): boolean {
    return this.#used || this.#body?.locked === true
  }
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const body = this.#take()
    const chunks: Array<Uint8Array> = []
    for await (const chunk of body) chunks.push(chunk)
    return new Uint8Array(Buffer.concat(chunks))
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes())
  }
  async json(): Promise<unknown> {
    return JSON.parse(await this.text())
  }
  textStream(): ReadableStream<string> {
    return this.#platform(this.#take()).textStream()
  }
  async blob() {
    return this.#platform(this.#take()).blob()
  }
  async formData() {
    return this.#platform(this.#take()).formData()
  }
  clone(): Response {
    if (this.bodyUsed) throw new TypeError("The body of this answer has been read")
    if (this.#body === null) return new HttpResponse(null, this)
    const [mine, other] = this.#body.tee()
    this.#body = mine
    return new HttpResponse(other, this)
  }
  #take(): ReadableStream<Uint8Array> {
    if (this.bodyUsed) throw new TypeError("The body of this answer has been read")
    this.#used = true
    return this.#body ?? noBytes()
  }
  #platform(body: ReadableStream<Uint8Array>): Response {
    return new globalThis.Response(body, { headers: [...this.headers] })
  }
}
