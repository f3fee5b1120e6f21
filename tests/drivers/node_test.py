#!/usr/bin/env python3
"""node_test.py - what the driver for JavaScript and TypeScript promises."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Dead, Skip, Talk, driver, has, is_, need, report, run_tests  # noqa: E402


def node(*words, language="javascript"):
    need("node")
    t = Talk("/usr/bin/env", "node", driver("node.js"), *words)
    try:
        is_(t.ready()["language"], language)
    except Dead:
        t.drain()
        t.__exit__()
        if b"TypeScript is not installed" in t.cell.err:
            raise Skip("no typescript")
        raise
    return t


def typescript():
    return node("typescript", language="typescript")


def values_and_output_are_reported_separately():
    with node() as t:
        is_(t.run("1 + 1").text, "2")
        cell = t.run("console.log('out'); console.error('err')")
        is_((cell.out, cell.err, cell.result), (b"out\n", b"err\n", None))
        is_(t.run("({ a: [1, 'x'] })").text, "{ a: [ 1, 'x' ] }")
        is_(t.run("'text'").text, "'text'")
        is_(t.run("10n ** 20n").text, "100000000000000000000n")
        is_(t.run("let y = 5").result, None)
        is_(t.run("").status, "ok")


def names_are_kept_and_may_be_declared_again():
    with node() as t:
        t.run("let a = 1; const b = 2; function f() { return a + b } class C {}")
        t.run("const a = 10; class C { x = 1 }")
        is_(t.run("f() + new C().x").text, "13")
        for code in ("function a() { return 7 }", "class a {}", "var a = 7", "let a = 7", "const f = () => 7",
                     "var f = 7", "for (const a of [1]); const f = 3, g = 4"):
            is_((t.run(code).status, code), ("ok", code))
        is_(t.run("const fs = [() => 1]\nfor (let i = 0; i < 2; i++) fs.push(() => i)\nfs.map((f) => f())").text, "[ 1, 0, 1 ]")
        is_(t.run("5").text, "5")
        is_(t.run("_ + 1").text, "6")


def await_works_at_the_top():
    with node() as t:
        is_(t.run("const v = await new Promise((r) => setTimeout(() => r(7), 5)); v").text, "7")
        is_(t.run("v").text, "7")
        e = t.run("async function f() { await 1; throw new Error('deep') }\nawait f()").error
        is_([(f["file"], f["line"]) for f in e["frames"]], [("<cell 3>", 2), ("<cell 3>", 1)])


def modules_come_by_require_and_import():
    with open("beside.mjs", "w") as f:
        f.write("export default 3; export const named = 4;\n")
    with node() as t:
        is_(t.run("require('path').join('a', 'b')").text, "'a/b'")
        is_(t.run("import d, { named as n } from './beside.mjs'\nimport * as all from './beside.mjs'\n[d, n, all.named]").text, "[ 3, 4, 4 ]")
        is_(t.run("(await import('./beside.mjs')).default").text, "3")
        is_(t.run("`${`import('x')`} import(` + /import(.)/.source + 'import(1)'").text, '''"import('x') import(import(.)import(1)"''')
        is_(t.run("import nothing from './missing.mjs'").status, "error")


def an_error_has_the_frames_of_the_user_only():
    with node() as t:
        e = t.run("function f() {\n  null.x\n}\nf()").error
        is_(e["name"], "TypeError")
        is_(e["frames"], [{"file": "<cell 1>", "line": 4, "name": "<cell>", "text": "f()"},
                          {"file": "<cell 1>", "line": 2, "name": "f", "text": "null.x"}])
        assert "node.js" not in e["text"] and "node:" not in e["text"], e["text"]
        e = t.run("let x = 1\nfunction f(:").error
        is_((e["name"], e["frames"][0]["line"]), ("SyntaxError", 2))
        has(e["text"], "function f(:\n           ^\n")
        is_(t.run("throw 'text'").error["value"], "text")
        is_(t.run("throw undefined").error["name"], "Uncaught")
        is_(t.run("({ get stack() { throw 1 }, [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('no') } })").error["value"], "no")


def an_exit_is_an_error_and_late_errors_are_reported():
    with node() as t:
        is_(t.run("process.exit(3)").error["name"], "SystemExit")
        t.run("setTimeout(() => { throw new Error('late') }, 0); Promise.reject(new Error('lost')); 1")
        cell = t.run("await new Promise((r) => setTimeout(r, 20))")
        is_(t.run("2").text, "2")
        try:
            t.run("process.kill(process.pid, 'SIGKILL')")
            raise AssertionError("it lives")
        except Dead as status:
            is_(status.args[0], -9)


def a_busy_or_waiting_cell_is_interrupted():
    with node() as t:
        t.run("let kept = 5")
        for code in ("console.log('began'); while (true);",
                     "setTimeout(() => console.log('began'), 1); await new Promise(() => {})",
                     "require('child_process').execSync('echo began; sleep 100', { stdio: 'inherit' })"):
            cell, seconds = t.interrupted(code, sleeps="sleep" in code)
            # A command that the interrupt has ended may be noticed before the interrupt itself is.
            has(("interrupted", "error") if "execSync" in code else ("interrupted",), cell.status)
            assert seconds < 2, seconds
        t.interrupt()
        t.asleep()
        is_(t.run("kept").text, "5")


def no_interrupt_kills_the_driver():
    with node() as t:
        for _ in range(100):
            t.start("1 + 1")
            t.interrupt()
            has(("ok", "interrupted"), t.finish().status)
            t.interrupt()
        t.run("1")  # the last one may still hit this cell
        is_(t.run("2").text, "2")


def display_and_prompt_speak_on_the_channel():
    with node() as t:
        cell = t.run("display({ 'text/html': '<b>' }, { raw: true }); display(3); 4")
        is_([(r["main"], r["data"]) for r in cell.all("result")], [
            (False, {"text/html": "<b>"}), (False, {"text/plain": "3"}), (True, {"text/plain": "4"})])
        is_(t.run("({ [Symbol.for('Jupyter.display')]() { return { 'text/markdown': '*' } }, toString: null })").result["data"]["text/markdown"], "*")
        t.start("prompt('name? ') + '!'")
        is_(t.until("input")["prompt"], "name? ")
        t.send(op="input", id=str(t.number), text="A")
        is_(t.finish().text, "'A!'")


def env_of_a_cell_ends_with_it():
    with node() as t:
        is_(t.run("process.env.A", {"A": "1"}).text, "'1'")
        is_(t.run("process.env.A").result, None)


def odd_text_and_much_of_it_arrive():
    with node() as t:
        is_(t.run("'\u00fc\U0001f600'").text, "'\u00fc\U0001f600'")
        is_(t.run("console.log('\u00fc')").out, "\u00fc\n".encode())
        is_(t.run("throw new Error('\\ud800\\0')").error["value"], "\\ud800\\x00")
        is_(len(t.run("console.log('x'.repeat(20_000_000))").out), 20_000_001)
        r = t.run("'x'.repeat(5_000_000)").result
        assert len(r["data"]["text/plain"]) <= 1 << 20
        is_(t.run("display({ 'text/html': 'x'.repeat(17 << 20), 'text/plain': 'p' }, { raw: true })").all("result")[0]["truncated"], ["text/html"])
        is_(t.run("//" + "y" * (20 << 20)).error["name"], "CellTooLarge")
        t.channel.sendall(b"nothing\n{}\n[1]\n")
        is_(t.run("3").text, "3")


def typescript_is_checked_and_run():
    with typescript() as t:
        is_(t.run("interface P { a: number }\nlet p: P = { a: 3 }\np.a").text, "3")
        e = t.run("1\np.a = 'text'").error
        is_((e["name"], e["frames"][0]["line"]), ("TypeScriptError", 2))
        has(e["text"], "not assignable")
        is_(t.run("let p: string = 'again'\np").text, "'again'")
        is_(t.run("const x: = 1").error["name"], "TypeScriptError")
        is_(t.run("type T = P\n\n\nthrow new Error('line')").error["frames"][0]["line"], 4)
        is_(t.run("import { join } from 'path'").status, "ok")
        is_(t.run("await Promise.resolve(join('a', 'b'))").text, "'a/b'")
        cell, _ = t.interrupted("console.log('began'); while (true);")
        is_(cell.status, "interrupted")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
