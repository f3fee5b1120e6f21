#!/usr/bin/env python3
"""ruby_test.py - what the driver for Ruby promises."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Dead, Talk, driver, has, is_, need, report, run_tests  # noqa: E402


def ruby():
    need("ruby")
    t = Talk("/usr/bin/env", "ruby", driver("ruby.rb"))
    is_(t.ready()["language"], "ruby")
    return t


def values_and_output_are_reported_separately():
    with ruby() as t:
        is_(t.run("1 + 1").text, "2")
        cell = t.run("puts 'out'; warn 'err'")
        is_((cell.out, cell.err, cell.result), (b"out\n", b"err\n", None))
        is_(t.run("").status, "ok")


def names_are_kept_between_cells():
    with ruby() as t:
        t.run("x = 5; def f(n) = n * 2; class C; def y = 3; end; @i = 4; $g = 1; K = 2")
        is_(t.run("f(x) + C.new.y + @i + $g + K").text, "20")
        is_(t.run("_ + 1").text, "21")


def an_error_has_the_frames_of_the_user_only():
    with ruby() as t:
        e = t.run("def f\n  1 / 0\nend\nf").error
        is_((e["name"], e["value"]), ("ZeroDivisionError", "divided by 0"))
        is_([(f["file"], f["line"], f["text"]) for f in e["frames"]],
            [("<cell 1>", 4, "f"), ("<cell 1>", 2, "1 / 0")] if len(e["frames"]) == 2 else
            [("<cell 1>", 4, "f"), ("<cell 1>", 2, "1 / 0"), ("<cell 1>", 2, "1 / 0")])
        assert "ruby.rb" not in e["text"], e["text"]
        e = t.run("1\ndef (").error
        is_(e["name"], "SyntaxError")
        is_(t.run("raise Class.new(StandardError) { def message = raise('no') }").status, "error")
        is_(t.run("class Bad; def inspect = raise('bad inspect'); end; Bad.new").error["value"], "bad inspect")
        is_(t.run("class Odd < StandardError; def self.to_s = 5; def self.name = raise; end; raise Odd, 'x'").error["name"], "Odd")
        is_(t.run("def deep = deep\ndeep").error["name"], "SystemStackError")


def an_exit_is_an_error_and_the_context_lives():
    with ruby() as t:
        t.run("x = 5")
        is_(t.run("exit 3").error["name"], "SystemExit")
        is_(t.run("x").text, "5")
        is_(t.run("pid = fork { }; Process.wait pid; 1").text, "1")
        is_(t.run("if (pid = fork) then Process.wait(pid); 'parent' else 'child' end").text, '"parent"')
        try:
            t.run("exit! 7")
            raise AssertionError("it lives")
        except Dead as status:
            is_(status.args[0], 7)


def a_busy_or_waiting_cell_is_interrupted():
    with ruby() as t:
        t.run("kept = 7")
        for code in ("puts 'began'; loop {}", "puts 'began'; sleep", "puts 'began'; while true do end", "system('echo began; sleep 100')"):
            cell, seconds = t.interrupted(code)
            has(("interrupted", "ok") if "system" in code else ("interrupted",), cell.status)
            assert seconds < 2, seconds
        t.start("gets")
        t.until("input")
        t.interrupt()
        is_(t.finish().status, "interrupted")
        t.interrupt()
        t.asleep()
        is_(t.run("kept").text, "7")


def an_interrupt_hits_a_cell_that_is_on_its_way():
    with ruby() as t:
        for _ in range(20):
            t.start("sleep 30")
            t.interrupt()
            is_(t.finish().status, "interrupted")


def input_display_and_env_work():
    with ruby() as t:
        t.start("gets.chomp + $stdin.gets")
        for text in ("a", "b"):
            t.until("input")
            t.send(op="input", id="1", text=text)
        is_(t.finish().text, '"ab\\n"')
        t.run("class H; def to_html = '<b>'; def inspect = 'h'; end")
        is_(t.run("H.new").result["data"], {"text/html": "<b>", "text/plain": "h"})
        is_([r["data"]["text/plain"] for r in t.run("display(1, 2); 3").all("result")], ["1", "2", "3"])
        is_(t.run("ENV['A']", {"A": "1"}).text, '"1"')
        is_(t.run("ENV['A'].nil?").text, "true")


def odd_text_and_much_of_it_arrive():
    with ruby() as t:
        is_(t.run("'\u00fc\U0001f600'").text, '"\u00fc\U0001f600"')
        is_(t.run("puts '\u00fc'").out, "\u00fc\n".encode())
        is_(t.run("raise \"a\\0\\xff\"").error["value"], "a\\x00\\xFF")
        is_(len(t.run("print 'x' * 20_000_000").out), 20_000_000)
        r = t.run("'x' * 5_000_000").result
        is_((len(r["data"]["text/plain"]), r["truncated"]), (1 << 20, ["text/plain"]))
        is_(t.run("#" + "y" * (20 << 20)).error["name"], "CellTooLarge")
        t.channel.sendall(b'nothing\n[1]\n{"op":"run","id":"n","code":5}\n')
        is_(t.until("end")["id"], "n")
        t.run("$stdout.close; $stderr.close")
        is_(t.run("puts 'back'").out, b"back\n")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
