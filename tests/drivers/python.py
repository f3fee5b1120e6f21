"""python.py - the smallest driver that keeps its promises (docs/languages.md); for tests only."""
import ast, builtins, json, os, signal, socket, sys, traceback

fd = os.dup(3)
os.close(3)
channel = socket.socket(fileno=fd)
channel.set_inheritable(False)
lines = channel.makefile("r", encoding="utf-8", newline="\n")
names = {"__name__": "__main__", "__builtins__": builtins}
count, cell = 0, None


def say(**event):
    sys.stdout.flush()
    sys.stderr.flush()
    channel.sendall(json.dumps(event).encode() + b"\n")


def read_line(prompt="", password=False):
    say(ev="input", id=cell, prompt=str(prompt), password=password)
    while True:
        op = json.loads(lines.readline())
        if op["op"] == "input":
            return op["text"]


def run(code):
    tree = ast.parse(code, "<cell %s>" % cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell %s>" % cell, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "<cell %s>" % cell, "eval"), names)
        if value is not None:
            say(ev="result", id=cell, main=True, data={"text/plain": repr(value)}, extra={})


def frames_of(error):
    return [{"file": f.filename, "line": f.lineno or 0, "name": f.name, "text": f.line or ""}
            for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]


def main():
    global count, cell
    builtins.input = read_line
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(ev="ready", language="python", version=sys.version.split()[0])
    for line in lines:
        op = json.loads(line)
        if op["op"] != "run":
            continue
        cell, status = op["id"], "ok"
        count += 1
        os.environ.update(op.get("env", {}))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            try:
                run(op["code"])
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            status = "interrupted"
        except BaseException as error:
            status = "error"
            say(ev="error", id=cell, name=type(error).__name__, value=str(error),
                frames=frames_of(error), text=traceback.format_exc())
        say(ev="end", id=cell, status=status, count=count)


main()
