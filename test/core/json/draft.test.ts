import {
  append,
  apply,
  DraftRevoked,
  type JsonObject,
  type JsonValue,
  NotJson,
  snapshot,
  track,
  truncate
} from "@bezel/core/json"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

interface Row {
  id: number
  state: { value: number; label?: string }
}

const document = () => ({
  text: "one",
  rows: [{ id: 0, state: { value: 0 } }, { id: 1, state: { value: 1 } }, { id: 2, state: { value: 2 } }] as Array<Row>,
  map: { a: { n: 1 }, b: { n: 2 } } as { [key: string]: { n: number } }
})

/** Edits a document and checks, whatever the edit, that a replica which gets the operations as text arrives at the same. */
const edit = <A extends object>(base: A, change: (draft: A) => void) => {
  const before = JSON.stringify(base)
  const tracked = track(base)
  change(tracked.draft as A)
  const seen = JSON.stringify(tracked.draft)
  const { operations, value } = tracked.flush()
  expect(JSON.stringify(base)).toBe(before)
  expect(JSON.stringify(value)).toBe(seen)
  expect(apply(base, JSON.parse(JSON.stringify(operations)))).toEqual(value)
  return { operations, value }
}

describe("a draft", () => {
  it("records a leaf by its path alone", () => {
    const { operations, value } = edit(document(), (draft) => {
      const row = draft.rows[1]
      if (row !== undefined) row.state.value = 10
    })
    expect(operations).toEqual([["set", ["rows", 1, "state", "value"], 10]])
    expect(value.rows[1]?.state.value).toBe(10)
  })

  it("shares what is unchanged with the document before", () => {
    const base = document()
    const tracked = track(base)
    tracked.draft.text = "two"
    const first = tracked.flush().value
    expect(first.rows).toBe(base.rows)
    expect(tracked.flush().value).toBe(first)
  })

  it("reads its own writes", () => {
    edit(document(), (draft) => {
      draft.rows.push({ id: 3, state: { value: 3 } })
      const row = draft.rows[3]
      if (row !== undefined) row.state.value = 4
      expect(draft.rows.length).toBe(4)
      expect(draft.rows.at(-1)).toEqual({ id: 3, state: { value: 4 } })
      expect(draft.rows.map((item) => item.id)).toEqual([0, 1, 2, 3])
      delete draft.map.a
      expect("a" in draft.map).toBe(false)
      expect(Object.keys(draft.map)).toEqual(["b"])
    })
  })

  it("records nothing for an edit that changes nothing", () => {
    const { operations } = edit(document(), (draft) => {
      draft.text = "one"
      const { map } = draft
      draft.map = map
      draft.rows.splice(0, 0)
      delete draft.map.nope
    })
    expect(operations).toEqual([])
  })

  it("carries what was assigned whole, once, with the edits made inside it", () => {
    const { operations } = edit(document(), (draft) => {
      draft.map.c = { n: 1 }
      draft.map.c.n = 2
      draft.rows.push({ id: 3, state: { value: 0 } })
      const row = draft.rows[3]
      if (row !== undefined) row.state.label = "x"
    })
    expect(operations).toEqual([
      ["set", ["map", "c"], { n: 2 }],
      ["splice", ["rows"], 3, 0, [{ id: 3, state: { value: 0, label: "x" } }]]
    ])
  })

  it("makes one operation of a run of pushes, of appends, and of sets of one place", () => {
    expect(
      edit(document(), (draft) => {
        for (let id = 3; id < 10; id++) draft.rows.push({ id, state: { value: 0 } })
      }).operations
    ).toHaveLength(1)
    expect(
      edit(document(), (draft) => {
        for (let index = 0; index < 10; index++) append(draft, "text", "x")
      }).operations
    ).toEqual([["append", ["text"], "xxxxxxxxxx"]])
    expect(
      edit(document(), (draft) => {
        for (let index = 0; index < 10; index++) draft.map.a = { n: index }
      }).operations
    ).toEqual([["set", ["map", "a"], { n: 9 }]])
  })

  it("finds that a string was appended to, or lost its beginning", () => {
    expect(edit(document(), (draft) => void (draft.text += " two")).operations).toEqual([["append", ["text"], " two"]])
    expect(edit(document(), (draft) => void (draft.text = draft.text.slice(1))).operations).toEqual([["truncate", [
      "text"
    ], 1]])
    expect(edit(document(), (draft) => truncate(draft, "text", 2)).operations).toEqual([["truncate", ["text"], 2]])
  })

  it("appends at the cost of the appended text, however long the string is", () => {
    const tracked = track({ text: "x".repeat(5_000_000) })
    let replica = { text: "x".repeat(5_000_000) }
    const start = performance.now()
    for (let index = 0; index < 20_000; index++) {
      append(tracked.draft, "text", "abcde")
      replica = apply(replica, JSON.parse(JSON.stringify(tracked.flush().operations)))
    }
    // Copying the string each time would be 100 GB.
    expect(performance.now() - start).toBeLessThan(3_000)
    expect(replica.text.length).toBe(5_100_000)
  })

  it("edits arrays with every method that an array has", () => {
    edit({ list: [3, 1, 2, 5, 4] }, (draft) => {
      draft.list.push(6, 7)
      expect(draft.list.pop()).toBe(7)
      expect(draft.list.shift()).toBe(3)
      expect(draft.list.unshift(9, 8)).toBe(7)
      expect(draft.list.splice(1, 2, 20)).toEqual([8, 1])
      draft.list.sort((left, right) => left - right)
      draft.list.reverse()
      draft.list.fill(0, 0, 1)
      draft.list.copyWithin(0, 2, 3)
      draft.list[draft.list.length] = 100
      draft.list.length = 4
      expect(draft.list.splice(-1)).toHaveLength(1)
      expect(Array.isArray(draft.list)).toBe(true)
      expect([...draft.list].concat(draft.list)).toHaveLength(6)
    })
  })

  it("keeps the identity of a container while it moves within its array", () => {
    edit(document(), (draft) => {
      const second = draft.rows[1]
      const third = draft.rows[2]
      expect(draft.rows[1]).toBe(second)
      draft.rows.shift()
      expect(draft.rows[0]).toBe(second)
      expect(draft.rows.indexOf(third as Row)).toBe(1)
      draft.rows.unshift({ id: 8, state: { value: 8 } }, { id: 9, state: { value: 9 } })
      if (third !== undefined) third.state.value = 33
      expect(draft.rows[3]?.state.value).toBe(33)
    })
  })

  it("a container that was taken out can be edited, and changes the document no more", () => {
    const { value } = edit(document(), (draft) => {
      const taken = draft.rows.shift()
      const replaced = draft.map.a
      draft.map.a = { n: 5 }
      if (taken !== undefined) taken.state.value = 99
      if (replaced !== undefined) replaced.n = 98
      expect(taken?.state.value).toBe(99)
    })
    expect(JSON.stringify(value)).not.toMatch(/9[89]/)
  })

  it("assigns copies: neither what was assigned nor another part of the document changes with it", () => {
    const outside = { n: 1 }
    const { value } = edit(document(), (draft) => {
      draft.map.c = outside
      const a = draft.map.a
      if (a !== undefined) draft.map.d = a
      if (draft.map.d !== undefined) draft.map.d.n = 7
      outside.n = 50
    })
    expect(value.map).toEqual({ a: { n: 1 }, b: { n: 2 }, c: { n: 1 }, d: { n: 7 } })
  })

  it("gives values that later edits do not change", () => {
    const tracked = track(document())
    tracked.draft.map.c = { n: 1 }
    const first = tracked.flush()
    const text = JSON.stringify(first)
    if (tracked.draft.map.c !== undefined) tracked.draft.map.c.n = 2
    tracked.draft.rows.push({ id: 9, state: { value: 9 } })
    tracked.flush()
    expect(JSON.stringify(first)).toBe(text)
  })

  it("can be replaced whole", () => {
    const tracked = track<JsonObject>({ a: { x: 1 } })
    const inner = tracked.draft.a as { x: number }
    tracked.replace({ b: [1] })
    inner.x = 2
    const list = tracked.draft.b as Array<JsonValue>
    list.push(2)
    expect(tracked.flush()).toEqual({ value: { b: [1, 2] }, operations: [["replace", { b: [1, 2] }]] })
    expect(() => tracked.replace(JSON.parse("[]"))).toThrow(NotJson)
  })
})

describe("a draft refuses, naming the path, and stays as it was:", () => {
  // oxlint-disable-next-line typescript/no-explicit-any -- wrong on purpose, so types are out of the way
  type Anything = any
  const refused: ReadonlyArray<
    readonly [what: string, change: (draft: Anything) => void, path: ReadonlyArray<string | number>]
  > = [
    ["undefined", (draft) => void (draft.map.a.n = undefined), ["map", "a", "n"]],
    ["a function deep in a value", (draft) => void (draft.map.a = { n: 1, f: [() => 1] }), ["map", "a", "f", 0]],
    ["NaN in a push", (draft) => void draft.rows.push({ id: Number.NaN }), ["rows", 3, "id"]],
    ["an instance", (draft) => void (draft.map.a = new Date()), ["map", "a"]],
    ["a hole", (draft) => void (draft.rows[7] = 1), ["rows", 7]],
    ["a longer length", (draft) => void (draft.rows.length = 9), ["rows", "length"]],
    ["deleting an element", (draft) => void delete draft.rows[0], ["rows", 0]],
    ["a name in an array", (draft) => void (draft.rows.name = 1), ["rows", "name"]],
    ["`__proto__`", (draft) => void (draft.map.__proto__ = { x: 1 }), ["map", "__proto__"]],
    ["a definition", (draft) => void Object.defineProperty(draft.map, "x", { value: 1 }), ["map", "x"]],
    ["appending to a number", (draft) => append(draft.map.a, "n", "x"), ["map", "a", "n"]],
    ["truncating too much", (draft) => truncate(draft, "text", 4), ["text"]]
  ]

  it.each(refused)("%s", (_, change, path) => {
    const tracked = track(document())
    let error: unknown
    try {
      change(tracked.draft)
    } catch (caught) {
      error = caught
    }
    expect(error).toBeInstanceOf(NotJson)
    expect(error instanceof NotJson && error.path).toEqual(path)
    expect(tracked.flush()).toEqual({ value: document(), operations: [] })
  })

  it("being frozen", () => {
    expect(() => Object.freeze(track(document()).draft)).toThrow(NotJson)
  })
})

describe("a draft that has ended", () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  type Anything = any
  const uses: ReadonlyArray<
    readonly [what: string, use: (draft: Anything, row: Anything, rows: Anything, push: Anything) => unknown]
  > = [
    ["reading", (draft) => draft.text],
    ["reading something nested", (_, row) => row.id],
    ["writing", (draft) => void (draft.text = "x")],
    ["writing something nested", (_, row) => void (row.state = { value: 1 })],
    ["deleting", (draft) => delete draft.text],
    ["looking for a member", (draft) => "text" in draft],
    ["listing members", (draft) => Object.keys(draft)],
    ["a method taken before", (_, __, rows, push) => push.call(rows, 1)],
    ["encoding", (draft) => JSON.stringify(draft)],
    ["appending", (draft) => append(draft, "text", "x")],
    ["a snapshot", (_, row) => snapshot(row)],
    ["assigning it elsewhere", (_, row) => void (track<JsonObject>({}).draft.x = row)]
  ]

  it.each(uses)("refuses %s, and changes nothing", (_, use) => {
    const tracked = track(document())
    const { draft } = tracked
    const row = draft.rows[0]
    const rows = draft.rows
    const push = rows.push
    const { value } = tracked.flush()
    tracked.revoke()
    expect(() => use(draft, row, rows, push)).toThrow(DraftRevoked)
    expect(value).toEqual(document())
    expect(() => tracked.flush()).toThrow(DraftRevoked)
  })
})

// ---------------------------------------------------------------------------------------------------------- any edits

type Step = readonly [kind: number, at: number, key: string, value: JsonValue]

const containers = (draft: unknown, found: Array<object> = []): Array<object> => {
  if (typeof draft === "object" && draft !== null) {
    found.push(draft)
    for (const child of Object.values(draft)) containers(child, found)
  }
  return found
}

const isStrings = (value: object): value is Record<string, string> => !Array.isArray(value)

const copyOf = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** One edit somewhere in a document; the same function drives a draft and an ordinary object. */
const perform = (
  root: object,
  [kind, at, key, value]: Step,
  appendTo: (target: Record<string, string>, key: string, text: string) => void
): void => {
  const all = containers(root)
  const target = all[at % all.length]
  if (target === undefined) return
  // A part of the document itself is now and then what is assigned.
  const assigned: unknown = copyOf(kind % 11 === 0 ? all[(at * 7) % all.length] : value)
  if (Array.isArray(target)) {
    const list: Array<unknown> = target
    const index = list.length === 0 ? 0 : at % list.length
    switch (kind % 9) {
      case 0:
        return void list.push(assigned, copyOf(value))
      case 1:
        return void list.pop()
      case 2:
        return void list.shift()
      case 3:
        return void list.unshift(assigned)
      case 4:
        return void list.splice(index, kind % 3, assigned)
      case 5:
        return void (list.length = index)
      case 6:
        return void list.sort((left, right) => JSON.stringify(left) < JSON.stringify(right) ? -1 : 1)
      case 7:
        return void (list[list.length] = assigned)
      default:
        return void (list[index] = assigned)
    }
  }
  if (!isStrings(target)) return
  const own = Object.keys(target)
  const name = own[at % Math.max(own.length, 1)] ?? key
  switch (kind % 4) {
    case 0:
      return void delete target[name]
    case 1:
      return typeof target[name] === "string" ? appendTo(target, name, key) : undefined
    case 2:
      if (typeof target[name] === "string") target[name] = target[name].slice(kind % 3) + key
      return
    default:
      Object.assign(target, { [kind % 2 === 0 ? name : key]: assigned })
  }
}

describe("any sequence of edits", () => {
  const json = fc.jsonValue({ maxDepth: 3 }).map((value): JsonValue => JSON.parse(JSON.stringify(value)))
  const step: fc.Arbitrary<Step> = fc.tuple(
    fc.nat(1_000),
    fc.nat(1_000),
    fc.string({ maxLength: 4 }).filter((key) => key !== "__proto__"),
    json
  )
  const base = fc.record({
    a: json,
    list: fc.array(json, { maxLength: 5 }),
    text: fc.string(),
    o: fc.dictionary(fc.string({ maxLength: 3 }), json, { maxKeys: 4, noNullPrototype: true })
  })

  it("does what it does to an ordinary object, and a replica converges over every flush", () => {
    fc.assert(
      fc.property(base, fc.array(fc.tuple(step, fc.boolean()), { maxLength: 30 }), (start, steps) => {
        const plain = JSON.parse(JSON.stringify(start))
        const origin: JsonObject = JSON.parse(JSON.stringify(start))
        if (JSON.stringify(origin).includes("__proto__")) return
        const tracked = track(origin)
        const text = JSON.stringify(origin)
        let replica: JsonValue = JSON.parse(text)
        let value: JsonValue = origin
        for (const [one, flushes] of steps) {
          perform(plain, one, (target, key, added) => void (target[key] += added))
          perform(tracked.draft, one, append)
          if (!flushes) continue
          const flushed = tracked.flush()
          const before = JSON.stringify(value)
          replica = apply(replica, JSON.parse(JSON.stringify(flushed.operations)))
          expect(JSON.stringify(value)).toBe(before)
          value = flushed.value
        }
        const last = tracked.flush()
        replica = apply(replica, JSON.parse(JSON.stringify(last.operations)))
        expect(last.value).toEqual(plain)
        expect(replica).toEqual(plain)
        expect(JSON.stringify(origin)).toBe(text)
      }),
      { numRuns: 1_000 }
    )
  })
})
