#!/usr/bin/env python3
"""python_test.py - what the Python driver promises, and what it survives."""
import base64
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from talk import Dead, Skip, Talk, driver, has, is_, report, run_tests  # noqa: E402

PYTHON = os.environ.get("DRIVER_PYTHON", "/usr/bin/python3")


def python(**options):
    t = Talk(PYTHON, driver("python.py"), **options)
    is_(t.ready()["language"], "python")
    return t


def module(t, name):
    if t.run("import " + name).status != "ok":
        raise Skip("no " + name)


def texts(*cells):
    """The value of the last of some cells; all of them end well."""
    with python() as t:
        for code in cells:
            cell = t.run(code)
            is_(cell.status, "ok")
        return cell.text


# Values and state

def the_last_expression_is_the_result():
    is_(texts("1 + 1"), "2")
    is_(texts("x = 1\nx + 1"), "2")
    is_(texts("x = 1"), None)
    is_(texts("None"), None)
    is_(texts("42;"), None)
    is_(texts(""), None)
    is_(texts("# only a comment"), None)


def state_is_kept_between_cells():
    is_(texts("def f(n): return n * factor", "factor = 7", "f(6)"), "42")


def underscores_hold_the_values_before():
    is_(texts("1", "2", "(_, __)"), "(2, 1)")
    is_(texts("_ = 'mine'", "5", "_"), "'mine'")


def cells_live_in_a_real_main_module():
    is_(texts("import pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n  x: int",
              "pickle.loads(pickle.dumps(P(3)))"), "P(x=3)")
    is_(texts("__name__, __import__('sys').modules['__main__'].__dict__ is globals()"),
        "('__main__', True)")
    is_(texts("def f(): return 'source'", "import inspect; inspect.getsource(f)"),
        repr("def f(): return 'source'\n"))


def a_future_import_holds_for_later_cells():
    is_(texts("from __future__ import annotations", "def f(x: nothing): pass", "f.__annotations__"),
        "{'x': 'nothing'}")


def print_and_write_arrive_before_the_end():
    with python() as t:
        cell = t.run("import sys, os\nprint('a', end='')\nsys.stderr.write('b')\nos.write(1, b'')")
        is_((cell.out, cell.err), (b"a", b"b"))


def output_is_seen_while_the_cell_runs():
    with python() as t:
        t.start("print('now')\ninput()")
        t.until("input")
        is_(t.cell.out, b"now\n")


def output_of_a_display_comes_in_order():
    with python() as t:
        t.start("print('before')\ndisplay(1)\nprint('after')")
        t.until("result")
        has(t.cell.out, b"before\n")
        t.finish()
        is_(t.cell.out, b"before\nafter\n")


def top_level_await_keeps_its_loop():
    with python() as t:
        t.run("import asyncio\nq = asyncio.Queue()\nasync def feed():\n  await q.put(5)\n"
              "t = asyncio.get_event_loop_policy() and None")
        t.run("task = asyncio.ensure_future(feed())\nawait asyncio.sleep(0)")
        is_(t.run("await q.get()").text, "5")
        cell = t.run("async def bad():\n  1/0\nawait bad()")
        is_([f["name"] for f in cell.error["frames"]], ["<module>", "bad"])
        is_(t.run("asyncio.run(asyncio.sleep(0, 'own loop'))").text, "'own loop'")
        is_(t.run("await asyncio.sleep(0, 'ours still')").text, "'ours still'")


def env_of_a_cell_ends_with_it():
    with python() as t:
        t.run("import os\nos.environ['A'] = 'mine'")
        is_(t.run("os.environ['A'], os.getenv('B')", {"A": "1", "B": "2"}).text, "('1', '2')")
        is_(t.run("os.environ['A'], os.getenv('B')").text, "('mine', None)")
        is_(t.run("1", {"A=B": "x"}).status, "error")
        is_(t.run("1", {"A": 5}).error["name"], "TypeError")


def commands_and_magics_are_lines():
    with python() as t:
        is_(t.run("x = 'there'\n!echo hello {x}").out, b"hello there\n")
        is_(t.run("lines = !printf 'a\\nb'\nlines").text, "['a', 'b']")
        is_(t.run("s = '''\n!not a command\n'''\n!echo one\nif 1:\n    !echo two").out, b"one\ntwo\n")
        is_(t.run("%%bash\necho $((6 * 7))").out, b"42\n")
        is_(t.run("%matplotlib inline").status, "ok")
        cell = t.run("%conda install numpy")
        is_(cell.status, "error")
        has(cell.error["value"], "packages")
        is_(t.run("%cd /\n!pwd").out, b"/\n/\n")
        is_(t.run("!echo one \\\n  two\n3").out, b"one two\n")
        is_(t.run("!echo '{print $1}' ${HOME:+h} {1 + 1} $x").out, b"{print $1} h 2 there\n")


def magics_are_those_of_notebooks():
    with python() as t:
        cell = t.run("%nonsense 1")
        is_((cell.error["name"], cell.error["value"]),
            ("UsageError", "Line magic function `%nonsense` not found."))
        is_(cell.error["text"], "UsageError: Line magic function `%nonsense` not found.")
        is_(t.run("%%nonsense\n1").error["value"], "Cell magic `%%nonsense` not found.")
        is_(t.run("%pwd").text, repr(os.getcwd()))
        is_(t.run("%env MAGIC=1\n%env MAGIC").text, "'1'")
        is_(t.run("w = %pwd\nlen(w) > 0").text, "True")
        is_(t.run("a, b = 1, 'x'\n%who").out, b"a\t b\t w\n")
        cell = t.run("%time 6 * 7")
        is_(cell.text, "42")
        has(cell.out.decode(), "Wall time: ")
        is_(t.run("%%time\ny = 6\ny * 7").text, "42")
        has(t.run("%timeit -n 2 -r 3 y + 1").out.decode(), "of 3 runs, 2 loops each)")
        is_(t.run("%%capture got\nprint('hidden')").out, b"")
        is_(t.run("got.stdout").text, "'hidden\\n'")
        is_(t.run("%%writefile w.txt\nsome text").out, b"Writing w.txt\n")
        is_(t.run("!cat w.txt").out, b"some text")
        is_(t.run("%%html\n<b>x</b>").all("result")[0]["data"]["text/html"], "<b>x</b>")
        is_(t.run("%%bash\nexit 3").error["name"], "CalledProcessError")
        has(t.run("len?").out.decode(), "Return the number of items")
        is_(t.run("conda install numpy").error["name"], "UsageError")
        has(t.run("%pip --version").out.decode(), "pip ")
        is_(t.run("x = = 1").error["name"], "SyntaxError")


def what_cells_import_of_ipython_is_there():
    # -S: the installed one is not found, and the stand-in is.
    with Talk(PYTHON, "-S", driver("python.py")) as t:
        t.ready()
        cell = t.run("from IPython.display import HTML, Image, display, Markdown\ndisplay(HTML('<b>'))\n"
                     "display(Image(b'\\xff\\xd8jpeg'))\nMarkdown('# x')")
        is_([sorted(e["data"])[0] for e in cell.all("result")], ["text/html", "image/jpeg", "text/markdown"])
        is_(t.run("import IPython\nIPython.get_ipython()").text, None)
        is_(t.run("get_ipython().run_line_magic('pwd', '')").text, repr(os.getcwd()))
        is_(t.run("get_ipython().getoutput('echo a')").text, "['a']")
        is_(t.run("import IPython.nonsense").error["name"], "ModuleNotFoundError")


def a_cell_may_be_indented_as_a_whole():
    is_(texts("\n    x = 1\n    if x:\n        x = 2\n\n    x\n    "), "2")


def the_import_of_a_module_is_from_the_working_folder():
    with open("beside.py", "w") as f:
        f.write("value = 3\n")
    is_(texts("import beside, sys; beside.value, sys.argv"), "(3, [''])")


# Errors

def an_error_has_the_frames_of_the_user_only():
    with python() as t:
        t.run("def f():\n    return 1 / 0")
        cell = t.run("x = 1\nf()")
        is_(cell.status, "error")
        e = cell.error
        is_((e["name"], e["value"]), ("ZeroDivisionError", "division by zero"))
        is_(e["frames"], [
            {"file": "<cell 2>", "line": 2, "name": "<module>", "text": "f()"},
            {"file": "<cell 1>", "line": 2, "name": "f", "text": "return 1 / 0"}])
        has(e["text"], 'Traceback (most recent call last):\n  File "<cell 2>", line 2, in <module>\n    f()\n')
        assert "python.py" not in e["text"], e["text"]


def causes_and_exception_groups_are_reported():
    with python() as t:
        cell = t.run("try:\n  1/0\nexcept Exception as e:\n  raise KeyError('k') from e")
        has(cell.error["text"], "direct cause")
        has(cell.error["text"], "ZeroDivisionError")
        assert "python.py" not in cell.error["text"]


def an_error_in_a_file_shows_its_line():
    with open("faulty.py", "w") as f:
        f.write("def f():\n    raise OSError('here')\n")
    with python() as t:
        e = t.run("import faulty\nfaulty.f()").error
        is_(e["frames"][1]["text"], "raise OSError('here')")


def a_syntax_error_shows_where():
    with python() as t:
        e = t.run("x = 1\ndef f(:\n  pass").error
        is_(e["name"], "SyntaxError")
        is_(e["frames"], [{"file": "<cell 1>", "line": 2, "name": "<module>", "text": "def f(:"}])
        has(e["text"], 'File "<cell 1>", line 2\n    def f(:\n')
        assert "Traceback" not in e["text"]
        is_(t.run("print(").status, "error")
        is_(t.run("  indented\n wrong").error["name"], "IndentationError")
        is_(t.run("return 5").error["name"], "SyntaxError")


def an_exit_is_an_error_and_the_context_lives():
    with python() as t:
        t.run("x = 5")
        cell = t.run("import sys\nsys.exit(3)")
        is_((cell.error["name"], cell.error["value"], cell.status), ("SystemExit", "3", "error"))
        is_(t.run("import asyncio\nawait asyncio.sleep(0)\nsys.exit()").error["name"], "SystemExit")
        t.run("sys.exit = None")
        is_(t.run("x").text, "5")


def an_exit_of_the_process_is_seen():
    with python() as t:
        try:
            t.run("import os\nos._exit(7)")
            raise AssertionError("it lives")
        except Dead as status:
            is_(status.args[0], 7)


def the_process_ends_when_the_channel_does():
    with python() as t:
        t.run("import atexit\natexit.register(print, 'bye')")
        t.channel.close()
        is_(t.p.wait(10), 0)
        t.drain()
        is_(t.cell.out, b"bye\n")


# Rich values

def values_have_the_forms_they_know():
    with python() as t:
        t.run("class A:\n"
              "  def _repr_html_(self): return '<b>'\n"
              "  def _repr_png_(self): return b'\\x89PNG'\n"
              "  def _repr_markdown_(self): return '*m*'\n"
              "  def _repr_svg_(self): return '<svg/>'\n"
              "  def _repr_jpeg_(self): return b'j'\n"
              "  def _repr_pdf_(self): return b'p'\n"
              "  def _repr_latex_(self): return '$x$'\n"
              "  def _repr_json_(self): return {'a': [1, None]}\n"
              "  def _repr_javascript_(self): return 'f()'\n"
              "  def __repr__(self): return 'A!'")
        is_(t.run("A()").result["data"], {
            "text/plain": "A!", "text/html": "<b>", "image/png": base64.b64encode(b"\x89PNG").decode(),
            "text/markdown": "*m*", "image/svg+xml": "<svg/>", "image/jpeg": "ag==",
            "application/pdf": "cA==", "text/latex": "$x$", "application/json": {"a": [1, None]},
            "application/javascript": "f()"})
        is_(list(t.run("A").result["data"]), ["text/plain"]) # the class is not one of its objects


def a_bundle_may_bring_types_of_its_own():
    with python() as t:
        t.run("class B:\n  def _repr_mimebundle_(self, include=None, exclude=None):\n"
              "    return {'application/x-own': 'o', 'text/plain': 'p'}, {'meta': 1}")
        is_(t.run("B()").result["data"], {"application/x-own": "o", "text/plain": "p"})


def lists_and_dicts_are_also_json():
    with python() as t:
        is_(t.run("{'a': [1, 2.5, None, True], 2: 'x'}").result["data"]["application/json"],
            {"a": [1, 2.5, None, True], "2": "x"})
        is_(t.run("[float('nan'), 2**70, '\\0']").result["data"]["application/json"],
            [None, str(2 ** 70), "\\x00"])
        is_(list(t.run("[object()]").result["data"]), ["text/plain"])
        is_(list(t.run("{1: 2, '1': 3}").result["data"]), ["text/plain"])
        is_(list(t.run("a = []\na.append(a)\na").result["data"]), ["text/plain"])


def display_shows_and_updates():
    with python() as t:
        cell = t.run("h = display(1, display_id='x')\nh.update(2)\ndisplay('a', 'b')\n3")
        is_([(e["main"], e["data"]["text/plain"], e["extra"]) for e in cell.all("result")], [
            (False, "1", {"display_id": "x", "update": False}),
            (False, "2", {"display_id": "x", "update": True}),
            (False, "'a'", {}), (False, "'b'", {}), (True, "3", {})])
        is_(t.run("display({'text/html': '<i>'}, raw=True)").all("result")[0]["data"], {"text/html": "<i>"})
        is_(t.run("clear_output()").status, "ok")


def a_frame_carries_its_data():
    with python() as t:
        module(t, "pandas")
        cell = t.run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None],"
                     " 't': pd.to_datetime(['2024-01-02', '2024-01-03'])})")
        is_(cell.result["extra"]["data"], {"a": [1, 2], "b": ["x", None],
                                           "t": ["2024-01-02T00:00:00", "2024-01-03T00:00:00"]})
        has(cell.result["data"]["text/html"], "<table")
        big = t.run("pd.DataFrame({'a': range(3_000_000)})").result
        is_(big["truncated"], ["data"])


def figures_come_after_the_cell_with_their_chart():
    with python() as t:
        assert "matplotlib" not in t.run("import sys\n' '.join(sys.modules)").text
        module(t, "matplotlib")
        cell = t.run("""
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 5, 6], label='up')
plt.title('T'); plt.xlabel('Time (s)'); plt.ylabel('Length[m]')
plt.show()
print('shown')
plt.figure(); plt.scatter([1, 2], [3, 4]);""")
        is_(cell.err, b"")
        line, dots = cell.all("result")
        is_(base64.b64decode(line["data"]["image/png"])[:4], b"\x89PNG")
        has(line["data"]["text/plain"], "Figure")
        chart = line["extra"]["chart"]
        is_([chart[k] for k in ("type", "title", "x_label", "x_unit", "y_label", "y_unit", "x_scale")],
            ["line", "T", "Time (s)", "s", "Length[m]", "m", "linear"])
        is_(chart["elements"], [{"label": "up", "points": [[1, 4], [2, 5], [3, 6]]}])
        is_(sorted(chart), sorted(["type", "title", "elements", "x_label", "y_label", "x_unit", "y_unit",
                                   "x_ticks", "x_tick_labels", "x_scale", "y_ticks", "y_tick_labels", "y_scale"]))
        is_((line["main"], dots["main"], dots["extra"]["chart"]["type"]), (False, False, "scatter"))
        is_(t.run("1").all("result")[1:], []) # closed after its cell
        once = t.run("f = plt.figure(); plt.plot([1, 2]); f").all("result")
        is_([r["main"] for r in once], [True])


def charts_are_of_every_kind():
    with python() as t:
        module(t, "matplotlib")
        t.run("import matplotlib.pyplot as plt")

        def chart(code):
            results = t.run(code + ";").all("result")
            return results[0]["extra"]["chart"]

        bar = chart("plt.bar(['a', 'b'], [1, 2]); plt.xlabel('X'); plt.ylabel('Y (kg)')")
        is_(bar, {"type": "bar", "title": None, "x_label": "X", "x_unit": None, "y_label": "Y (kg)",
                  "y_unit": "kg", "elements": [{"label": "a", "group": "Group 0", "value": 1},
                                               {"label": "b", "group": "Group 0", "value": 2}]})
        lying = chart("plt.barh(['a', 'b'], [1, 2]); plt.xlabel('X'); plt.ylabel('Y (kg)')")
        is_((lying["x_label"], lying["y_label"], lying["elements"][1]["value"]), ("Y (kg)", "X", 2))
        pie = chart("plt.pie([1, 3], labels=['a', 'b'])")
        is_(pie, {"type": "pie", "title": None, "elements": [
            {"label": "a", "angle": 90, "radius": 1}, {"label": "b", "angle": 270, "radius": 1}]})
        box = chart("plt.boxplot([[1, 2, 3, 4, 30], [2, 3, 4, 5, 9.5]], patch_artist=True); plt.xticks([1, 2], ['a', 'b'])")
        is_(box["type"], "box_and_whisker")
        is_(box["elements"][0], {"label": "a", "min": 1, "first_quartile": 2, "median": 3,
                                 "third_quartile": 4, "max": 4, "outliers": [30]})
        both = chart("f, (a, b) = plt.subplots(1, 2); a.plot([1, 2]); b.bar(['x', 'y'], [1, 2]); f.suptitle('S')")
        is_((both["type"], both["title"], [c["type"] for c in both["elements"]]),
            ("superchart", "S", ["line", "bar"]))
        is_(chart("plt.figure()"), {})
        is_(chart("plt.imshow([[1, 2], [3, 4]])"), {"type": "unknown", "title": None, "elements": []})
        dates = chart("import datetime as d\nplt.plot([d.date(2024, 1, 1), d.date(2024, 1, 3)], [1, 2])")
        is_((dates["x_scale"], dates["elements"][0]["points"][0], dates["elements"][0]["label"]),
            ("datetime", ["2024-01-01", 1], "Line 0"))
        is_(chart("plt.plot([1, 2]); plt.yscale('log')")["y_scale"], "log")
        is_(chart("plt.plot(['a', 'b', 'c'], [1, 2, 3])")["x_scale"], "categorical")


def images_are_shown_when_they_are_saved():
    with python() as t:
        module(t, "PIL.Image")
        cell = t.run("from PIL import Image\ni = Image.new('RGB', (2, 2))\ni.save('x.png')\ni.show()")
        is_([list(r["data"])[0] for r in cell.all("result")], ["image/png", "image/png"])
        assert os.path.getsize("x.png") > 0


# Input

def input_asks_and_waits():
    with python() as t:
        t.start("name = input('name? ')\nname")
        ask = t.until("input")
        is_((ask["id"], ask["prompt"], ask["password"]), ("1", "name? ", False))
        t.send(op="input", id="0", text="for another cell")
        t.send(op="input", id="1", text="A\u00e9\n")
        is_(t.finish().text, "'A\u00e9'")


def a_password_input_is_marked():
    with python() as t:
        t.start("from getpass import getpass\ngetpass('key: ')")
        ask = t.until("input")
        is_((ask["prompt"], ask["password"]), ("key: ", True))
        t.send(op="input", id="1", text="s")
        is_(t.finish().text, "'s'")


def stdin_is_read_by_lines():
    with python() as t:
        t.start("import sys\nsys.stdin.readline()")
        t.until("input")
        t.send(op="input", id="1", text="line")
        is_(t.finish().text, repr("line\n"))
        t.start("input()")
        t.until("input")
        t.send(op="input", id="2", text=None)
        is_(t.finish().error["name"], "EOFError")
        is_(t.run("sys.stdin.read()").error["name"], "UnsupportedOperation")


def a_cell_that_comes_during_input_waits():
    with python() as t:
        t.start("x = input()")
        t.until("input")
        t.send(op="run", id="later", code="x", env={})
        t.send(op="input", id="1", text="now")
        t.finish()
        is_(t.until("end")["id"], "later")
        is_(t.cell.text, "'now'")


# Interrupts

def a_busy_loop_is_interrupted_at_once():
    with python() as t:
        best = 9
        for _ in range(3):
            cell, seconds = t.interrupted("print('began')\nwhile True: pass")
            is_((cell.status, cell.error["name"]), ("interrupted", "KeyboardInterrupt"))
            best = min(best, seconds)
        assert best < 0.05, best
        is_(t.run("1 + 1").text, "2")


def what_waits_is_interrupted():
    with python() as t:
        for code in ("import time; print('began'); time.sleep(100)",
                     "import asyncio; print('began'); await asyncio.sleep(100)",
                     "import threading; print('began'); threading.Event().wait()",
                     "import subprocess; print('began'); subprocess.run(['sleep', '100'])",
                     "!echo began; sleep 100",
                     "async def f():\n  print('began')\n  while True: pass\nawait f()",
                     "import sys\nprint('began')\nwhile True: display(1)"):
            cell, seconds = t.interrupted(code)
            is_((cell.status, cell.error["name"]), ("interrupted", "KeyboardInterrupt"))
            assert seconds < 2, (code, seconds)
        is_(t.run("await asyncio.sleep(0, 'alive')").text, "'alive'")


def input_is_interrupted_and_its_answer_dropped():
    with python() as t:
        t.start("input('?')")
        t.until("input")
        t.interrupt()
        is_(t.finish().status, "interrupted")
        t.send(op="input", id="1", text="late")
        t.start("input('again')")
        t.until("input")
        t.send(op="input", id="2", text="mine")
        is_(t.finish().text, "'mine'")


def an_interrupt_between_cells_has_no_effect():
    with python() as t:
        t.run("1")
        for _ in range(20):
            t.interrupt()
            t.asleep()
        is_(t.run("2").text, "2")


def an_interrupt_hits_a_cell_that_is_on_its_way():
    with python() as t:
        for i in range(30):
            t.start("import time\ntime.sleep(30)")
            t.interrupt()
            is_(t.finish().status, "interrupted")


def an_interrupt_just_before_the_users_code_ends_it():
    with python() as t:
        for n in range(600):
            t.run("i = 0")
            t.start("while i < 6000000: i += 1")
            at = time.perf_counter()
            while time.perf_counter() - at < n * 7 % 400 / 1e6:
                pass
            t.interrupt()
            is_(t.finish().status, "interrupted")
            assert t.run("i").text != "6000000", n


def an_interrupt_that_is_caught_is_the_users():
    with python() as t:
        cell, _ = t.interrupted("try:\n  print('began')\n  while True: pass\nexcept KeyboardInterrupt:\n  x = 'caught'\nx")
        is_((cell.status, cell.text), ("ok", "'caught'"))


def a_replaced_handler_lasts_for_a_cell():
    with python() as t:
        t.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
              "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])")
        cell, _ = t.interrupted("print('began')\nwhile True: pass")
        is_(cell.status, "interrupted")


def an_error_whose_text_never_ends_is_interrupted():
    with python() as t:
        cell, _ = t.interrupted("class E(Exception):\n  def __str__(self):\n    print('began')\n"
                                "    while True: pass\nraise E")
        is_(cell.error["name"], "E")


# What is too much

def a_long_text_is_cut_and_marked_as_cut():
    with python() as t:
        for code in ("list(range(1_000_000))", "'x' * 5_000_000", "tuple(range(10**6))", "set(range(10**6))"):
            r = t.run(code).result
            has(r["truncated"], "text/plain")
            is_(len(r["data"]["text/plain"]), 1 << 20)
        is_(t.run("list(range(20000))").text, repr(list(range(20000))))


def what_does_not_fit_into_a_line_is_named():
    with python() as t:
        t.run("class H:\n  def _repr_html_(self): return 'x' * (17 << 20)\n"
              "  def _repr_markdown_(self): return 'small'\n  def __repr__(self): return 'h'")
        r = t.run("H()").result
        is_(r["truncated"], ["text/html"])
        is_(r["data"], {"text/plain": "h", "text/markdown": "small"})


def a_cell_of_100_mb_is_refused():
    with python() as t:
        t.start("x = '" + "y" * (100 << 20) + "'")
        cell = t.finish()
        is_((cell.status, cell.error["name"]), ("error", "CellTooLarge"))
        is_(t.run("1").text, "1")


def a_large_cell_runs():
    with python() as t:
        is_(t.run("x = '" + "y" * (10 << 20) + "'\nlen(x)").text, str(10 << 20))


def a_flood_of_output_arrives_whole():
    with python() as t:
        cell = t.run("for i in range(200000): print(i)\nimport sys; sys.stdout.write('x' * 5_000_000);")
        is_(len(cell.out), sum(len(str(i)) + 1 for i in range(200000)) + 5_000_000)


def deep_recursion_is_an_error():
    with python() as t:
        e = t.run("def f(): f()\nf()").error
        is_(e["name"], "RecursionError")
        assert len(e["frames"]) <= 100
        assert len(e["text"]) < 300000
        e = t.run("def g(n): h(n)\ndef h(n): g(n)\ng(1)").error
        is_(e["name"], "RecursionError")
        t.run("import sys\nsys.setrecursionlimit(60)")
        is_(t.run("[[1]]").text, "[[1]]")
        is_(t.run("x = []\nfor _ in range(100000): x = [x]\nx").error["name"], "RecursionError")


def a_million_cells_worth_of_errors_stay_bounded():
    with python() as t:
        e = t.run("raise ValueError('x' * 10_000_000)").error
        assert len(e["value"]) <= 1 << 20 and len(e["text"]) <= 1 << 20


# What is hostile

def text_that_is_no_utf_8_is_escaped():
    with python() as t:
        cell = t.run("print('\\ud800 ok')\nraise ValueError('\\udcff')")
        is_(cell.out, b"\\ud800 ok\n")
        is_(cell.error["value"], "\\udcff")
        is_(t.run("class A:\n  def __repr__(self): return '\\ud83d'\nA()").text, "\\ud83d")
        is_(t.run("'\u00fc \U0001f600'").text, "'\u00fc \U0001f600'")
        is_(t.run("x = '\ud800'").status, "error")
        is_(t.run("1 + 1").text, "2")


def a_nul_in_the_code_is_an_error():
    with python() as t:
        is_(t.run("x = 1\0").status, "error")
        is_(t.run("'a\\0b'").text, "'a\\x00b'")
        is_(t.run("class A:\n  def __repr__(self): return 'a\\0b'\nA()").text, "a\\x00b")


def lines_that_are_no_messages_are_passed_over():
    with python() as t:
        for line in (b"\n", b"{\n", b"[]\n", b"nothing\n", b'{"op":"fly","id":"1"}\n', b"\xff\xfe\n",
                     b'{"op":"run","id":5,"code":"1"}\n', b"[" * 100000 + b"\n", b'{"op":"input"}\n'):
            t.channel.sendall(line)
        t.channel.sendall(b'{"op":"run","id":"bad","code":7}\n')
        is_(t.until("end")["status"], "error")
        is_(t.run("1").text, "1")


def closed_streams_are_opened_again():
    with python() as t:
        t.run("import os, sys\nos.close(1); os.close(2); os.close(0)")
        is_(t.run("print('again'); print('err', file=sys.stderr)").out, b"again\n")
        t.run("sys.stdout.close(); sys.stderr.close(); sys.stdin.close()")
        cell = t.run("print('more'); print('err', file=sys.stderr)")
        is_((cell.out, cell.err), (b"more\n", b"err\n"))
        t.run("os.close(3)")
        t.run("os.closerange(3, 100)")
        t.run("del sys.stdout")
        is_(t.run("print('still')").out, b"still\n")


def a_stolen_channel_ends_the_driver():
    with python() as t:
        try:
            t.run("import os\nos.closerange(3, 1000)\nfor i in range(900): os.open('/dev/null', os.O_RDWR)")
            raise AssertionError("it lives")
        except Dead:
            pass


def replaced_streams_are_the_users_own():
    with python() as t:
        t.run("import io, sys\nsys.stdout = io.StringIO()\nprint('hidden')")
        is_(t.run("sys.stdout.getvalue()").text, repr("hidden\n"))
        t.run("class Bad:\n  closed = False\n  def flush(self): raise OSError\n  def write(self, s): raise OSError\n"
              "sys.stdout = sys.stderr = Bad()")
        is_(t.run("1").text, "1")
        t.run("sys.stdout = None")
        is_(t.run("print('back')").out, b"back\n")


def a_deleted_driver_file_is_not_missed():
    import shutil
    shutil.copy(driver("python.py"), "copy.py")
    with Talk(PYTHON, "copy.py") as t:
        t.ready()
        os.unlink("copy.py")
        has(t.run("def f(): 1/0\nf()").error["text"], "in f")
        is_(t.run("1").text, "1")


def broken_builtins_break_the_user_only():
    with python() as t:
        t.run("print = len = None")
        t.run("del __builtins__.open, __builtins__.isinstance, __builtins__.str, __builtins__.len\n"
              "__builtins__.dict = __builtins__.getattr = __builtins__.print = None\n"
              "__builtins__.BaseException = int")
        is_(t.run("1 + 1").text, "2")
        is_(t.run("1/0").error["name"], "ZeroDivisionError")
        is_(t.run("display(5)").all("result")[0]["data"]["text/plain"], "5")


def patched_modules_break_the_user_only():
    with python() as t:
        t.run("import json, sys, os, signal, linecache, traceback, io, select, _json\n"
              "json.dumps = json.loads = None\n"
              "for m in (os, signal, linecache, traceback, io, select, _json):\n"
              "  for n in list(vars(m)):\n"
              "    if not n.startswith('__') and n != 'environ': setattr(m, n, None)\n"
              "sys.settrace = sys.getrecursionlimit = sys.exc_info = None")
        is_(t.run("1 + 1").text, "2")
        has(t.run("def f(): 1/0\nf()").error["text"], "ZeroDivisionError")
        t.run("sys.modules.clear()")
        is_(t.run("2 + 2").text, "4")
        is_(t.run("globals().clear()").status, "ok")
        is_(t.run("3 + 3").text, "6")


def a_repr_that_raises_is_an_error():
    with python() as t:
        t.run("class A:\n  def __repr__(self): raise ValueError('no')\n"
              "class B:\n  def __repr__(self): return 5\n"
              "class C:\n  def __repr__(self): raise SystemExit\n"
              "class D:\n  def _repr_html_(self): return 5\n  def _repr_png_(self): raise KeyError('png')\n"
              "  def __repr__(self): return 'd'\n"
              "class E:\n  def __getattr__(self, n): return lambda *a, **k: 7\n  def __repr__(self): return 'e'\n"
              "class F(Exception):\n  def __str__(self): raise F\n")
        is_(t.run("A()").error["name"], "ValueError")
        is_(t.run("B()").error["name"], "TypeError")
        is_(t.run("C()").error["name"], "SystemExit")
        cell = t.run("D()")
        is_((cell.text, cell.status, list(cell.result["data"])), ("d", "ok", ["text/plain"]))
        has(cell.err, b"_repr_png_: KeyError")
        is_(t.run("E()").text, "e")
        is_(t.run("raise F").error["name"], "F")
        is_(t.run("display(A())").error["name"], "ValueError")


def a_forked_child_does_not_serve():
    with python() as t:
        cell = t.run("import os\npid = os.fork()\nif pid == 0: print('child')\nelse: os.waitpid(pid, 0)\n'parent' if pid else 'child'")
        is_((cell.text, cell.out), ("'parent'", b"child\n"))
        t.run("pid = os.fork()\nif pid == 0:\n  display(1)\n  1/0")
        is_(t.run("os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])").text, "1")
        t.run("pid = os.fork()\nif pid == 0:\n  raise SystemExit(5)")
        is_(t.run("os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])").text, "5")
        is_(t.run("import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: r = p.map(abs, [-1, -2])\nr").text, "[1, 2]")


def a_thread_may_print_and_display_later():
    with python() as t:
        t.run("import threading\ngo = threading.Event()\n"
              "def f():\n  go.wait()\n  print('from a thread'); display('plain')\n"
              "th = threading.Thread(target=f); th.start()")
        is_(t.run("go.set(); th.join()").status, "ok")
        t.run("go.clear(); th = threading.Thread(target=f); th.start()")
        t.run("threading.Timer(0.01, go.set).start()")
        t.seen(b"'plain'\n")
        is_(t.run("import queue; q = queue.Queue()\n"
                  "def g():\n  try: input()\n  except BaseException as e: q.put(e)\n"
                  "threading.Thread(target=g).start(); type(q.get()).__name__").text, "'RuntimeError'")


def a_trace_function_stays_out_of_the_driver():
    with python() as t:
        t.run("import sys\ndef tr(*a): raise ValueError('trace')\nsys.settrace(tr)")
        is_(t.run("1").text, "1")
        t.run("def pr(*a): raise ValueError('profile')\nsys.setprofile(pr)")
        is_(t.run("1").text, "1")


def children_do_not_inherit_the_channel():
    with python() as t:
        is_(t.run("import subprocess, sys\nsubprocess.run(['ls', '-l', '/proc/self/fd'], close_fds=False, "
                  "capture_output=True, text=True).stdout.count('socket')").text, "0")


def a_module_can_be_loaded_without_effects():
    import subprocess
    out = subprocess.run([PYTHON, "-c", """
import sys
before = (sys.stdout, sys.path[:], sys.meta_path[:], sys.modules['__main__'])
sys.path.insert(0, %r)
import python
sys.path.pop(0)
import signal
print(before == (sys.stdout, sys.path, sys.meta_path, sys.modules['__main__']),
      signal.getsignal(signal.SIGINT) is signal.default_int_handler, 'asyncio' in sys.modules)
""" % os.path.dirname(driver("python.py"))], capture_output=True, text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    is_(out.stdout, "True True False\n")


def a_loaded_module_serves_after_a_fork():
    code = ("import sys, os; sys.path.insert(0, %r); sys.dont_write_bytecode = True\n"
            "import python; python.preload()\n"
            "pid = os.fork()\n"
            "if pid: os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
            "python.main(3)" % os.path.dirname(driver("python.py")))
    with Talk(PYTHON, "-c", code) as t:
        t.ready()
        is_(t.run("import sys\nx = 5\nprint('here')\nx, __name__").text, "(5, '__main__')")
        is_(t.run("x").text, "5")
        has(t.run("1/0").error["text"], "<cell 3>")


if __name__ == "__main__":
    sys.exit(report(run_tests(globals())))
