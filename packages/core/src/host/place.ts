/**
 * What facets do with the files and processes of their location, over Effect's own services for Node.
 *
 * Loaded when a facet first asks. Paths that are not absolute are below the location's directory, never below the working
 * directory of this process, which may be another. A process that does not end when it is told to is killed.
 */
import * as NodeChildProcessSpawner from "@effect/platform-node/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import * as path from "node:path"

/** How long a process may take to end in order. */
const patience = "5 seconds"

/** The same file system, seen from a directory. */
const seenFrom = (directory: string, files: FileSystem.FileSystem): FileSystem.FileSystem => {
  const at = (file: string) => path.resolve(directory, file)
  const temporary = <Options extends { readonly directory?: string | undefined }>(options: Options | undefined) =>
    options?.directory === undefined ? options : { ...options, directory: at(options.directory) }
  return FileSystem.make({
    access: (file, options) => files.access(at(file), options),
    copy: (from, to, options) => files.copy(at(from), at(to), options),
    copyFile: (from, to) => files.copyFile(at(from), at(to)),
    chmod: (file, mode) => files.chmod(at(file), mode),
    chown: (file, user, group) => files.chown(at(file), user, group),
    link: (from, to) => files.link(at(from), at(to)),
    lstat: (file) => files.lstat(at(file)),
    makeDirectory: (file, options) => files.makeDirectory(at(file), options),
    makeTempDirectory: (options) => files.makeTempDirectory(temporary(options)),
    makeTempDirectoryScoped: (options) => files.makeTempDirectoryScoped(temporary(options)),
    makeTempFile: (options) => files.makeTempFile(temporary(options)),
    makeTempFileScoped: (options) => files.makeTempFileScoped(temporary(options)),
    open: (file, options) => files.open(at(file), options),
    readDirectory: (file, options) => files.readDirectory(at(file), options),
    readDirectoryEntries: (file) => files.readDirectoryEntries(at(file)),
    readFile: (file) => files.readFile(at(file)),
    readLink: (file) => files.readLink(at(file)),
    realPath: (file) => files.realPath(at(file)),
    remove: (file, options) => files.remove(at(file), options),
    rename: (from, to) => files.rename(at(from), at(to)),
    stat: (file) => files.stat(at(file)),
    // What a link says is of the link's own folder.
    symlink: (from, to) => files.symlink(from, at(to)),
    truncate: (file, length) => files.truncate(at(file), length),
    utimes: (file, accessed, modified) => files.utimes(at(file), accessed, modified),
    watch: (file, options) => files.watch(at(file), options),
    writeFile: (file, data, options) => files.writeFile(at(file), data, options)
  })
}

/** Each command of a pipeline starts in the directory, unless it says where. */
const startedIn = (directory: string, command: ChildProcess.Command): ChildProcess.Command =>
  command._tag === "PipedCommand"
    ? ChildProcess.pipeTo(startedIn(directory, command.left), startedIn(directory, command.right), command.options)
    : ChildProcess.make(command.command, command.args, {
      forceKillAfter: patience,
      ...command.options,
      cwd: path.resolve(directory, command.options.cwd ?? ".")
    })

export interface Place {
  readonly files: FileSystem.FileSystem
  readonly spawn: (
    command: ChildProcess.Command
  ) => ReturnType<ChildProcessSpawner.ChildProcessSpawner["Service"]["spawn"]>
}

/** For the length of the scope. */
export const makePlace = (directory: string): Effect.Effect<Place, never, Scope.Scope> =>
  Effect.map(
    Layer.build(
      NodeChildProcessSpawner.layer.pipe(Layer.provideMerge(NodeFileSystem.layer), Layer.provide(NodePath.layer))
    ),
    (services) => ({
      files: seenFrom(directory, Context.get(services, FileSystem.FileSystem)),
      spawn: (command) =>
        Context.get(services, ChildProcessSpawner.ChildProcessSpawner).spawn(startedIn(directory, command))
    })
  )
