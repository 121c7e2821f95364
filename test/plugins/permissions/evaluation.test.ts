/** Bash runs the commands in the subscript of a value that it evaluates, wherever the value is from; so such a line is asked. */
import { compileRules, decide, type PermissionRules } from "@bezel/plugins/permissions"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { mayChange } from "../../../packages/plugins/src/permissions/read-only.ts"

const verdict = (bash: PermissionRules[string], line: string) =>
  decide(Result.getOrThrow(compileRules({ bash }, { location: "/work/project", home: "/home/ada" })), {
    access: "bash",
    subjects: [line]
  }, { yes: false, probe: { real: (file) => file, exists: () => false } }).verdict

const reading = Object.fromEntries(
  ["[ *", "bash *", "cat *", "echo *", "f", "printf *", "read *", "set *", "test *", "true"].map((pattern) =>
    [pattern, "allow"] as const
  )
)
const open = { "*": "allow", "rm *": "deny" } as const

/** A value whose evaluation runs `rm x`. */
const hostile = "'a[$(rm x)]'"

describe("a value that is known only when it runs", () => {
  for (
    const line of [
      `echo $(( $(echo ${hostile}) ))`,
      "echo $[$(cat f)]",
      "echo $((`cat f`))",
      "(( $(cat f) ))",
      "for ((i=$(cat f);i<1;i++)); do true; done",
      "[[ $(cat f) -eq 1 ]]",
      "[[ 1 -lt $(cat f) ]]",
      `[[ ${hostile} -eq 1 ]]`,
      "[[ -v $(cat f) ]]",
      "echo ${x:$(cat f):1}",
      "echo ${a[$(cat f)]}",
      "a[$(cat f)]=1; true",
      "a=([$(cat f)]=1); true",
      "n=$(cat f); echo $((n))",
      "n=$(cat f); m=$n; echo $((m + 1))",
      "n=$(cat f); echo ${!n}",
      "n=$(cat f); [[ n -eq 1 ]]",
      "n=$(cat f); echo ${a[n]}",
      `for n in ${hostile}; do echo $((n)); done`,
      "for n in *; do echo $((n)); done",
      "n=$'a[\\x24(rm x)]'; echo $((n))",
      `echo \${n:=${hostile}} $((n))`,
      "read n < f; echo $((n))",
      "while read n; do echo $((n)); done < f",
      `printf -v n %s ${hostile}; echo $((n))`,
      `set -- ${hostile}; echo $(($1))`,
      `set -- ${hostile}; n=$1; echo $((n))`,
      `echo ${hostile}; echo $((_))`,
      "[[ $(cat f) =~ .* ]]; echo $((BASH_REMATCH))",
      `bash -c 'echo $(($1))' _ ${hostile}`,
      `test -v ${hostile}`,
      `[ -v ${hostile} ]`,
      `builtin test -v ${hostile}`,
      "[ $(cat f) ]",
      `[ "$(cat f)" ${hostile} ]`,
      `printf -v ${hostile} x`,
      `read ${hostile}`
    ]
  ) {
    it(`is not evaluated unasked, nor by who only reads: ${line}`, () => {
      expect(verdict(reading, line)).not.toBe("allow")
      expect(verdict(open, line)).not.toBe("allow")
      expect(mayChange({ access: "bash", subjects: [line] })).not.toEqual([])
    })
  }

  for (
    const line of [
      `let ${hostile}=1`,
      `declare ${hostile}=1`,
      `declare -i n=${hostile}`,
      `unset ${hostile}`,
      "export $(cat f)",
      `env n=${hostile} bash -c 'echo $((n))'`
    ]
  ) {
    it(`is not evaluated past a deny: ${line}`, () => expect(verdict(open, line)).not.toBe("allow"))
  }
})

describe("what counts is not asked about", () => {
  for (
    const line of [
      "echo $((1 + 2 * (3 - 1)))",
      "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i + 1)); done",
      "for i in {1..3}; do echo $((i * 2)); done",
      "for ((i = 0; i < 3; i++)); do echo $i; done",
      'n=0; for f in *.ts; do echo "$f"; ((n++)); done; echo $n',
      'x=$(cat f); echo "$x"',
      'x=$(cat f); [ "$x" = y ] && echo same',
      '[ -z "$(cat f)" ] && echo empty',
      "[ $? -eq 0 ] && echo fine",
      "[[ $# -gt 1 && -f x ]] || true",
      "x=abc; echo ${x:1:2} ${#x}",
      "a=(1 2 3); i=1; echo ${a[i]} ${a[@]} $((${#a[@]} - 1))",
      "for i in 1 2; do [[ $((i % 2)) -eq 0 ]] && echo $i; done",
      'while read line; do echo "$line"; done < f',
      "test -f x && [ -d y ] && echo $((COLUMNS - 1))"
    ]
  ) {
    it(line, () => expect(verdict(reading, line)).toBe("allow"))
  }
})

describe("a denied command is not reached", () => {
  for (
    const line of [
      "env A.b=c rm x",
      "env 1=c rm x",
      "env -S 'rm\\_x'",
      "prlimit rm x",
      "setarch -R rm x",
      "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
      "sg root -c 'rm x'",
      "ssh-agent rm x",
      "choom -n 0 -- rm x",
      "jobs -x rm x",
      "mapfile -C 'rm x #' -c 1 < f",
      "compgen -C 'rm x' y",
      "hash -p /bin/rm y; y x",
      "bash <(echo rm x)",
      "source /dev/stdin <<< 'rm x'",
      ". /dev/stdin <<E\nrm x\nE",
      "bash /dev/stdin <<< 'rm x'",
      "cat f | source /proc/self/fd/0",
      "BASH_ALIASES[y]='rm x'; y",
      "PS4='$(rm x)'; set -x; true",
      "BASH_ENV=f bash -c true",
      "env BASH_ENV=f bash -c true"
    ]
  ) {
    it(`in another way than by its name: ${JSON.stringify(line)}`, () => expect(verdict(open, line)).not.toBe("allow"))
  }
})
