/**
 * Keeps track of what the tools of one session, its sub-agents' included, do to files.
 *
 * A tool that names the files it writes is watched file by file: how each was before the call and after it. What a command
 * changes is found by looking at the work tree before and after, and only what changed while one ran counts as the
 * session's; a change at any other time is somebody else's. A look is taken when a command is about to run, after it and at
 * the end of a turn, but (except for the last) not before twenty times as long as the last one took has gone by, so that
 * looking stays well under a tenth of the time.
 *
 *     write:    began(before) ─────────────▶ change(before, after), ended
 *     command:  [look] began ──▶ ended ──▶ [look] change…, settled
 *
 * What is cut off by a crash is found in the journal and accounted for at the next opening, as uncertain. Nothing here fails:
 * what cannot be kept track of is said in the journal, and the call goes on. Where the wall clock was set back, times tell
 * nothing of who changed a file, and what changed between two looks is uncertain as well.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { type FileState, observe, sameState } from "./file-state.ts"
import type { Change, Journal, Marks } from "./journal.ts"
import type { KeptContent } from "./kept-content.ts"
import type { Difference, IgnoredChange, WorkTree } from "./work-tree.ts"

/** Where a look takes longer, none is taken any more. */
const longMillis = 4_000

/** How many times as long as the last look took goes by before the next one. */
const pauseFactor = 20

/** By how much the wall clock has to be set back to be noticed. */
const setBackMillis = 50

/** How many paths that git ignores are named for one look. */
const maxIgnoredNamed = 20

/** A stretch of time in which a command of a session ran. */
interface Command {
  readonly id: string
  readonly session: string
  readonly start: number
  end: number | null
  readonly marks: Marks
  readonly uncertain: boolean
}

interface Write {
  readonly id: string
  readonly path: string
  readonly before: FileState
  readonly marks: Marks
  /** Calls that write the file at the moment, by id. */
  readonly calls: Set<string>
}

/** What the trackers of a place tell each other, so that none takes another session's changes for its own. */
export interface Neighbourhood {
  readonly written: Map<string, { readonly by: Tracker; readonly state: FileState }>
  commands: ReadonlyArray<{ readonly by: Tracker; readonly command: Command }>
}

export const makeNeighbourhood = (): Neighbourhood => ({ written: new Map(), commands: [] })

const maxRemembered = 1_000

export interface TrackerParts {
  readonly journal: Journal
  readonly kept: KeptContent
  readonly tree: WorkTree
  readonly neighbourhood: Neighbourhood
  readonly maxFileBytes: number
  /** Bytes of all contents that are kept. */
  readonly maxKeptBytes: number
  /** Contents that somebody else needs. */
  readonly needed: () => Iterable<string>
}

export class Tracker {
  readonly journal: Journal
  readonly kept: KeptContent
  readonly #tree: WorkTree
  readonly #neighbourhood: Neighbourhood
  readonly #maxFileBytes: number
  readonly #maxKeptBytes: number
  readonly #needed: () => Iterable<string>
  readonly #line = Semaphore.makeUnsafe(1)
  readonly #writes = new Map<string, Write>()
  #commands: ReadonlyArray<Command> = []
  /** How writes have left files since the last look. */
  readonly #written = new Map<string, FileState>()
  #prepared = false
  /** Why commands cannot be seen here. */
  #blind: string | null = null
  #lookedAt = Number.NEGATIVE_INFINITY
  #lookMillis = 0
  /** Where the newest command ran. */
  #ranAt = ""
  /** Former contents that only the user's repository has, until they are copied. */
  readonly #owed = new Set<string>()
  /** What the wall clock says beside one that nobody sets. */
  #clockOffset = Date.now() - performance.now()
  #clockWentBack = false

  constructor(parts: TrackerParts) {
    this.journal = parts.journal
    this.kept = parts.kept
    this.#tree = parts.tree
    this.#neighbourhood = parts.neighbourhood
    this.#maxFileBytes = parts.maxFileBytes
    this.#maxKeptBytes = parts.maxKeptBytes
    this.#needed = parts.needed
  }

  /** One thing at a time. What goes wrong is for the log, and for whoever takes back: the call goes on. */
  #step(marks: Marks | null, step: () => Promise<void>): Effect.Effect<void> {
    return this.#line.withPermit(Effect.uninterruptible(Effect.promise(async () => {
      try {
        await step()
        return null
      } catch (error) {
        return error instanceof Error ? error.message : String(error)
      }
    }))).pipe(
      Effect.flatMap((why) =>
        why === null ? Effect.void : Effect.andThen(
          Effect.logWarning(`What a tool changes could not be kept track of: ${why}`),
          Effect.sync(() => marks === null ? undefined : this.#sayUnseen(marks, why))
        )
      )
    )
  }

  #sayUnseen(marks: Marks, why: string): void {
    try {
      this.journal.append({ type: "unseen", marks, why })
    } catch {
      // A disk without room: there is nothing left to say it in but the log.
    }
  }

  /** A call is about to write these files. */
  beginWrite(call: string, paths: ReadonlyArray<string>, marks: Marks): Effect.Effect<void> {
    return this.#step(marks, async () => {
      for (const path of new Set(paths)) {
        const open = this.#writes.get(path)
        if (open !== undefined) {
          open.calls.add(call)
          continue
        }
        const { changedAt, content, state } = await observe(path, this.#maxFileBytes)
        await this.#reconcile(path, state, changedAt)
        if (content !== null && state.type !== "absent" && state.type !== "unkept") {
          await this.kept.put(state.id, content)
        }
        const id = `${call} ${path}`
        this.journal.append({ type: "began", id, at: Date.now(), marks, path, before: state })
        this.#writes.set(path, { id, path, before: state, marks, calls: new Set([call]) })
      }
    })
  }

  /** A command that nobody has looked at since may have changed the file first. */
  async #reconcile(path: string, now: FileState, changedAt: number): Promise<void> {
    const was = this.#written.get(path) ?? this.#tree.known(path)
    if (was === undefined || sameState(was, now)) return
    await this.#attribute([{ path, before: was, after: now, changedAt }])
    this.#written.set(path, now)
  }

  /** A call that may change anything is about to run. */
  beginCommand(call: string, session: string, marks: Marks): Effect.Effect<void> {
    return this.#step(marks, async () => {
      if (!this.#prepared) await this.#prepare()
      if (this.#blind === null && (this.#tree.isCurrent ? this.#isDue() : true)) await this.#look()
      this.#sayRun(marks)
      if (this.#blind !== null) return this.#sayUnseen(marks, this.#blind)
      await this.#keepWritten()
      this.#checkClock()
      const start = this.journal.append({ type: "began", id: call, at: Date.now(), marks })
      const command: Command = { id: call, session, start, end: null, marks, uncertain: false }
      this.#commands = [...this.#commands, command]
      const { commands } = this.#neighbourhood
      this.#neighbourhood.commands = [...commands.slice(-maxRemembered), { by: this, command }]
    })
  }

  /** Once for each place. */
  #sayRun(marks: Marks): void {
    const place = JSON.stringify(marks)
    if (place !== this.#ranAt) this.journal.append({ type: "ran", marks })
    this.#ranAt = place
  }

  /** Contents that calls have written and the command may change next. */
  async #keepWritten(): Promise<void> {
    for (const [path, written] of this.#written) {
      if (!("id" in written) || this.kept.has(written.id)) continue
      const { content, state } = await observe(path, this.#maxFileBytes)
      if (content !== null && "id" in state) await this.kept.put(state.id, content)
      // Somebody else was here since.
      if (!sameState(state, written)) this.#written.set(path, state)
    }
  }

  #checkClock(): void {
    const offset = Date.now() - performance.now()
    if (offset < this.#clockOffset - setBackMillis) this.#clockWentBack = true
    this.#clockOffset = offset
  }

  /** A call has ended; one that left processes running may still change something until the turn ends. */
  end(call: string, options: { readonly leavesRunning: boolean }): Effect.Effect<void> {
    return this.#step(null, async () => {
      for (const write of this.#writes.values()) {
        if (write.calls.delete(call) && write.calls.size === 0) await this.#endWrite(write)
      }
      if (!options.leavesRunning) this.#endCommands((command) => command.id === call)
    })
  }

  async #endWrite({ before, id, marks, path }: Write): Promise<void> {
    this.#writes.delete(path)
    const { state } = await observe(path, this.#maxFileBytes)
    const ended = { type: "ended" as const, id, at: Date.now() }
    if (sameState(before, state)) {
      this.journal.append(ended)
      return
    }
    this.#written.set(path, state)
    const { written } = this.#neighbourhood
    written.delete(path)
    written.set(path, { by: this, state })
    for (const oldest of written.keys()) {
      if (written.size <= maxRemembered) break
      written.delete(oldest)
    }
    this.journal.append({ type: "change", path, before, after: state, marks }, ended)
  }

  #endCommands(which: (command: Command) => boolean): void {
    for (const command of this.#commands) {
      if (command.end !== null || !which(command)) continue
      command.end = this.journal.append({ type: "ended", id: command.id, at: Date.now() })
    }
  }

  /** A look between two steps of a turn, if it is time. */
  get lookIfDue(): Effect.Effect<void> {
    return this.#step(null, async () => {
      if (this.#commands.length > 0 && this.#isDue()) await this.#look()
    })
  }

  /** Nothing of a session runs any more: what its calls have changed is accounted for. */
  settle(session: string | null): Effect.Effect<void> {
    return this.#step(null, async () => {
      if (session === null) { for (const write of this.#writes.values()) await this.#endWrite(write) }
      this.#endCommands((command) => session === null || command.session === session)
      if (this.#commands.length > 0) await this.#look()
      await this.#makeRoom()
    })
  }

  /** Removes what is not needed any more once much has been kept. */
  async #makeRoom(): Promise<void> {
    if (this.kept.written < this.#maxKeptBytes / 4) return
    this.kept.written = 0
    const needed = new Set(this.#needed())
    for (const state of this.#written.values()) if ("id" in state) needed.add(state.id)
    for (const { before } of this.#writes.values()) if ("id" in before) needed.add(before.id)
    await collect(this, this.#maxKeptBytes, needed)
  }

  #isDue(): boolean {
    return performance.now() - this.#lookedAt >= pauseFactor * this.#lookMillis
  }

  async #prepare(): Promise<void> {
    this.#prepared = true
    const start = performance.now()
    const why = await this.#tree.prepare(AbortSignal.timeout(longMillis))
    if (why !== null) this.#blind = why
    else if (this.#tree.isCurrent) {
      this.#lookedAt = performance.now()
      // A look takes about half as long as beginning does.
      this.#lookMillis = (this.#lookedAt - start) / 2
    }
  }

  async #look(): Promise<void> {
    const start = performance.now()
    this.#checkClock()
    const { differences, ignored } = await this.#tree.look().catch((error: unknown) => {
      // Somebody may have removed the private folder; the next command has it made anew.
      this.#prepared = false
      throw error
    })
    await this.#attribute(
      differences.filter(({ path }) => !this.#writes.has(path)).map((difference) => ({
        ...difference,
        before: this.#written.get(difference.path) ?? difference.before
      }))
    )
    this.#attributeIgnored(ignored)
    this.#tree.isCurrent = true
    this.#clockWentBack = false
    this.#written.clear()
    const open = this.#commands.filter(({ end }) => end === null)
    if (this.#commands.length > 0) this.journal.append({ type: "settled", open: open.map(({ id }) => id) })
    this.#commands = open
    this.#lookedAt = performance.now()
    // The first look of a process warms caches; a single slow one should not blind for long.
    const took = this.#lookedAt - start
    this.#lookMillis = this.#lookMillis === 0 ? took : (this.#lookMillis + took) / 2
    if (this.#lookMillis > longMillis) this.#blind = "looking through it takes too long"
    await this.#tree.tidy()
  }

  /** What is not kept is at least named. */
  #attributeIgnored(changes: ReadonlyArray<IgnoredChange>): void {
    const paths = new Map<Marks, Array<string>>()
    for (const { changedAt, path } of changes) {
      const command = this.#commandAt(changedAt, false)
      const named = command === undefined ? undefined : paths.get(command.marks)
      if (named !== undefined) named.push(path)
      else if (command !== undefined) paths.set(command.marks, [path])
    }
    for (const [marks, named] of paths) {
      const said = this.journal.ignoredSince(marks)
      const fresh = named.filter((path) => !said.has(path)).slice(0, maxIgnoredNamed)
      if (fresh.length > 0) this.journal.append({ type: "ignored", marks, paths: fresh })
    }
  }

  /** Records what was changed while a command ran. */
  async #attribute(differences: ReadonlyArray<Difference>): Promise<void> {
    const changes: Array<Change> = []
    for (const { after, before, changedAt, path } of differences) {
      if (sameState(before, after)) continue
      const neighbour = this.#neighbourhood.written.get(path)
      if (neighbour !== undefined && neighbour.by !== this && sameState(neighbour.state, after)) continue
      const command = this.#commandAt(changedAt, after.type === "absent")
      if (command === undefined) continue
      const isAmbiguous = this.#neighbourhood.commands.some(({ by, command: other }) =>
        by !== this && isWithin(other, changedAt)
      )
      changes.push({
        type: "change",
        path,
        before: before.type === "absent" ? await absentBefore(path, command.start) : before,
        after,
        marks: command.marks,
        ...(command.uncertain || isAmbiguous || this.#clockWentBack ? { uncertain: true } : {})
      })
    }
    if (changes.length === 0) return
    await this.#keepBefore(changes)
    this.journal.append(...changes)
  }

  /** What is gone has no time of its own, and its folder only that of the last change in it. */
  #commandAt(changedAt: number, isGone: boolean): Command | undefined {
    return this.#commands.findLast((command) => isGone ? changedAt >= command.start : isWithin(command, changedAt)) ??
      (this.#clockWentBack ? this.#commands.at(-1) : undefined)
  }

  /** Keeps the former contents; those that git has are copied when there is time. */
  async #keepBefore(changes: ReadonlyArray<Change>): Promise<void> {
    for (const { before } of changes) {
      if (before.type !== "file" && before.type !== "link" || this.kept.has(before.id)) continue
      const content = await this.#tree.content(before.id)
      if (content === null) this.#owed.add(before.id)
      else await this.kept.put(before.id, content)
    }
  }

  /** Copies what only the user's repository has: that may lose it. What it has lost already cannot be put back. */
  get keepOwed(): Effect.Effect<void> {
    return this.#step(null, async () => {
      const owed = [...this.#owed].filter((id) => !this.kept.has(id))
      this.#owed.clear()
      for (const [id, content] of owed.length === 0 ? [] : await this.#tree.contentsOfGit(owed)) {
        await this.kept.put(id, content)
      }
    })
  }

  /** Accounts for what a process that is gone had begun. */
  get recover(): Effect.Effect<void> {
    return this.#step(null, async () => {
      this.journal.tidy()
      const unfinished = this.journal.unfinished
      for (const { before, id, marks, path } of unfinished) {
        if (path === null || before === null) continue
        const { state } = await observe(path, this.#maxFileBytes)
        const ended = { type: "ended" as const, id, at: Date.now() }
        this.journal.append(
          ...(sameState(before, state)
            ? []
            : [{ type: "change" as const, path, before, after: state, marks, uncertain: true }]),
          ended
        )
      }
      for (const { before } of this.journal.changes) if ("id" in before) this.#owed.add(before.id)
      const now = Date.now()
      this.#commands = unfinished.flatMap(({ end, id, marks, path, start }): ReadonlyArray<Command> =>
        path !== null
          ? []
          // An end that lies ahead: the clock was set back, and times tell nothing.
          : [{ id, session: "", start, end: end ?? now, marks, uncertain: end === null || end > now }]
      )
      if (this.#commands.length === 0) return
      for (const { end, id } of unfinished) {
        if (end === null) this.journal.append({ type: "ended", id, at: now })
      }
      await this.#prepare()
      if (this.#blind === null) await this.#look()
    })
  }
}

const isWithin = (command: Command, time: number): boolean =>
  time >= command.start && (command.end === null || time <= command.end)

/** That there was nothing, below the nearest folder that is older than the command. */
const absentBefore = async (path: string, start: number): Promise<FileState> => {
  for (let folder = NodePath.dirname(path);; folder = NodePath.dirname(folder)) {
    const stats = await FileSystem.stat(folder).catch(() => null)
    const isOlder = stats !== null && (stats.birthtimeMs === 0 || stats.birthtimeMs < start)
    if (isOlder || folder === NodePath.dirname(folder)) return { type: "absent", below: folder }
  }
}

/** Makes room: forgets the oldest changes until what the others need is below `maxBytes`, and removes the rest. */
export const collect = async (
  { journal, kept }: Pick<Tracker, "journal" | "kept">,
  maxBytes: number,
  alsoNeeded: ReadonlySet<string>
): Promise<void> => {
  const sizes = new Map((await kept.list()).map(({ bytes, id }) => [id, bytes]))
  const idsOf = (change: Change): ReadonlyArray<string> =>
    [change.before, change.after].flatMap((state) => state.type === "file" || state.type === "link" ? [state.id] : [])
  const needed = new Set(alsoNeeded)
  let bytes = 0
  for (const id of needed) bytes += sizes.get(id) ?? 0
  let oldest = journal.lines.length
  for (; oldest > 0; oldest--) {
    const line = journal.lines[oldest - 1]
    for (const id of line?.type === "change" ? idsOf(line) : []) {
      if (needed.has(id)) continue
      needed.add(id)
      bytes += sizes.get(id) ?? 0
    }
    if (bytes > maxBytes) break
  }
  const forgotten = journal.lines.slice(0, oldest)
  if (forgotten.length > 0) {
    const marks: { [session: string]: number } = {}
    for (const line of forgotten) {
      if (line.type !== "change" && line.type !== "forgotten") continue
      for (const [session, mark] of Object.entries(line.marks)) marks[session] = Math.max(mark, marks[session] ?? -1)
    }
    journal.replace([{ type: "forgotten", marks }, ...journal.lines.slice(oldest)])
    needed.clear()
    for (const id of alsoNeeded) needed.add(id)
    for (const line of journal.lines) if (line.type === "change") { for (const id of idsOf(line)) needed.add(id) }
  }
  await kept.collect(needed)
}
