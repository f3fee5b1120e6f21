#!/usr/bin/env python3
"""bash_test.py - what the driver for bash promises."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Dead, Talk, driver, has, is_, need, report, run_tests  # noqa: E402


def bash():
    need("bash")
    t = Talk("/bin/bash", driver("bash.sh"))
    is_(t.ready()["language"], "bash")
    return t


def code_of(cell):
    return cell.all("end")[0]["code"]


def a_cell_prints_and_has_a_status():
    with bash() as t:
        cell = t.run("echo out; echo err >&2")
        is_((cell.out, cell.err, cell.status, code_of(cell)), (b"out\n", b"err\n", "ok", 0))
        cell = t.run("(exit 3)")
        is_((cell.status, code_of(cell), cell.error["name"], cell.error["value"]), ("error", 3, "ExitStatus", "3"))
        is_(t.run("").status, "ok")


def variables_functions_and_the_folder_are_kept():
    with bash() as t:
        t.run("x=5; declare -A m=([a]=1); f() { echo \"f $x ${m[a]}\"; }; cd /; alias ll=ls; set -o pipefail; shopt -s extglob")
        is_(t.run("f; pwd; shopt extglob | cut -f2; [[ -o pipefail ]] && echo pipefail").out, b"f 5 1\n/\non\npipefail\n")


def an_error_is_reported_with_its_line():
    with bash() as t:
        cell = t.run("echo one\nnosuchcommand")
        is_((cell.err, code_of(cell)), (b"bash: line 2: nosuchcommand: command not found\n", 127))
        cell = t.run("if then")
        has(cell.err, b"syntax error")
        is_(cell.status, "error")
        is_(t.run("echo on").out, b"on\n")


def an_exit_is_reported_and_the_state_is_kept():
    with bash() as t:
        t.run("x=5; a=(1 'two words' $'three\\nlines'); declare -r fixed=1; f() { echo \"in f\"; }; export -f f; export E=e; cd /tmp; exec 5>/tmp/../dev/null; trap 'echo usr' USR1")
        cell = t.run("echo before; exit 3; echo after")
        is_((cell.out, cell.status, code_of(cell), cell.error["name"]), (b"before\n", "error", 3, "SystemExit"))
        cell = t.run("echo $x \"${a[2]}\" ${#a[@]} $fixed $E; f; bash -c f; pwd; ls -l /proc/$$/fd/5 | grep -c null; kill -USR1 $$")
        is_(cell.out, b"5 three\nlines 3 1 e\nin f\nin f\n/tmp\n1\nusr\n")
        cell = t.run("set -e\nfalse\necho not here")
        is_((cell.out, code_of(cell), cell.error["name"]), (b"", 1, "SystemExit"))
        is_(t.run("set +e; false; echo here").out, b"here\n")
        is_(t.run("set -u; echo $nothing").status, "error")
        is_(t.run("set +u; (exit 4); echo $?; y=$(exit 5); echo $?").out, b"4\n5\n")
        is_(t.run("g() { exit 6; }; g").error["value"], "6")
        is_(t.run("echo $x").all("end")[0]["count"], 10 - 1)


def a_replaced_shell_is_the_end():
    with bash() as t:
        try:
            t.run("exec sh -c 'exit 4'")
            raise AssertionError("it lives")
        except Dead as status:
            is_(status.args[0], 4)


def a_busy_or_waiting_cell_is_interrupted():
    with bash() as t:
        t.run("kept=7")
        for code in ("echo began; while :; do :; done", "echo began; sleep 100", "f() { echo began; while :; do :; done; }; f",
                     "echo began; sleep 100 | cat; echo not here"):
            cell, seconds = t.interrupted(code, sleeps="sleep" in code)
            is_((cell.status, cell.error["name"], cell.out), ("interrupted", "Interrupted", b"began\n"))
            assert seconds < 2, seconds
        t.interrupt()
        t.asleep()
        is_(t.run("echo $kept").out, b"7\n")


def env_of_a_cell_ends_with_it():
    with bash() as t:
        t.run("A=mine")
        is_(t.run("echo $A $B; env | grep ^B", {"A": "one two", "B": "\u00fc\"'$\\"}).out, "one two \u00fc\"'$\\\nB=\u00fc\"'$\\\n".encode())
        is_(t.run("echo $A ${B-unset}").out, b"mine unset\n")
        is_(t.run("exit 1", {"B": "2"}).status, "error")
        is_(t.run("echo ${B-unset}").out, b"unset\n")


def odd_text_and_much_of_it_arrive():
    with bash() as t:
        is_(t.run("echo '\u00fc \U0001f600 \\ \" / \t'").out, "\u00fc \U0001f600 \\ \" / \t\n".encode())
        is_(t.run("printf '\\377'").out, b"\xff")
        is_(len(t.run("head -c 20000000 /dev/zero").out), 20000000)
        is_(t.run("x='" + "y" * 200000 + "'; echo ${#x}").out, b"200000\n")
        is_(t.run("#" + "y" * (5 << 18)).error["name"], "CellTooLarge")
        t.channel.sendall(b'nothing\n[1]\n{"op":"run","id":"n","code":5}\n')
        is_(t.until("end")["id"], "n")
        is_(t.run("echo on").out, b"on\n")


def options_of_the_user_do_not_reach_the_driver():
    with bash() as t:
        t.run("IFS=,; set -f; set -u; shopt -s nullglob; printf() { :; }; read() { :; }; echo() { builtin echo mine; }")
        cell = t.run("echo; y=a,b; builtin printf '%s\\n' $y")
        is_((cell.out, cell.status), (b"mine\na\nb\n", "ok"))
        t.run("exec 1>&-")
        is_(t.run("builtin echo back").out, b"back\n")
        is_(t.run("set -x; :").err.count(b"__atoll"), 0)
        is_(t.run("set +x; ls -l /proc/self/fd | grep -c socket").out, b"0\n")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
