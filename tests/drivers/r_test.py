#!/usr/bin/env python3
"""r_test.py - what the driver for R promises."""
import base64
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Talk, driver, has, is_, need, report, run_tests  # noqa: E402


def r():
    need("Rscript")
    t = Talk("/usr/bin/env", "Rscript", driver("r.R"))
    is_(t.ready()["language"], "r")
    return t


def values_output_and_names():
    with r() as t:
        is_(t.run("1 + 1").text, "[1] 2")
        cell = t.run("x <- 5\ncat('out\\n')\nmessage('err')\ninvisible(3)")
        is_((cell.out, cell.err, cell.result), (b"out\n", b"err\n", None))
        is_(t.run("x\nf <- function(n) n * x\nf(2)").text, "[1] 10")
        is_(t.run("rm(list = ls()); print <- 3; 'a'").text, '[1] "a"')
        is_(t.run("rm(print)\n# nothing").status, "ok")
        is_(t.run("").status, "ok")
        is_(t.run("data.frame(a = c(1, NA), b = c('x', 'y'), t = as.Date('2024-01-02') + 0:1)").result["extra"],
            {"data": {"a": [1, None], "b": ["x", "y"], "t": ["2024-01-02", "2024-01-03"]}})
        is_(t.run("data.frame(a = 1e20, a = 2L, check.names = FALSE)").result["extra"], {"data": {"a": [1e20], "a.1": [2]}})
        is_([v["data"]["text/plain"] for v in t.run("display(1, 'b'); 3").all("result")], ["[1] 1", '[1] "b"', "[1] 3"])


def errors_are_reported_and_the_context_is_kept():
    with r() as t:
        e = t.run("f <- function() {\n  stop('bad')\n}\nf()").error
        is_((e["name"], e["value"], e["text"]), ("simpleError", "bad", "Error in f() : bad"))
        has([(f["file"], f["line"]) for f in e["frames"]], ("<cell 1>", 4))
        assert "tryCatch" not in e["text"]
        t.run("x <- 1")
        e = t.run("x <- 2\ny <- <- 2").error
        has(e["value"], "<cell 3>:2:6")
        is_(t.run("quit(status = 3)").error["name"], "SystemExit")
        is_(t.run("q()").error["name"], "SystemExit")
        is_(t.run("f <- function() f()\nf()").status, "error")
        has(t.run("as.integer('x')").err, b"NAs introduced")
        is_(t.run("x").text, "[1] 1")


def a_busy_or_waiting_cell_is_interrupted():
    with r() as t:
        t.run("kept <- 7")
        for code in ("cat('began\\n'); while (TRUE) {}", "cat('began\\n'); Sys.sleep(100)", "cat('began\\n'); repeat sum(1:10)"):
            cell, seconds = t.interrupted(code)
            is_((cell.status, cell.error["name"]), ("interrupted", "Interrupted"))
            assert seconds < 2, seconds
        t.interrupt()
        t.asleep()
        is_(t.run("kept").text, "[1] 7")


def plots_are_pictures():
    with r() as t:
        if t.run("capabilities('png')[[1]]").text != "[1] TRUE":
            return
        cell = t.run("plot(1:10)\nplot(10:1)\n1")
        is_([list(v["data"])[0] for v in cell.all("result")], ["text/plain", "image/png", "image/png"])
        png = base64.b64decode(cell.all("result")[1]["data"]["image/png"])
        is_((png[:4], png[-8:-4]), (b"\x89PNG", b"IEND"))
        is_(t.run("1").all("result")[1:], [])


def input_env_and_odd_text_arrive():
    with r() as t:
        t.start("paste0(readline('name? '), '!')")
        is_(t.until("input")["prompt"], "name? ")
        t.send(op="input", id="1", text="A\u00e9")
        is_(t.finish().text, '[1] "A\u00e9!"')
        is_(t.run("Sys.getenv('A')", {"A": "1"}).text, '[1] "1"')
        is_(t.run("Sys.getenv('A')").text, '[1] ""')
        is_(t.run("cat('\u00fc\U0001f600 \\\\ \" / \\n')").out, "\u00fc\U0001f600 \\ \" / \n".encode())
        is_(t.run("stop('\u00fc\\xff')").status, "error")
        is_(len(t.run("cat(strrep('x', 20000000))").out), 20000000)
        v = t.run("strrep('x', 5000000)").result
        is_((len(v["data"]["text/plain"]), v["truncated"]), (1 << 20, ["text/plain"]))
        is_(t.run("#" + "y" * (20 << 20)).error["name"], "CellTooLarge")
        t.channel.sendall(b'nothing\n[1]\n{"op":"run","id":"n","code":5}\n')
        is_(t.until("end")["id"], "n")
        is_(t.run("1").text, "[1] 1")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
