"""Looks for a program that differs from a given one in a single place and passes its examples.

Runs in a box. stdin is one JSON document:
    {"source": text, "name": file name, "examples": [...], "shard": k, "shards": n, "most": how many, "limit_ms": each}
An example is {"call", "expected"}, {"input", "expected"} (stdin, stdout) or {"command"} (exit 0 is good).
stdout gets a line of JSON at a time:
    {"candidates": n}                                 how many there are in all shards
    {"found": rank, "rule", "at", "cut", "new", "acts"}   bytes [at, at + cut) become new, and the examples pass;
                                                      acts: what it does with generated inputs
    {"at": rank, "tried": n}                          how far we are, now and then
    {"over": true, "tried": n, "cut": true}           the end; cut: there were more candidates than "most"
With "patch": [at, length] in it, the source is one that passes, changed there by "rule", and we look for doubts:
    {"doubt": text}                                   what the examples would have let through as well
    {"over": true, "tried": n}                        nothing

A place is likelier the more it is run by examples that fail and the less by those that pass (Ochiai).
The output is not trusted: its reader runs the program again elsewhere."""
import ast
import contextlib
import difflib
import io
import json
import math
import os
import re
import resource
import signal
import sys
import time
import types
import zlib

# ---- what may be wrong ----

COMPARE = {"<": "<= > >= != ==", "<=": "< >= > == !=", ">": ">= < <= != ==", ">=": "> <= < == !=",
           "==": "!= <= >= < > in", "!=": "== < >", "in": "not_in ==", "not in": "in", "is": "is_not ==", "is not": "is"}
COMPARE_NAMES = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
                 ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
ARITH = {"+": "- * // %", "-": "+ * // %", "*": "+ // - ** / %", "/": "// * - %", "//": "/ % * -", "%": "// / * -",
         "**": "* // +", "&": "| ^", "|": "& ^", "^": "| &", "<<": ">>", ">>": "<<"}
ARITH_NAMES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
               ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
SIBLINGS = ["min max", "any all", "ceil floor round", "lower upper swapcase", "islower isupper isalpha",
            "isalpha isdigit isalnum", "startswith endswith", "append extend", "sum len max", "int round float",
            "sorted list reversed", "set list sorted tuple", "split rsplit", "strip lstrip rstrip", "find rfind index",
            "index find", "keys values items", "add remove", "ord chr", "str repr", "union intersection difference"]
VALUE = ["abs({})", "sorted({})", "len({})", "list({})", "str({})", "int({})", "set({})", "sum({})", "max({})", "min({})",
         "round({})", "not ({})", "({}) + 1", "({}) - 1", "-({})", "({})[::-1]", "sorted(set({}))", "len(set({}))",
         "({}).lower()", "({}).upper()", "bool({})", "float({})", "tuple({})", "''.join({})", "round({}, 2)", "({}) ** 2",
         "({}) * 2", "({}) // 2", "({})[1:]", "({})[:-1]", "list(reversed({}))"]
SIDE = ["abs({})", "len({})", "set({})", "sorted({})", "({}).lower()", "({}) + 1", "({}) - 1", "({})[::-1]", "int({})",
        "str({})", "list({})", "({}) ** 2", "({}) ** 3"]
BOTH = ["set({})", "sorted({})", "abs({})", "len({})", "({}).lower()"]
ELEMENT = ["abs({})", "str({})", "int({})", "({}) + 1", "({}) - 1", "({}).lower()", "-({})", "({}) ** 2", "({})[::-1]",
           "({}).upper()", "({}).swapcase()"]
OVER = ["sorted({})", "reversed({})", "({})[1:]", "({})[:-1]", "set({})", "list({})[::-1]"]
FIRST = ["sorted({})", "list({})", "abs({})", "set({})", "{}.lower()", "{}[::-1]", "str({})", "sorted(set({}))"]
KEYS = ["len", "abs", "str", "lambda x: x[0]", "lambda x: x[1]", "lambda x: -x", "lambda x: (len(x), x)"]
RANGE = {1: ["{0} + 1", "{0} - 1", "1, {0}", "1, {0} + 1", "2, {0}", "0, {0}, 2"],
         2: ["{0} + 1, {1}", "{0}, {1} + 1", "{0}, {1} - 1", "{0} - 1, {1}", "{1}", "0, {1}", "{0} + 1, {1} + 1", "{0}, {1}, 2"],
         3: ["{0}, {1}", "{0}, {1} + 1, {2}", "{0} + 1, {1}, {2}", "{0}, {1} - 1, {2}", "{0}, {1}, -({2})"]}
SLICE = ["{1}:", ":{2}", "{1}:{2} + 1", "{1}:{2} - 1", "{1} + 1:{2}", "{1} - 1:{2}", "::-1", "{2}:{1}", "{1}:{2}:-1", "{2}:", ":{1}"]
INDEX = ["{0} + 1", "{0} - 1", "-{0}", "{0}:", ":{0}"]
LIKELY = {"compare": 1.0, "arithmetic": 1.0, "constant": 0.9, "name": 0.8, "boolean": 0.95, "sibling": 0.85, "drop": 0.7,
          "unwrap": 0.75, "negate": 0.8, "delete": 0.6, "wrap": 0.5, "swap": 0.6, "range": 0.85, "slice": 0.75, "jump": 0.6,
          "argument": 0.6, "first": 0.35, "else": 0.5, "group": 0.6, "guard": 0.3, "extend": 0.3, "part": 0.3}
GUARDS = ["{0} % 2 == 0", "{0} % 2 != 0", "{0} > 0", "{0} >= 0", "{0} < 0", "{0}", "not {0}"]
BRACKETS = "()[]{}<>"
NEW_MOST = 200  # bytes: what is longer is no small edit


class Program:
    """a text, and where in it each node is: an ast counts lines, and bytes of a line"""

    def __init__(self, text):
        self.raw = text.encode()
        self.starts = [0]
        for line in self.raw.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.tree = ast.parse(text)
        self.parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}

    def span(self, node):
        return (self.starts[node.lineno - 1] + node.col_offset,
                self.starts[node.end_lineno - 1] + node.end_col_offset)

    def of(self, node):
        a, b = self.span(node)
        return self.raw[a:b].decode()


class Edits:
    """every edit: (rule, line, at, cut, new, bonus). The order is the same in every shard."""

    def __init__(self, program, given=()):
        self.p = program
        self.given = list(given)  # texts of the examples: what is nearly one of these is perhaps meant to be it
        self.out = []
        self.names = []
        self.texts = []
        self.numbers = []

    def all(self):
        for func in ast.walk(self.p.tree):
            if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.function(func, func.body, [a.arg for a in func.args.args])
        outside = [n for n in self.p.tree.body if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
                                                                     ast.Import, ast.ImportFrom))]
        self.function(None, outside, [])
        return self.out

    def function(self, func, body, args):
        nodes = [n for stmt in body for n in ast.walk(stmt)]
        names = args + [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        constants = [n.value for n in nodes if isinstance(n, ast.Constant)]
        self.names = list(dict.fromkeys(names))
        self.texts = sorted({c for c in constants if isinstance(c, str) and len(c) < 40})
        self.numbers = sorted({c for c in constants if type(c) is int})
        if func and is_docstring(body[0]):
            body = body[1:]
        for stmt in body:
            for node in ast.walk(stmt):
                visit = getattr(self, "on_" + type(node).__name__, None)
                if visit:
                    visit(node)
                if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.Return, ast.Pass)):
                    self.put("delete", node, "pass")
        self.pairs(body)
        if func and body:
            self.first(args, body[0])

    # -- the text of an edit

    def cut(self, rule, line, a, b, new, bonus=0.0):
        old = self.p.raw[a:b].decode()
        if new != old and (len(new) <= NEW_MOST or new in old or (old in new and len(new) - len(old) <= NEW_MOST)):
            self.out.append((rule, line, a, b - a, new, bonus))

    def put(self, rule, node, new, bonus=0.0):
        self.cut(rule, node.lineno, *self.p.span(node), new, bonus)

    def between(self, rule, left, right, old, new, bonus=0.0):
        """an operator: it stands somewhere between its operands"""
        a, b = self.p.span(left)[1], self.p.span(right)[0]
        word = r"\b%s\b" if old[0].isalpha() else "%s"
        m = re.search((word % re.escape(old).replace(r"\ ", r"\s+")).encode(), self.p.raw[a:b])
        if m:
            line = left.end_lineno + self.p.raw[a:a + m.start()].count(b"\n")
            self.cut(rule, line, a + m.start(), a + m.end(), new, bonus)

    def forms(self, rule, node, forms, bonus=0.0):
        old = self.p.of(node)
        simple = isinstance(node, (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.Attribute))
        for form in forms:
            self.put(rule, node, form.replace("({})", "{}" if simple and form[0] == "(" else "({})").format(old), bonus)

    # -- statements

    def first(self, args, stmt):
        """what is missing is often said at the beginning"""
        at = self.p.span(stmt)[0]
        for arg in args:
            for form in FIRST:
                self.cut("first", stmt.lineno, at, at, "%s = %s\n%s" % (arg, form.format(arg), " " * stmt.col_offset))

    def pairs(self, body):
        """two statements that should not be there"""
        bodies = [getattr(n, "body", None) for stmt in body for n in ast.walk(stmt)]
        for some in [body] + [x for x in bodies if isinstance(x, list)]:
            for one, two in zip(some, some[1:]):
                self.cut("delete", one.lineno, self.p.span(one)[0], self.p.span(two)[1], "pass", -0.3)

    def on_Expr(self, n):
        """something that should be done at times only"""
        if not isinstance(n.value, ast.Call):
            return
        at = self.p.span(n)[0]
        used = [x for x in self.names if x in {y.id for y in ast.walk(n) if isinstance(y, ast.Name)}]
        for name in used:
            for test in ["%s == %s" % (name, other) for other in self.names if other != name] + [
                    g.format(name) for g in GUARDS]:
                self.cut("guard", n.lineno, at, at, "if %s: " % test)

    def on_AugAssign(self, n):
        for other in self.names if isinstance(n.target, ast.Name) else []:
            self.put("name", n.target, other)
        op = ARITH_NAMES.get(type(n.op), "+")
        for to in ARITH[op].split():
            self.between("arithmetic", n.target, n.value, op + "=", to + "=")
        self.between("arithmetic", n.target, n.value, op + "=", "=")
        self.forms("wrap", n.value, ELEMENT, -0.1)

    def on_Assign(self, n):
        if len(n.targets) == 1 and isinstance(n.targets[0], ast.Name):
            for op in ("+=", "-=", "*="):
                self.between("arithmetic", n.targets[0], n.value, "=", op, -0.3)
            self.forms("wrap", n.value, VALUE, -0.1)
        elif len(n.targets) == 1:
            self.forms("wrap", n.value, ELEMENT, -0.1)

    def on_Return(self, n):
        if n.value is None:
            return
        self.forms("wrap", n.value, VALUE)
        for other in self.names:
            self.put("name", n.value, other, -0.1)
        for const in ("True", "False", "None", "[]", "0", "''", "-1", "1"):
            self.put("constant", n.value, const, -0.2)

    def extend(self, test):
        """a condition that is only half of it"""
        a, b = self.p.span(test)
        used = {y.id for y in ast.walk(test) if isinstance(y, ast.Name)}
        for name in [x for x in self.names if x in used]:
            for guard in GUARDS:
                self.cut("extend", test.lineno, b, b, " and " + guard.format(name))
                self.cut("extend", test.lineno, b, b, " or " + guard.format(name), -0.1)

    def condition(self, test):
        self.extend(test)
        self.put("negate", test, "not (%s)" % self.p.of(test))
        self.put("constant", test, "True", -0.2)
        self.put("constant", test, "False", -0.2)

    def on_If(self, n):
        self.condition(n.test)
        if n.orelse:
            a, b = self.p.span(n.body[-1])[1], self.p.span(n.orelse[-1])[1]
            self.cut("else", n.orelse[0].lineno, a, b, "")

    def on_While(self, n):
        self.condition(n.test)

    def on_For(self, n):
        self.forms("wrap", n.iter, OVER, -0.1)

    def on_Break(self, n):
        self.put("jump", n, "continue")

    def on_Continue(self, n):
        self.put("jump", n, "break")

    # -- expressions

    def on_Compare(self, n):
        sides = [n.left] + n.comparators
        for i, op in enumerate(n.ops):
            old = COMPARE_NAMES[type(op)]
            for to in COMPARE[old].split():
                self.between("compare", sides[i], sides[i + 1], old, to.replace("_", " "))
        for side in sides:
            if not isinstance(side, ast.Constant):
                self.forms("wrap", side, SIDE)
        if len(n.ops) == 1:
            left, right, op = self.p.of(sides[0]), self.p.of(sides[1]), COMPARE_NAMES[type(n.ops[0])]
            self.put("swap", n, "%s %s %s" % (right, op, left), 0.2)
            for form in BOTH:
                self.put("wrap", n, "%s %s %s" % (form.format(left), op, form.format(right)), -0.1)

    def on_BinOp(self, n):
        op = ARITH_NAMES.get(type(n.op))
        for to in ARITH.get(op, "").split():
            self.between("arithmetic", n.left, n.right, op, to)
        left, right = self.p.of(n.left), self.p.of(n.right)
        self.put("drop", n, left)
        self.put("drop", n, right)
        self.put("swap", n, "%s %s %s" % (right, op, left))
        if isinstance(n.left, ast.BinOp):
            self.put("drop", n, self.p.of(n.left.left), -0.1)
        if isinstance(n.right, ast.BinOp) and self.p.raw[self.p.span(n.right.right)[1]:self.p.span(n)[1]] == b"":
            self.group(n, left)
        self.forms("wrap", n, ["{} + 1", "{} - 1"])
        if isinstance(n.op, ast.Add):
            for text in dict.fromkeys(self.texts + [" ", ", ", "."]):
                self.put("extend", n, "%s + %r + %s" % (left, text, right))

    def group(self, n, left):
        """a - b // c where (a - b) // c is meant"""
        inner = n.right
        self.put("group", n, "(%s %s %s) %s %s" % (left, ARITH_NAMES.get(type(n.op), "+"), self.p.of(inner.left),
                                                   ARITH_NAMES.get(type(inner.op), "+"), self.p.of(inner.right)))

    def on_BoolOp(self, n):
        old, new = ("and", "or") if isinstance(n.op, ast.And) else ("or", "and")
        for left, right in zip(n.values, n.values[1:]):
            self.between("boolean", left, right, old, new)
        for i in range(len(n.values)):
            rest = n.values[:i] + n.values[i + 1:]
            self.put("drop", n, (" %s " % old).join(self.p.of(v) for v in rest))

    def on_UnaryOp(self, n):
        self.put("unwrap", n, self.p.of(n.operand))

    def on_IfExp(self, n):
        self.condition(n.test)
        body, other = self.p.of(n.body), self.p.of(n.orelse)
        self.put("swap", n, "%s if %s else %s" % (other, self.p.of(n.test), body))
        self.put("drop", n, body)
        self.put("drop", n, other)

    def on_comprehension(self, n):
        for test in n.ifs:
            self.condition(test)

    def on_GeneratorExp(self, n):
        self.forms("wrap", n.elt, ELEMENT)

    def on_ListComp(self, n):
        self.forms("wrap", n.elt, ELEMENT)
        self.forms("wrap", n, ["sorted({})", "set({})", "sum({})", "len({})"], -0.1)

    def on_Constant(self, n):
        v = n.value
        if isinstance(v, bool):
            self.put("constant", n, str(not v))
        elif isinstance(v, int):
            near = [v + 1, v - 1, 0, 1, 2, v + 2, v - 2, -v, -1, 10, 3] + self.numbers
            for w in dict.fromkeys(near):
                if w != v:
                    self.put("constant", n, str(w), 0.1 if abs(w - v) == 1 else 0.0)
        elif isinstance(v, float):
            for w in (v + 1, v - 1, -v, v * 2, v / 2, 0.0, 1.0):
                self.put("constant", n, repr(w))
        elif isinstance(v, str) and not isinstance(self.p.parents.get(n), (ast.Expr, ast.JoinedStr)):
            near = [t for t in self.texts if t != v]
            near += difflib.get_close_matches(v, self.given, 2, 0.7) + (list(BRACKETS) if v and v in BRACKETS else [])
            near += ["", " ", v.lower(), v.upper(), v[::-1], v + " ", v.strip(), ", ", v[1:], v[:-1]]
            for w in dict.fromkeys(near):
                self.put("constant", n, repr(w))
        elif v is None:
            for w in ("[]", "0", "''", "-1", "False", "True"):
                self.put("constant", n, w)

    def siblings(self, name, a, b, line):
        for group in SIBLINGS:
            if name in group.split():
                for other in group.split():
                    self.cut("sibling", line, a, b, other)

    def on_Name(self, n):
        if not isinstance(n.ctx, ast.Load):
            return
        parent = self.p.parents.get(n)
        if isinstance(parent, ast.Call) and parent.func is n:
            self.siblings(n.id, *self.p.span(n), n.lineno)
            return
        for other in self.names:
            self.put("name", n, other)
            for form in ("{0}[{1}:]", "{0}[:{1}]", "{0}[{1}]", "{1}[{0}]"):
                if other != n.id:
                    self.put("part", n, form.format(n.id, other))

    def on_Attribute(self, n):
        b = self.p.span(n)[1]
        self.siblings(n.attr, b - len(n.attr.encode()), b, n.end_lineno)

    def on_Call(self, n):
        args = [self.p.of(a) for a in n.args]
        called = n.func.id if isinstance(n.func, ast.Name) else getattr(n.func, "attr", "")
        if args:
            self.put("unwrap", n, args[0])
        if isinstance(n.func, ast.Attribute):
            self.put("unwrap", n, self.p.of(n.func.value))
        self.arguments(n, args)
        if called in ("sorted", "sort"):
            self.sorting(n)
        if called == "range":
            for form in RANGE.get(len(args), []):
                self.put("range", n, "range(%s)" % form.format(*args), 0.05)
        if called in ("min", "max"):
            for one in self.names:
                for two in self.names:
                    if one < two:
                        self.put("argument", n, "%s(%s, %s)" % (called, one, two), -0.2)
        if called in ("append", "add", "insert") and args:
            self.forms("wrap", n.args[-1], ELEMENT + ["len({})", "list({})"])

    def arguments(self, n, args):
        words = ["%s=%s" % (k.arg, self.p.of(k.value)) if k.arg else "**" + self.p.of(k.value) for k in n.keywords]
        func = self.p.of(n.func)
        if len(args) == 2:
            self.put("argument", n, "%s(%s)" % (func, ", ".join(args[::-1] + words)))
        for i in range(len(args)):
            if len(args) > 1:
                self.put("argument", n, "%s(%s)" % (func, ", ".join(args[:i] + args[i + 1:] + words)))
        for i in range(len(words)):
            self.put("argument", n, "%s(%s)" % (func, ", ".join(args + words[:i] + words[i + 1:])))

    def sorting(self, n):
        have = {k.arg for k in n.keywords}
        end = self.p.span(n)[1] - 1
        comma = ", " if n.args or n.keywords else ""
        if "reverse" not in have:
            self.cut("argument", n.end_lineno, end, end, comma + "reverse=True")
        for key in KEYS if "key" not in have else []:
            self.cut("argument", n.end_lineno, end, end, comma + "key=" + key)

    def on_Subscript(self, n):
        if not isinstance(n.ctx, ast.Load):
            return
        base = self.p.of(n.value)
        self.put("unwrap", n, base)
        if isinstance(n.slice, ast.Slice):
            lower, upper = ((self.p.of(x) if x else "") for x in (n.slice.lower, n.slice.upper))
            for form in SLICE:
                self.put("slice", n.slice, form.format("", lower, upper))
        else:
            for form in INDEX:
                self.put("slice", n.slice, form.format(self.p.of(n.slice)))


def is_docstring(stmt):
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


# ---- running ----

class Example:
    def __init__(self, doc):
        self.call = doc.get("call")
        self.command = doc.get("command")
        self.input = doc.get("input", "").encode()
        self.text = doc.get("expected", "")
        if self.call is not None:
            self.code = compile(self.call.strip(), "<call>", "eval")
            self.values = expected_values(self.text)

    def passes(self, source, code, name):
        """runs in a child of its own; raises or is False when it does not pass"""
        if self.command is not None:
            return run_command(self.command, source, name)
        if self.call is None:
            return trimmed(run_main(code, self.input)) == trimmed(self.text)
        got = eval(self.code, load(code, name).__dict__)
        return any(got == v for v in self.values) or self.text.strip() in (repr(got), str(got))


def expected_values(text):
    try:
        return [eval(text, {"math": math, "inf": math.inf, "nan": math.nan})]
    except Exception:
        return []  # then it is compared as a text


def trimmed(text):
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def load(code, name):
    module = types.ModuleType(re.sub(r"\W", "_", name.rsplit(".", 1)[0]))
    module.__file__ = name
    sys.modules[module.__name__] = module  # dataclasses look for it there
    exec(code, module.__dict__)
    return module


def run_main(code, data):
    fd = os.memfd_create("input")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    out = os.memfd_create("output")
    os.dup2(out, 1)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=False)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit as e:
        if e.code not in (None, 0):
            raise
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
    return os.pread(out, 1 << 20, 0).decode("utf-8", "replace")


def run_command(command, source, name):
    with open(name, "w") as f:
        f.write(source)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv("/bin/bash", ["/bin/bash", "-c", command])


def limit(cpu_s, wall_s):
    """in a child: a call that takes too long is killed, whatever it catches"""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def confine():
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def in_child(work, private):
    """exit status of work() in a process of its own; private: what it must not have"""
    pid = os.fork()
    if pid:
        status = os.waitpid(pid, 0)[1]
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # what it may have started
        return status
    try:
        os.close(private)
        confine()
        os._exit(0 if work() else 1)
    except BaseException:
        os._exit(1)


# ---- where ----

def traced(program, code, example, name):
    """(lines that were run, did it pass, seconds)"""
    lines = set()

    def on_line(frame, event, _):
        if frame.f_code.co_filename != "<program>":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return on_line

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 0.5)
    began = time.process_time()
    sys.settrace(on_line)
    try:
        good = bool(example.passes(program, code, name))
    except BaseException:
        good = False
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return sorted(lines), good, time.process_time() - began


def look(source, code, examples, name, private):
    """what each example runs: [(lines, good, seconds)]; it is only a hint, so a program may lie here"""
    seen = []
    for example in examples:
        r, w = os.pipe()

        def work():
            signal.setitimer(signal.ITIMER_REAL, 3)
            if example.command is None:
                os.write(w, json.dumps(traced(source, code, example, name)).encode()[:60000])
                return True
            return example.passes(source, code, name)

        status = in_child(work, private)
        os.close(w)
        try:
            lines, good, seconds = json.loads(os.read(r, 65536))
            seen.append((set(map(int, lines)), bool(good), float(seconds)))
        except (ValueError, TypeError):
            seen.append((set(), status == 0 and example.command is not None, 0.5))
        os.close(r)
    return seen


def suspicion(seen):
    bad = sum(not good for _, good, _ in seen)
    score = {}
    for line in {x for lines, _, _ in seen for x in lines}:
        fail = sum(line in lines and not good for lines, good, _ in seen)
        hit = sum(line in lines for lines, _, _ in seen)
        score[line] = fail / math.sqrt(bad * hit) if fail else 0.0
    return score


# ---- generated inputs ----

PROBES = 48
PROBE_S = 0.02
DOUBTS = 240      # probes of one that looks for doubts,
DOUBTS_LEAST = 6  # and how many of them must have an answer
RAISED = "ffff"
LATE_MOST = 6
WALL_S = 4          # of what sleeps; what runs has less, and a busy machine is not its fault
LIMIT_LEAST = 0.03  # seconds; an example that ends does so within a few milliseconds


def literal_call(example):
    """(function, [arguments]) of a call whose arguments are written out, or None. f(2) is True has one, too."""
    try:
        tree = ast.parse(example.call.strip(), mode="eval").body
        call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call))
        return (ast.unparse(call.func), [ast.literal_eval(a) for a in call.args]) if not call.keywords else None
    except (ValueError, SyntaxError, AttributeError, TypeError, StopIteration):
        return None


def neighbours(v):
    """values of the same kind, as small changes as there are; a sign stays what it is"""
    if isinstance(v, bool):
        return [not v]
    if isinstance(v, (int, float)):
        return [w for w in (v + 1, v - 1, v * 2, v + 3) if (w < 0) == (v < 0) and w]
    if isinstance(v, (str, list, tuple)):
        more = [v[1:], v[:-1], v[::-1], v + v[:1], v[:len(v) // 2]] if len(v) > 1 else [v + v]
        if isinstance(v, list) and v:
            more += [[w] + v[1:] for w in neighbours(v[0])[:2]] + [v[:-1] + [w] for w in neighbours(v[-1])[:1]]
        return more
    return []


def further(v):
    """more of them, and larger changes: an example's list is short, and what is wrong may show in a long one"""
    if isinstance(v, dict):
        pairs = list(v.items())
        return [dict(pairs[:i] + pairs[i + 1:]) for i in range(len(pairs))] + [
            dict(pairs[:i] + [(k, w)] + pairs[i + 1:]) for i, (k, x) in enumerate(pairs) for w in further(x)[:2]] + [
            dict(pairs[:i] + [(w, x)] + pairs[i + 1:]) for i, (k, x) in enumerate(pairs) for w in further(k)[:2]]
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        more = (v * 10 + 7, v // 2, v + 0.5 if isinstance(v, float) else v + 10, type(v)(1), type(v)(2))
        return neighbours(v) + [type(v)(0)] + [w for w in more if (w < 0) == (v < 0) and w]
    more = neighbours(v)
    if isinstance(v, (str, list, tuple)) and v:
        more += [v + v, v + v + v, v[-1:] + v[:-1], v[1:] + v[:1], v + v[::-1], v[:0], v[:1], v[:2], v[:1] * 3]
    if isinstance(v, str) and v:
        more += [v.swapcase(), v.replace(" ", ""), v + " ", v + " " + v, "".join(sorted(v))]
    if isinstance(v, list):
        more += [v[:i] + [w] + v[i + 1:] for i in range(min(len(v), 12)) for w in further(v[i])[:3]]
        more += [v[:i] + v[i + 1:] for i in range(min(len(v), 12))]
        if v and all(type(x) in (int, float) for x in v):
            more += [[type(x)(k) for x in v] for k in (0, 1, 2)] + [sorted(v), sorted(v, reverse=True)]
    return more


def probes(examples, near=neighbours, most=PROBES):
    """calls like those of the examples"""
    known = [c for c in (literal_call(x) for x in examples if x.call is not None) if c]
    out = []
    for func, args in known:
        for i in range(len(args)):
            others = [b[i] for f, b in known if f == func and len(b) == len(args)]
            for v in near(args[i]) + others:
                text = "%s(%s)" % (func, ", ".join(map(repr, args[:i] + [v] + args[i + 1:])))
                if text not in out:
                    out.append(text)
    step = max(1, len(out) // most)
    return [compile(c, "<probe>", "eval") for c in out[::step][:most]]


def plain(v):
    """a value as the examples compare it: 5 is 5.0 and True is 1"""
    if isinstance(v, (bool, int, float)):
        return repr(float(v)) if abs(v) < 1 << 53 else str(v)
    if isinstance(v, (list, tuple)):
        return "%s(%s)" % (type(v).__name__, ",".join(map(plain, v)))
    if isinstance(v, (set, frozenset)):
        return "set(%s)" % ",".join(sorted(map(plain, v)))
    if isinstance(v, dict):
        return "dict(%s)" % ",".join(sorted(plain(k) + ":" + plain(x) for k, x in v.items()))
    return repr(v)


def shown(v):
    """the same for a whole answer, where "5" is 5 as well"""
    if isinstance(v, str):
        try:
            return plain(ast.literal_eval(v))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    return plain(v)


def acts(code, calls, name, to):
    """in a child: four letters for each probe, ---- where it ran out of time; every exception is the same answer"""
    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    said = ""
    for call in calls:
        signal.setitimer(signal.ITIMER_PROF, PROBE_S)
        try:
            said += "%04x" % (zlib.crc32(shown(eval(call, load(code, name).__dict__)).encode()) & 0xffff)
        except TimeoutError:
            said += "----"
        except BaseException:
            said += RAISED
        signal.setitimer(signal.ITIMER_PROF, 0)
    os.write(to, said.encode())
    return True


# ---- the search ----

def texts_of(examples):
    out = []
    for x in examples:
        for text in (x.call or "", x.text):
            with contextlib.suppress(SyntaxError, ValueError):
                out += [n.value for n in ast.walk(ast.parse(text.strip())) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return sorted({t for t in out if 3 < len(t) < 40})


def ranked(source, score, given):
    """(number, edit), likeliest first. The number does not depend on the score: shards share by it."""
    seen = set()
    out = []
    for edit in Edits(Program(source), given).all():
        rule, line, at, cut, new, bonus = edit
        if (at, cut, new) in seen:
            continue
        seen.add((at, cut, new))
        here = score.get(line, 0.0 if score else 1.0)
        out.append((-(here + 0.6 * (LIKELY[rule] + bonus)), len(out), edit))
    out.sort(key=lambda c: c[:2])
    return [(number, edit) for _, number, edit in out]


def is_starved(status):
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM


class Search:
    def __init__(self, ask, out):
        self.ask = ask
        self.out = out
        self.source = ask["source"]
        self.name = ask.get("name", "main.py")
        self.examples = [Example(x) for x in ask["examples"]]
        self.tried = 0
        self.late = 0
        self.starved = False  # a candidate was ended by the clock on the wall: perhaps others had the processor

    def say(self, **what):
        os.write(self.out, (json.dumps(what) + "\n").encode())

    def plan(self):
        code = compile(self.source, "<program>", "exec")
        seen = self.seen = look(self.source, code, self.examples, self.name, self.out)
        # An example that failed before is tried first: a wrong candidate then fails sooner.
        self.examples = [x for _, x in sorted(zip(seen, self.examples), key=lambda p: p[0][1])]
        most = self.ask.get("limit_ms", 500) / 1000
        ended = [s for _, _, s in seen if s < 0.4]
        self.limit = min(most, max(0.05, 50 * max(ended))) if ended else most / 2
        if any(x.command is not None for x in self.examples):
            self.limit = 10
        self.probes = probes(self.examples)
        return ranked(self.source, suspicion(seen), texts_of(self.examples))

    def run(self):
        every = self.plan()
        candidates = every[:self.ask.get("most", 3000)]
        raw = self.source.encode()
        self.say(candidates=len(candidates))
        for rank, (number, (rule, _, at, cut, new, _)) in enumerate(candidates):
            if number % self.ask.get("shards", 1) != self.ask.get("shard", 0):
                continue
            text = (raw[:at] + new.encode() + raw[at + cut:]).decode()
            if self.tried % 16 == 0:
                self.say(at=rank, tried=self.tried)
            if self.passes(text):
                self.say(found=rank, rule=rule, at=at, cut=cut, new=new, acts=self.acts(text))
        self.say(over=True, tried=self.tried, **({"cut": True} if self.starved or len(every) > len(candidates) else {}))

    def passes(self, text):
        try:
            code = compile(text, "<program>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        self.tried += 1
        for group in self.groups():
            status = in_child(lambda: self.child(text, code, group), self.out)
            if status:
                self.note(status)
                return False
        return True

    def note(self, status):
        """Where many run away most of the time is spent on waiting for them: then each has less."""
        self.starved |= is_starved(status)
        self.late += os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
        if self.late == LATE_MOST and not any(x.command for x in self.examples):
            self.limit = max(LIMIT_LEAST, self.limit / 2)
            self.late = 0

    def acts(self, text):
        code = compile(text, "<program>", "exec")
        r, w = os.pipe()

        def work():
            signal.setitimer(signal.ITIMER_REAL, WALL_S)
            return acts(code, self.probes, self.name, w)

        in_child(work, self.out)
        os.close(w)
        said = os.read(r, 4 * max(PROBES, DOUBTS)).decode("ascii", "replace")
        os.close(r)
        return said

    def groups(self):
        """calls share a process; a call that reads stdin or executes another program has its own"""
        calls = [x for x in self.examples if x.call is not None]
        return ([calls] if calls else []) + [[x] for x in self.examples if x.call is None]

    def child(self, text, code, group):
        limit(self.limit, max(WALL_S, 4 * self.limit))
        return all(x.passes(text, code, self.name) for x in group)


# ---- doubts ----

KILLS = 2  # examples that must fail for an edit to be out of question
ADDS = {"first": "a statement", "guard": "a condition", "extend": "a condition"}


def forced(program, at, end):
    """the smallest condition that the patch is in, if it is in one, as True and as False"""
    tests = [getattr(n, "test", None) for n in ast.walk(program.tree)] + [
        t for n in ast.walk(program.tree) for t in getattr(n, "ifs", [])]
    tests += [n for n in ast.walk(program.tree) if isinstance(n, (ast.Compare, ast.BoolOp))]
    spans = [program.span(t) for t in tests if isinstance(t, ast.expr)]
    around = [(a, b) for a, b in spans if a <= at and end <= b]
    if not around:
        return []
    a, b = min(around, key=lambda s: s[1] - s[0])
    return [(a, b - a, "True"), (a, b - a, "False")]


class Doubt(Search):
    """Do the examples say what the program has to be? They do if every line of it is run by one of them, and if whatever
    else could stand anywhere in it fails KILLS of them, or does the same with every other input that we can think
    of: all mutants of the repaired program are killed, each more than once, so that no single example decides alone."""

    def run(self):
        why = self.why()
        if why:
            self.say(doubt=why[:300])
        self.say(over=True, tried=self.tried)

    def why(self):
        at, n = self.ask["patch"]
        adds = ADDS.get(self.ask.get("rule"))
        if adds:
            return "%s was added: what else is missing no example says" % adds
        self.plan()
        program = Program(self.source)
        missed = sorted(inner_lines(program.tree) - {x for lines, _, _ in self.seen for x in lines})
        if missed and not any(x.command for x in self.examples):
            return "no example runs line %d" % missed[0]
        for edit in forced(program, at, at + n):
            if self.failing(self.edited(edit)) < 1:
                return "the examples pass as well where this condition is always %s" % edit[2]
        self.probes = probes(self.examples, further, DOUBTS)
        mine = self.acts(self.source)
        if len([1 for i in range(0, len(mine), 4) if mine[i:i + 4] not in ("----", RAISED)]) < DOUBTS_LEAST:
            return "there are no other inputs to compare with"
        return self.rival(program, mine)

    def edited(self, edit):
        at, cut, new = edit
        raw = self.source.encode()
        return (raw[:at] + new.encode() + raw[at + cut:]).decode()

    def failing(self, text):
        """how many examples fail, no more than KILLS of them are looked for"""
        try:
            code = compile(text, "<program>", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return KILLS
        self.tried += 1
        bad = 0
        for group in self.groups():
            status = in_child(lambda: self.count(text, code, group, KILLS - bad), self.out)
            self.starved |= is_starved(status)
            bad += os.WEXITSTATUS(status) if os.WIFEXITED(status) else KILLS
            if bad >= KILLS:
                break
        return bad

    def count(self, text, code, group, most):
        """in a child, which exits with how many of the group failed"""
        def late(*_):
            raise TimeoutError

        limit(self.limit, max(WALL_S, 4 * self.limit) * 2)
        if group[0].call is not None:
            signal.signal(signal.SIGPROF, late)
        bad = 0
        for x in group:
            signal.setitimer(signal.ITIMER_PROF, self.limit)
            try:
                bad += not x.passes(text, code, self.name)
            except BaseException:
                bad += 1
            if bad >= most:
                break
        os._exit(bad)

    def rival(self, program, mine):
        """another edit that passes all examples but at most one, and that another input could tell from ours"""
        seen = set()
        for rule, line, at, cut, new, _ in Edits(program, texts_of(self.examples)).all():
            if (at, cut, new) in seen:
                continue
            seen.add((at, cut, new))
            text = self.edited((at, cut, new))
            bad = self.failing(text)
            if bad < (1 if rule in ADDS else KILLS) and self.acts(text) != mine:
                return "%s with %r in place of %r in line %d" % (
                    "the examples pass as well" if not bad else "only one example fails", new,
                    program.raw[at:at + cut].decode(), line)
        return "another change could not be tried to its end" if self.starved else None


def inner_lines(tree):
    """the lines on which a statement of a function begins"""
    out = set()
    for func in ast.walk(tree):
        if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = func.body[1:] if is_docstring(func.body[0]) else func.body
            out |= {n.lineno for stmt in body for n in ast.walk(stmt) if isinstance(n, ast.stmt) and not isinstance(
                n, (ast.Global, ast.Nonlocal))}
    return out


def main():
    ask = json.load(sys.stdin)
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(os.open("/dev/null", os.O_RDWR), 1)  # the output of a program that is traced is dropped
    sys.path.insert(0, os.getcwd())
    import warnings
    warnings.simplefilter("ignore")
    (Doubt if "patch" in ask else Search)(ask, out).run()


if __name__ == "__main__":
    main()
