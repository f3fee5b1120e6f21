#!/usr/bin/env python3
"""check.py - every language of this host, through a daemon: prints TAP.

    check.py URL KEY [LANGUAGE...]

A folder beside this file is a language: its programs, and case.toml with what they should do. The
program with the entry's name knows five modes, chosen by its first argument: talk (greets from
another file, prints its arguments and its input, exits with 7), fault, big, loop, memory.
"""
import concurrent.futures as futures
import json
import pathlib
import sys
import time
import tomllib
import urllib.error
import urllib.request

URL, KEY = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent
WORDS = ["one two", "Größe", ""]
BIG = 10 << 20


def api(method, path, body=None, accept="application/json"):
    req = urllib.request.Request(
        URL + path, method=method, data=json.dumps(body).encode() if body is not None else None,
        headers={"X-API-Key": KEY, "Content-Type": "application/json", "Accept": accept})
    try:
        with urllib.request.urlopen(req, timeout=90) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def must(path, body):
    code, text = api("POST", path, body)
    doc = json.loads(text)
    assert code in (200, 201), f"{code}: {text[:300]}"
    return doc


def short(doc):
    return json.dumps({k: doc.get(k) for k in
                       ("status", "cause", "step", "stdout", "stderr", "error", "errors")},
                      ensure_ascii=False)[:600]


def has(doc, want, where):
    for key, value in want.items():
        assert doc.get(key) == (value if value != "" else None), \
            f"{key} is {doc.get(key)!r}, not {value!r}: {where}"


class Language:
    def __init__(self, name):
        self.name, self.folder = name, HERE / name
        self.case = tomllib.loads((self.folder / "case.toml").read_text())
        self.bad = self.case.get("bad")
        self.files = {str(f.relative_to(self.folder)): f.read_text()
                      for f in sorted(self.folder.rglob("*"))
                      if f.is_file() and f.name not in ("case.toml", self.bad)}

    def start(self):
        limits = {"limits": {"mem": 1 << 30}} if self.bad else {}
        self.execs = "/v1/boxes/" + must("/v1/boxes", limits)["id"] + "/execs"

    def stop(self):
        api("DELETE", self.execs.removesuffix("/execs"))

    def run(self, args, **more):
        return must(self.execs, {"language": self.name, "entry": self.case["entry"],
                                 "files": self.files, "args": args, **more})

    def again(self, mode, **more):
        """What was compiled already, without its compiler."""
        command = self.command[:-len(WORDS) - 1] + [mode]
        return must(self.execs, {"command": command, "env": {"NODE_PATH": ""}, **more})

    def talks(self):
        doc = self.run(["talk", *WORDS], stdin="zwölf\n13\n", env={"LC_ALL": "C.UTF-8"})
        self.command = doc["command"]
        want = ["from the other file: Größe 漢字", *("arg: " + w for w in WORDS),
                "stdin: zwölf", "stdin: 13", ""]
        assert doc["stdout"] == "\n".join(want), short(doc)
        assert (doc["status"], doc["cause"], doc["step"]) == (7, "exit", "run"), short(doc)

    def compile_error_is_data(self):
        doc = must(self.execs, {"language": self.name,
                                "files": {self.bad: (self.folder / self.bad).read_text()}})
        assert doc["step"] == "compile" and doc["status"] != 0, short(doc)
        first = doc.get("errors", [{}])[0]
        has(first, self.case["error"], short(doc))
        assert self.case["error_has"] in first["message"], short(doc)

    def fault_is_data(self):
        doc = self.run(["fault"], env={"LC_ALL": "C.UTF-8"})
        if "signal" in self.case:
            assert doc["signal"] == self.case["signal"], short(doc)
            return
        assert doc["step"] == "run" and doc["status"] != 0, short(doc)
        has(doc.get("error") or {}, self.case["fault"], short(doc))

    def big_output_comes_whole(self):
        doc = self.again("big", max_output=16 << 20)
        assert len(doc["stdout"]) == BIG and doc["stdout"].strip("x") == "", \
            f"{len(doc['stdout'])} bytes, status {doc['status']}"

    def endless_loop_meets_its_time(self):
        doc = self.again("loop", timeout_ms=300)
        assert doc["cause"] == "wall" and doc["status"] == 124, short(doc)

    def memory_has_an_end(self):
        doc = self.again("memory", timeout_ms=30000)
        want = self.case["memory"]
        if want == "memory":
            assert doc["cause"] == "memory", short(doc)
        elif want != "any":
            assert want in doc["stderr"], short(doc)
        assert doc["status"] != 0, short(doc)

    TESTS = [("talks over files, arguments, input and UTF-8 and keeps its status", talks),
             ("an error of the compiler is data", compile_error_is_data),
             ("an error of the program is data", fault_is_data),
             ("ten megabytes of output come whole", big_output_comes_whole),
             ("an endless loop meets its time", endless_loop_meets_its_time),
             ("memory has an end", memory_has_an_end)]


def hello(lang, row):
    """The programs of the row itself, as code without a file's name."""
    for program in ("selftest",) if lang.bad else ("hello", "selftest"):
        doc = must("/v1/run", {"language": lang.name, "code": row[program]})
        want = f"hello from {lang.name}\n" if program == "hello" else "ok\n"
        assert doc["stdout"] == want, short(doc)


def results_of(lang, row):
    """[(sentence, why not)]: in order; the first one that fails ends the language."""
    began = time.monotonic()
    try:
        lang.start()
    except Exception as e:  # a daemon that refuses a box is a failure like any other
        return [(f"{lang.name}: has a box", repr(e))]
    out = []
    tests = [(text, lambda l, f=f: f(l)) for text, f in Language.TESTS if l_has(lang, f)]
    tests.append(("its hello and its self-test run", lambda l: hello(l, row)))
    for text, f in tests:
        try:
            f(lang)
            out.append((f"{lang.name}: {text}", None))
        except Exception as e:
            out.append((f"{lang.name}: {text}", f"{type(e).__name__}: {e}"))
            if f is tests[0][1]:
                break
    lang.stop()
    print(f"# {lang.name}: {time.monotonic() - began:.1f} s")
    return out


def l_has(lang, f):
    return lang.bad or f is not Language.compile_error_is_data


def main():
    names = sys.argv[3:] or sorted(d.name for d in HERE.iterdir() if (d / "case.toml").exists())
    rows = {r["name"]: r for r in json.loads(api("GET", "/v1/languages")[1])["items"]}
    here = [Language(n) for n in names if rows[n]["here"]]
    slow_first = sorted(here, key=lambda l: (l.bad is None, l.name != "typescript"))
    count = failed = 0
    with futures.ThreadPoolExecutor(2) as pool:
        done = [pool.submit(results_of, l, rows[l.name]) for l in slow_first]
        for sentence, why in (r for f in done for r in f.result()):
            count += 1
            failed += why is not None
            print(f"{'not ok' if why else 'ok'} {count} - {sentence}", flush=True)
            if why:
                print("# " + why.replace("\n", "\n# "))
    for name in names:
        if not rows[name]["here"]:
            count += 1
            print(f"ok {count} - {name} # SKIP not installed: {rows[name]['install']}")
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
