#!/usr/bin/env python3
"""jshell_test.py - what the driver for Java promises."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Talk, driver, has, is_, need, report, run_tests  # noqa: E402

OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m",
           "--add-opens=java.base/java.io=ALL-UNNAMED")
ENV = dict(os.environ, OF_THE_BOX="b")


def java():
    need("jshell")
    t = Talk("/usr/bin/env", "java", *OPTIONS, driver("jshell.java"), env=ENV)
    is_(t.ready()["language"], "jshell")
    return t


def cells_of_java_keep_their_state():
    with java() as t:
        is_(t.run("int x = 41;").result, None)
        is_(t.run("x + 1").text, "42")
        cell = t.run('System.out.println("out \\u00e9"); System.err.println("err");')
        is_((cell.out, cell.err, cell.result), ("out \u00e9\n".encode(), b"err\n", None))
        is_(t.run("int f(int n) {\n  return n * x;\n}\nf(2)").text, "82")
        is_(t.run("record P(int a) {}\nnew P(3)").text, "P[a=3]")
        is_(t.run("List.of(1, 2).stream().map(n -> n + 1).collect(Collectors.toList())").text, "[2, 3]")
        is_(t.run('"a\\"b"').text, '"a\\"b"')
        is_(t.run("").status, "ok")
        is_(t.run("// nothing").status, "ok")
        is_(t.run('System.out.print("no newline")').out, b"no newline")

        e = t.run("int y = 1;\nint z = 1 / 0;").error
        is_((e["name"], e["value"]), ("java.lang.ArithmeticException", "/ by zero"))
        e = t.run('int q = 1;\nint r = "text";').error
        is_(e["name"], "CompilationException")
        is_(e["frames"][0]["line"], 2)
        has(e["text"], "incompatible types")
        is_(t.run("x +").status, "error")
        is_(t.run("y").text, "1")

        is_(t.run('System.getProperty("A")', {"A": "1"}).text, '"1"')
        is_(t.run('System.getProperty("A", "none")').text, '"none"')
        is_(t.run('System.getProperty("OF_THE_BOX")', {"OF_THE_BOX": "c"}).text, '"c"')
        is_(t.run('System.getProperty("OF_THE_BOX")').text, '"b"')


def a_cell_of_java_is_interrupted():
    with java() as t:
        for code in ("System.out.println(\"began\"); while (true) { }",
                     "System.out.println(\"began\"); Thread.sleep(60000)"):
            cell, seconds = t.interrupted(code)
            is_((cell.status, cell.error["name"]), ("interrupted", "Interrupted"))
            assert seconds < 5, seconds
        is_(t.run("1 + 1").text, "2")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
