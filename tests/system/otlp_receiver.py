"""otlp_receiver.py FOLDER - a collector that accepts OTLP/HTTP JSON and checks it against the published schema
(opentelemetry-proto, trace/v1/trace.proto, with the JSON mapping of the OTLP specification).

Writes FOLDER/port, FOLDER/spans (one JSON object per span, with the attributes as an object) and FOLDER/errors (what
was wrong with a request). While FOLDER/refuse exists, requests are answered with 503."""
import http.server
import json
import os
import re
import sys

folder = sys.argv[1]
SPAN = {"traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
        "attributes", "droppedAttributesCount", "events", "droppedEventsCount", "links", "droppedLinksCount", "status"}
VALUES = {"stringValue": str, "boolValue": bool, "intValue": str, "doubleValue": float, "arrayValue": dict, "kvlistValue": dict}


def need(true, what):
    if not true:
        raise ValueError(what)


def members(doc, known, required):
    need(isinstance(doc, dict), f"not an object: {doc!r}")
    need(set(doc) <= known, f"unknown members {set(doc) - known}")
    need(required <= set(doc), f"missing members {required - set(doc)}")


def attributes(all_):
    need(isinstance(all_, list), "attributes are an array")
    out = {}
    for one in all_:
        members(one, {"key", "value"}, {"key", "value"})
        need(isinstance(one["key"], str) and one["key"] and one["key"] not in out, f"key {one['key']!r}")
        need(isinstance(one["value"], dict) and len(one["value"]) == 1, f"value {one['value']!r}")
        (kind, value), = one["value"].items()
        need(kind in VALUES and isinstance(value, VALUES[kind]), f"{kind} {value!r}")
        if kind == "intValue":
            need(re.fullmatch(r"-?[0-9]+", value) and -2**63 <= int(value) < 2**63, f"intValue {value!r}")
        out[one["key"]] = int(value) if kind == "intValue" else value
    return out


def span(s):
    members(s, SPAN, {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"})
    for name, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
        if name in s:
            need(isinstance(s[name], str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", s[name]), f"{name} {s[name]!r}")
            need(set(s[name]) != {"0"}, f"{name} is zero")
    need(isinstance(s["name"], str) and s["name"], "name")
    need(isinstance(s["kind"], int) and 1 <= s["kind"] <= 5, f"kind {s['kind']!r}")
    for name in ("startTimeUnixNano", "endTimeUnixNano"):
        need(isinstance(s[name], str) and re.fullmatch(r"[1-9][0-9]{18}", s[name]), f"{name} {s[name]!r}")
    need(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]), "it ends before it starts")
    need(isinstance(s.get("flags", 0), int) and 0 <= s.get("flags", 0) < 2**32, "flags")
    if "status" in s:
        members(s["status"], {"code", "message"}, set())
        need(s["status"].get("code", 0) in (0, 1, 2), "status.code")
    return dict(s, attributes=attributes(s.get("attributes", [])))


def request(doc):
    members(doc, {"resourceSpans"}, {"resourceSpans"})
    for resource in doc["resourceSpans"]:
        members(resource, {"resource", "scopeSpans", "schemaUrl"}, {"resource", "scopeSpans"})
        need(attributes(resource["resource"]["attributes"]).get("service.name"), "service.name")
        for scope in resource["scopeSpans"]:
            members(scope, {"scope", "spans", "schemaUrl"}, {"spans"})
            members(scope.get("scope", {}), {"name", "version", "attributes", "droppedAttributesCount"}, set())
            need(isinstance(scope["spans"], list) and scope["spans"], "spans")
            yield from map(span, scope["spans"])


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 503 if os.path.exists(folder + "/refuse") else 200
        try:
            need(self.path == "/v1/traces", f"path {self.path}")
            need(self.headers["Content-Type"] == "application/json", f"type {self.headers['Content-Type']}")
            need(self.headers["X-Collector"] == "tests", "the header of the settings")
            spans = list(request(json.loads(body)))
            if status == 200:
                # In one write, so that a reader never sees a part of a line.
                out = os.open(folder + "/spans", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
                os.write(out, "".join(json.dumps(s) + "\n" for s in spans).encode())
                os.close(out)
        except Exception as e:
            status = 400
            with open(folder + "/errors", "a") as out:
                out.write(f"{type(e).__name__}: {e}\n")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
with open(folder + "/port.new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
