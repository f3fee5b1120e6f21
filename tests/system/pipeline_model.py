"""pipeline_model.py - a model for pipeline_model.sh: it plans, codes and debugs by rote, behind an API of chat
completions. pipeline_model.py FILE: serves on a free port of the loopback and writes its number there. Its first
program is wrong where the task requests it; the debugger fixes that. A task with `racing` has a right and a wrong one,
and one with `thimble` needs a file and a variable of a box."""
import http.server
import itertools
import json
import os
import sys
import threading

PLAN = {"reasoning": "r", "language": "python", "steps": ["print"], "packages": [], "entry": "main.py",
        "checks": [{"kind": "stdout_contains", "arg": "right"}], "inputs_needed": [], "assumptions": [], "confidence": 0.9}
CODE = {"reasoning": "r", "files": [{"path": "main.py", "content": ""}], "entry": "main.py", "packages": [], "stdin": None}
DIAGNOSIS = {"reasoning": "r", "category": "wrong_output", "root_cause": "it says wrong", "file": "main.py", "line": 1,
             "action": "edit", "detail": "it says right now", "edits": [{"path": "main.py", "old": "wrong", "new": "right"}],
             "packages": [], "question": None, "confidence": 0.9}
count, lock, hung_up = itertools.count(), threading.Lock(), []


def answer(asked):
    said = json.dumps(asked["messages"])
    form = asked["response_format"]["json_schema"]["name"] if "response_format" in asked else "?"
    if form == "plan":
        with open(sys.argv[1] + ".languages", "w") as f:
            schema = asked["response_format"]["json_schema"]["schema"]
            f.write(" ".join(sorted(schema["properties"]["language"]["enum"])))
        if "ask me" in said and "forty-two" not in said:
            return {**PLAN, "inputs_needed": [{"name": "number", "question": "Which number?"}]}
        return PLAN
    if form == "artifact":
        with lock:
            n = next(count)
        word = "wrong" if "stubborn" in said or "first wrong" in said or ("racing" in said and n % 2 == 0) else "right"
        if "thimble" in said:  # the file and the variable of a box
            text = f"import os; open('trace', 'w'); print(open('data').read().strip() + os.environ['END'] if {n} % 2 else 'none', {n})\n"
            return {**CODE, "files": [{"path": "main.py", "content": text}]}
        before = "print('x' * 40000); " if "at length" in said else ""
        return {**CODE, "files": [{"path": "main.py", "content": f"{before}print('{word}', {n})\n"}]}
    if "stubborn" in said:
        return {**DIAGNOSIS, "edits": [{"path": "main.py", "old": "print(", "new": "print('still', "}]}
    return DIAGNOSIS


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "hang up" in json.dumps(asked["messages"]):
            with lock:
                hung_up.append(1)
            if len(hung_up) == 1:
                self.close_connection = True
                return
        text = json.dumps(answer(asked))
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
        if asked.get("stream"):
            events = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
                      {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
            kind, body = "text/event-stream", "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            kind, body = "application/json", json.dumps({"choices": [choice], "usage": usage})
        body = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
