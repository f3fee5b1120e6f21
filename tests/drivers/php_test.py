#!/usr/bin/env python3
"""php_test.py - what the driver for PHP promises."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Dead, Talk, driver, has, is_, need, report, run_tests  # noqa: E402


def php():
    need("php")
    t = Talk("/usr/bin/env", "php", driver("php.php"))
    is_(t.ready()["language"], "php")
    return t


def values_and_output_are_reported_separately():
    with php() as t:
        is_(t.run("1 + 1;").text, "2")
        is_(t.run("1 + 1").text, "2")
        is_(t.run("<?php\n$x = 3;\n'a' . $x").text, "'a3'")
        cell = t.run("echo 'out'; fwrite(STDERR, 'err');echo \"\\n\";")
        is_((cell.out, cell.err, cell.result), (b"out\n", b"err", None))
        is_(t.run("[1, 2]").result["data"]["application/json"], [1, 2])
        for code, value in (("($x = 5) + 1", "6"), ("if (true) { 5; }", None), ("foreach ([1] as $y) {} $y", "1"), ("", None),
                            ("function g() { return 1; }\ng();", "1"), ("strlen('}')", "1"), ("$f = fn($a) => $a; $f(3)", "3"), ("// note", None)):
            is_((t.run(code).text, code), (value, code))


def names_are_kept_between_cells():
    with php() as t:
        t.run("$x = 5; function f($n) { global $x; return $n * $x; } class C { public $y = 3; } const K = 2;")
        is_(t.run("f(2) + (new C)->y + K").text, "15")


def an_error_has_the_frames_of_the_user_only():
    with php() as t:
        e = t.run("function f() {\n  throw new ValueError('bad');\n}\nf();").error
        is_((e["name"], e["value"]), ("ValueError", "bad"))
        is_([(f["file"], f["line"], f["name"], f["text"]) for f in e["frames"]],
            [("<cell 1>", 4, "{main}", "f();"), ("<cell 1>", 2, "f", "throw new ValueError('bad');")])
        assert "php.php" not in e["text"] and "cell:" not in e["text"], e["text"]
        is_([(f["file"], f["line"]) for f in t.run("\nf();").error["frames"]], [("<cell 2>", 2), ("<cell 1>", 2)])
        is_(t.run("echo 'a' ?> and <?php echo 'b' ?> end").out, b"a and b end")
        is_(t.run("return 5;").text, "5")
        e = t.run("$a = 1;\n$b = = 2;").error
        is_((e["name"], e["frames"][0]["line"]), ("ParseError", 2))
        has(t.run("echo $nothing;").err, b"Undefined variable $nothing")


def an_exit_is_an_error_and_the_context_lives():
    with php() as t:
        t.run("$x = 5;")
        is_(t.run("exit(3);").error["value"], "3")
        is_(t.run("false or die('gone');").error["name"], "SystemExit")
        is_(t.run("exit;").error["name"], "SystemExit")
        is_(t.run("$x").text, "5")
        is_(t.run("if (function_exists('pcntl_fork')) { if ($p = pcntl_fork()) { pcntl_waitpid($p, $s); echo pcntl_wexitstatus($s); } } else echo 0;").out, b"0")


def a_fatal_error_is_reported_before_the_exit():
    with php() as t:
        e = t.run("function f() {}\nfunction f() {}").error
        has(e["value"], "redeclare")
        try:
            t.run("1")
        except (Dead, BrokenPipeError):
            pass


def a_busy_or_waiting_cell_is_interrupted():
    with php() as t:
        if t.run("function_exists('pcntl_signal')").text != "true":
            return
        t.run("$kept = 7;")
        for code in ("echo 'began'; while (true);", "echo 'began'; sleep(100); while (true) usleep(10);", "function w() { echo 'began'; for (;;) {} } w();"):
            cell, seconds = t.interrupted(code, sleeps="sleep(100)" in code)
            is_((cell.status, cell.error["name"]), ("interrupted", "Interrupted"))
            assert seconds < 2, seconds
        t.interrupt()
        t.asleep()
        is_(t.run("$kept").text, "7")


def input_display_and_env_work():
    with php() as t:
        t.start("prompt('name? ') . '!'")
        is_(t.until("input")["prompt"], "name? ")
        t.send(op="input", id="1", text="A")
        is_(t.finish().text, "'A!'")
        is_(list(t.run("[\"a\\0b\"]").result["data"]), ["text/plain"])
        is_([r["data"]["text/plain"] for r in t.run("display(1, 'b'); 3").all("result")], ["1", "'b'", "3"])
        is_(t.run("getenv('A')", {"A": "1"}).text, "'1'")
        is_(t.run("getenv('A')").text, "false")


def odd_text_and_much_of_it_arrive():
    with php() as t:
        is_(t.run("'\u00fc\U0001f600'").text, "'\u00fc\U0001f600'")
        is_(t.run("echo '\u00fc';").out, "\u00fc".encode())
        is_(t.run("throw new Exception(\"a\\0\\xff\");").error["value"], "a\\x00\\xff")
        is_(len(t.run("echo str_repeat('x', 20_000_000);").out), 20_000_000)
        r = t.run("str_repeat('x', 5_000_000)").result
        is_((len(r["data"]["text/plain"]), r["truncated"]), (1 << 20, ["text/plain"]))
        is_(t.run("//" + "y" * (20 << 20)).error["name"], "CellTooLarge")
        t.channel.sendall(b'nothing\n[1]\n{"op":"run","id":"n","code":5}\n')
        is_(t.until("end")["id"], "n")
        is_(t.run("1").text, "1")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
