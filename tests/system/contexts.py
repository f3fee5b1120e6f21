#!/usr/bin/env python3
"""contexts.py - a client of cells, for api_contexts.sh. Asks the daemon at $url with $key.

	contexts.py resume BOX CONTEXT CODE SUPERVISOR   the cell's events, while its server is killed; then
	                                             /tmp/stop is made, for which CODE waits
	contexts.py seconds METHOD PATH [BODY]       how long an answer takes
	contexts.py side BOX A B                     two contexts at once
"""
import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

PLACE = urllib.parse.urlparse(os.environ["url"])
HEAD = {"X-API-Key": os.environ["key"]}


def ask(method, path, body=None, **head):
    c = http.client.HTTPConnection(PLACE.hostname, PLACE.port, timeout=120)
    c.request(method, path, json.dumps(body) if body is not None else None, {**HEAD, **head})
    return c.getresponse()


def server_of(supervisor):
    return int(subprocess.run(["pgrep", "-P", supervisor], capture_output=True, text=True,
                              check=True).stdout.split()[0])


class Cell:
    """Its events, and that none is missing or comes twice."""

    def __init__(self):
        self.text, self.results, self.end, self.at, self.number = b"", [], None, None, None

    def take(self, answer, until=None):
        """Until the end, or until so many bytes have come."""
        for line in answer:
            event = json.loads(line)
            if event["type"] == "start":
                self.number = event["cell"]
            elif event["type"] == "stdout":
                piece = event["data"].encode() if "data" in event else base64.b64decode(event["base64"])
                assert event["offset"] == len(self.text), (event["offset"], len(self.text))
                self.text += piece
            elif event["type"] == "result":
                self.results.append(event["data"]["text/plain"])
            elif event["type"] == "end":
                self.end = event
            self.at = event["at"]
            if self.end or (until is not None and len(self.text) >= until):
                return


def resume(box, context, code, supervisor):
    path = f"/v1/boxes/{box}/contexts/{context}/cells"
    cell, kills, stopped = Cell(), 0, 0
    answer = ask("POST", path, {"code": code}, Accept="application/x-ndjson")
    cell.take(answer, 1)
    while not cell.end:
        if kills < 3:
            os.kill(server_of(supervisor), signal.SIGKILL)
            kills += 1
        elif not stopped:
            stopped = ask("PUT", f"/v1/boxes/{box}/files?path=/tmp/stop", "").status
        try: # what is still on its way
            cell.take(answer)
        except (OSError, http.client.HTTPException, ValueError):
            pass
        deadline = time.monotonic() + 60
        while not cell.end:
            try:
                answer = ask("GET", f"{path}/{cell.number}/events?after={cell.at}")
                assert answer.status == 200, (answer.status, answer.read())
                cell.take(answer, len(cell.text) + 1 if not stopped else None)
                break
            except (OSError, http.client.HTTPException, ValueError):
                assert time.monotonic() < deadline
                time.sleep(0.02)
    print(json.dumps({"text": cell.text.decode(), "results": cell.results, "kills": kills,
                      "status": cell.end["status"], "truncated": cell.end["truncated"]}))


def seconds(method, path, body=None):
    began = time.monotonic()
    answer = ask(method, path, json.loads(body) if body else None)
    answer.read()
    print(answer.status, time.monotonic() - began)


def side(box, *contexts):
    """Each waits in its cell for a file that the other one makes."""
    def run(mine, other, name):
        body = {"code": "import os, time\nopen('/tmp/%s', 'w').close()\n"
                        "while not os.path.exists('/tmp/%s'): time.sleep(0.005)\n'%s'"
                        % (name, "ab".replace(name, ""), name), "timeout_ms": 10000}
        out[name] = json.loads(ask("POST", f"/v1/boxes/{box}/contexts/{mine}/cells", body).read())

    out = {}
    threads = [threading.Thread(target=run, args=(contexts[0], contexts[1], "a")),
               threading.Thread(target=run, args=(contexts[1], contexts[0], "b"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(out["a"]["status"], out["b"]["status"])


{"resume": resume, "seconds": seconds, "side": side}[sys.argv[1]](*sys.argv[2:])
