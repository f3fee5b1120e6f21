#!/usr/bin/env python3
"""model.py - a model that replies from a script, with the API of chat completions.

model.py FOLDER: serves on a free port of the loopback and writes its number to FOLDER/port. A task whose
text begins with `script NAME` is answered from FOLDER/NAME.json, a list: a text; {"error": why};
{"never": true}. Which of them is next follows from the conversation: nothing is remembered here."""
import http.server
import json
import os
import sys
import time

folder = sys.argv[1]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def reply(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = [m for m in asked["messages"] if m["role"] == "user"][0]["content"]
        said = said if isinstance(said, str) else said[0]["text"]
        name = said.split("script ", 1)[1].split()[0]
        turn = sum(m["role"] == "assistant" for m in asked["messages"])
        with open(f"{folder}/{name}.asked", "a") as f:
            f.write(json.dumps({"key": self.headers.get("Authorization"), **asked}) + "\n")
        with open(f"{folder}/{name}.json") as f:
            item = json.load(f)[turn]
        if isinstance(item, dict) and "error" in item:
            self.reply(400, "application/json", json.dumps({"error": {"message": item["error"]}}))
            return
        if isinstance(item, dict):
            time.sleep(20)
        self.answer(asked, item)

    def answer(self, asked, text):
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        if not asked.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self.reply(200, "application/json", json.dumps({"choices": [choice], "usage": usage}))
            return
        events = [{"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                  {"choices": [], "usage": usage}]
        lines = [f"data: {json.dumps(e)}\n\n" for e in events] + ["data: [DONE]\n\n"]
        self.reply(200, "text/event-stream", "".join(lines))


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # the client has disconnected


server = Server(("127.0.0.1", 0), Handler)
with open(f"{folder}/port.new", "w") as f:
    f.write(str(server.server_port))
os.rename(f"{folder}/port.new", f"{folder}/port")
server.serve_forever()
