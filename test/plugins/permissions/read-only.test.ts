import { changesOf, mayChange, type PermissionRules, unknownToOnlyRead } from "@bezel/plugins/permissions"
import { describe, expect, it } from "@effect/vitest"

const reasons = (command: string) => mayChange({ access: "bash", subjects: [command] })

describe("a conversation that only reads", () => {
  it.each([
    "ls -la src | head -20",
    "cd packages && grep -rn 'x' . | wc -l",
    "find . -name '*.ts' -exec grep -l foo {} +",
    "find . -type f | xargs wc -l",
    "git status; git log --oneline -5; git diff HEAD~1 -- src",
    "git -C packages --no-pager show HEAD:README.md",
    "git branch -a && git tag -l 'v*' && git remote -v && git stash list",
    "cat a.txt 2>/dev/null > /dev/null",
    "sed -n '10,20p' src/a.ts",
    "awk -F: '{ print $1 }' /etc/passwd",
    "LC_ALL=C sort -u names | uniq -c",
    "timeout 5 rg -n 'foo|bar' src",
    'for f in *.ts; do wc -l "$f"; done',
    'echo "$(git rev-parse HEAD)"',
    "bash -c 'cat a | tail -1'",
    "command -v node",
    "/usr/bin/ls",
    "date +%s",
    ""
  ])("may run %s", (command) => {
    expect(reasons(command)).toEqual([])
  })

  it.each([
    "rm x",
    "ls > out",
    "ls | tee out",
    "cat a >> b",
    "touch a",
    "git commit -m x",
    "git branch -D main",
    "git branch new",
    "git tag v1",
    "git stash",
    "git config user.name x",
    "git diff --output=x",
    "git diff --outp=x",
    "git log $X",
    "git grep -Ovim foo",
    "git -c core.pager=evil log",
    "git remote add a b",
    "git reflog expire --all",
    "GIT_PAGER=evil git log",
    "PATH=. ls",
    "find . -delete",
    "find . -exec rm {} ;",
    "find . -fprint out",
    "find . | xargs rm",
    "sort -o out in",
    "sort -uo out in",
    "sort --compress-program=evil in",
    "sort $X",
    "uniq in out",
    "tree -o out",
    "sed -i s/a/b/ x",
    "sed -n 'w out' x",
    "sed s/a/b/e x",
    "awk '{ print > \"out\" }' x",
    "awk 'BEGIN { system(\"rm x\") }'",
    "awk -f script x",
    "rg --pre evil x",
    "printf -v PATH .",
    "date -s tomorrow",
    "date 01010101",
    "npm test",
    "node -e 'x'",
    "bash script.sh",
    "bash -c 'rm x'",
    "sudo ls",
    "eval rm x",
    "$CMD x",
    "./ls",
    "/tmp/cat x",
    "echo $(rm x)",
    "echo `rm x`",
    "ls() { rm x; }; ls",
    "alias ls='rm x'",
    "cat <(rm x)",
    "export PATH=.",
    "ls; curl -o a http://x",
    "cat 'unclosed"
  ])("may not run %s", (command) => {
    expect(reasons(command)).not.toEqual([])
  })

  it("has no tool that writes, and others as before", () => {
    expect(mayChange({ access: "write", subjects: ["/a"] })).toEqual(["write changes files"])
    expect(mayChange({ access: "edit", subjects: ["/a"] })).toEqual(["edit changes files"])
    for (const access of ["read", "search", "list", "question", "subagent"]) {
      expect(mayChange({ access, subjects: ["/a"] })).toEqual([])
    }
  })

  it("is told which part of a command line is refused", () => {
    expect(reasons("ls && FOO=1 rm x > y")).toEqual([
      'a redirection would write "y"',
      'the command "FOO=1 rm x" is not known to only read'
    ])
  })
})

describe("tools that are none of Bezel's own", () => {
  const tools = [
    { name: "files_write", plugin: "bezel.mcp", namesAccess: false },
    { name: "files_read", plugin: "bezel.mcp", namesAccess: true },
    { name: "read_mcp_resource", plugin: "bezel.mcp", namesAccess: false },
    { name: "own", plugin: "somebody", namesAccess: false },
    { name: "lookup", plugin: "somebody", namesAccess: true },
    { name: "editor", plugin: "bezel.client-tools", namesAccess: false },
    { name: "todo", plugin: "bezel.todo", namesAccess: false }
  ]

  it("are not known to only read, except for those that the agent's own rules allow whole", () => {
    const unknown = ["files_write", "files_read", "own", "editor"]
    expect(unknownToOnlyRead(tools, {})).toEqual(unknown)
    expect(
      unknownToOnlyRead(tools, { files_read: "allow", own: "allow", files_write: { x: "allow" }, "*": "allow" })
    ).toEqual(["files_write", "editor"])
    expect(unknownToOnlyRead(tools, { "files_*": "ask" })).toEqual(unknown)
  })

  it.each<readonly [name: string, access: string, subject: string, rules: PermissionRules, reason: string | null]>([
    ["files_write", "files_write", "", {}, "the tool files_write of an MCP server may change anything"],
    ["files_read", "read", "/a", {}, "the tool files_read of an MCP server may change anything"],
    ["read_mcp_resource", "read_mcp_resource", "", {}, null],
    ["own", "own", "", {}, "the tool own of the plugin somebody may change anything"],
    ["own", "own", "", { own: "allow" }, null],
    ["lookup", "read", "/a", {}, null],
    ["lookup", "ticket", "SHOP-1", {}, "the tool lookup of the plugin somebody may change anything"],
    ["lookup", "ticket", "SHOP-1", { ticket: "allow" }, "the tool lookup of the plugin somebody may change anything"],
    ["lookup", "ticket", "SHOP-1", { "look*": "allow" }, null],
    ["lookup", "write", "/a", { lookup: "allow" }, "write changes files"],
    ["lookup", "bash", "ls", {}, null],
    ["lookup", "bash", "rm a", {}, 'the command "rm a" is not known to only read'],
    ["editor", "editor", "", {}, "the tool editor of a client may change anything"],
    ["todo", "todo", "", {}, null]
  ])("may call %s with access %s to %j under %j only if that only reads", (name, access, subject, rules, reason) => {
    const call = { name, permission: { access, subjects: [subject] } }
    expect(changesOf(call, tools, rules)).toEqual(reason === null ? [] : [reason])
  })
})
