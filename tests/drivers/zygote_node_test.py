#!/usr/bin/env python3
"""zygote_node_test.py - a program in a warm node behaves as in a node that was started for it."""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Talk, driver, has, is_, need, report, run_tests  # noqa: E402

NODE = "/usr/bin/node"
ENV = {"PATH": os.environ["PATH"], "HOME": "/", "ONLY": "this"}


def message(cwd, argv, env):
    words = [cwd, str(len(argv))] + argv + ["%s=%s" % pair for pair in env.items()]
    body = b"".join(w.encode() + b"\0" for w in words)
    return struct.pack("<I", len(body)) + body


def warm_node():
    need(NODE)
    return Talk(NODE, "-r", driver("zygote_node.js"), "warm")


def run_warm(argv, env=ENV, stdin_closed=True):
    """(exit status, stdout, stderr) of a program that runs in a warm node."""
    with warm_node() as t:
        t.channel.sendall(message(os.getcwd(), argv, env))
        status = t.p.wait(30)
        t.drain()
        return status, t.cell.out, t.cell.err


def plain(argv, env=ENV):
    need(NODE)
    p = subprocess.run([NODE] + argv[1:], env=env, stdin=subprocess.DEVNULL, capture_output=True)
    return p.returncode, p.stdout, p.stderr


def same(name, text, *words):
    with open(name, "w") as f:
        f.write(text)
    argv = ["node", name, *words]
    a, b = run_warm(argv), plain(argv)
    is_(a, b)
    return a


def a_script_sees_its_file_its_arguments_and_its_environment():
    status, out, _ = same("a.js", """
console.log(require.main === module, __filename, __dirname, module.id, module.paths[0], process.argv, process.execArgv)
console.log(process.env, process.cwd(), process.mainModule === module, Object.keys(require.cache), module.parent)
console.log(require('./b.json'), process.argv0 === 'node' || process.argv0)
""".replace("process.argv0 === 'node' || process.argv0", "typeof process.argv0").replace("require('./b.json')", "1"), "x", "", "\u00fc y")
    is_(status, 0)
    has(out, b"ONLY")


def modules_of_both_kinds_run():
    is_(same("a.mjs", "import fs from 'fs'\nconsole.log(typeof fs.readFileSync, import.meta.url, process.argv, typeof require, process.mainModule)\nawait 1\nconsole.log('after')")[0], 0)
    with open("package.json", "w") as f:
        f.write('{"type": "module"}')
    is_(same("b.js", "console.log(import.meta.url)")[0], 0)
    is_(same("c.cjs", "console.log(require.main === module); import('fs').then((m) => console.log(typeof m.default))")[0], 0)


def errors_look_the_same():
    is_(same("throw.js", "function f() { throw new TypeError('bad') }\nf()")[0], 1)
    is_(same("syntax.js", "let x = ;")[0], 1)
    is_(same("reject.js", "Promise.reject(new Error('lost'))")[0], 1)
    is_(same("throw.mjs", "export const x = 1; throw new Error('bad')")[0], 1)
    is_(same("exit.js", "process.exitCode = 7; setTimeout(() => console.error('late'), 1)")[0], 7)
    is_(same("kill.js", "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10000)")[0], -15)
    is_(run_warm(["node", "missing.js"]), plain(["node", "missing.js"]))


def timers_streams_and_children_work():
    is_(same("a.js", """
process.stdin.on('data', () => {}).on('end', () => console.log('end of stdin'))
setTimeout(() => process.stdout.write('timer\\n'), 1)
console.log(require('child_process').execSync('echo child; ls /proc/self/fd | wc -l').toString())
console.error(require('fs').existsSync('/proc/self/fd/3') && require('fs').readlinkSync('/proc/self/fd/3').includes('socket'))
""")[0], 0)


def the_search_path_comes_with_the_environment():
    os.makedirs("lib/mine")
    with open("lib/mine/index.js", "w") as f:
        f.write("module.exports = 'mine'")
    with open("a.js", "w") as f:
        f.write("console.log(require('mine'), new Date(0).getHours())")
    env = {**ENV, "NODE_PATH": os.path.abspath("lib"), "TZ": "Asia/Tokyo"}
    is_(run_warm(["node", "a.js"], env), plain(["node", "a.js"], env))


def what_a_seed_cannot_be_is_started_anew():
    for argv, env in ((["node", "-p", "6 * 7"], ENV), (["node", "-e", "process.exit(3)"], ENV),
                      (["node", "--stack-trace-limit=1", "-e", "throw new Error('x')"], ENV),
                      (["node", "-p", "process.execArgv"], {**ENV, "NODE_OPTIONS": "--no-warnings"})):
        is_(run_warm(argv, env), plain(argv, env))


def the_threads_of_a_program_are_no_seeds():
    status, out, _ = same("threads.js", """
const { Worker, isMainThread, parentPort } = require('worker_threads')
if (isMainThread) new Worker(__filename).on('message', (m) => console.log('main', m))
else parentPort.postMessage([__filename.split('/').pop(), process.argv.length])
""")
    is_(status, 0)
    has(out, b"main [ 'threads.js', 2 ]")


def a_bad_message_ends_the_warm_node():
    for bad in (struct.pack("<I", 1 << 30), struct.pack("<I", 3) + b"abc", struct.pack("<I", 2) + b"/\0",
                struct.pack("<I", 5) + b"/\x009x\0", struct.pack("<I", 4) + b"/\x009\0", message("/nowhere", ["node", "x"], {})):
        with warm_node() as t:
            t.channel.sendall(bad)
            is_(t.p.wait(30), 127)
            t.drain()
            has(t.cell.err, b"atoll: warm node: ")
    with warm_node() as t:
        t.channel.close()
        is_(t.p.wait(30), 0)


def a_warm_node_that_is_the_main_program_works_too():
    for name, text in (("a.js", "console.log(require.main === module, process.argv[2])"), ("a.mjs", "console.log(true, process.argv[2])")):
        with open(name, "w") as f:
            f.write(text)
        with Talk(NODE, driver("zygote_node.js")) as t:
            t.channel.sendall(message(os.getcwd(), ["node", name, "word"], ENV))
            is_((t.p.wait(30), t.drain(), t.cell.out), (0, None, b"true word\n"))


def the_driver_can_run_in_a_warm_node():
    with warm_node() as t:
        t.channel.sendall(message("/", ["node", driver("node.js")], {"A": "1"}))
        is_(t.ready()["language"], "javascript")
        is_(t.run("let x = 5; [x, process.env.A, process.cwd()]").text, "[ 5, '1', '/' ]")
        is_(t.run("x").text, "5")
        cell, _ = t.interrupted("console.log('began'); while (true);")
        is_(cell.status, "interrupted")
        has(t.run("null.x").error["text"], "<cell 4>")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
