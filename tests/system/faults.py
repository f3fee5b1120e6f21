#!/usr/bin/env python3
"""A server of language models that misbehaves: the model's name says how.

faults.py PORTFILE [CERT KEY]   serves on a free port of the loopback, and writes its number
GET /count/NAME                 how often that model was asked, and the last body
"""
import asyncio, json, ssl, struct, socket, sys

asked, bodies = {}, {}


def chunk(text=None, finish=None, **more):
    delta = {} if text is None else {"content": text}
    return "data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":60}}}\n\n'
DONE = "data: [DONE]\n\n"
GOOD = chunk("four") + chunk("ty-two") + chunk(finish="stop") + USAGE + DONE


def head(status=200, kind="text/event-stream", **more):
    extra = "".join("%s: %s\r\n" % (k.replace("_", "-"), v) for k, v in more.items())
    return "HTTP/1.1 %d X\r\ncontent-type: %s\r\nconnection: close\r\n%s\r\n" % (status, kind, extra)


def error(status, text, what="server_error", **more):
    return head(status, "application/json", **more) + json.dumps({"error": {"message": text, "type": what, "code": status}})


async def say(w, text):
    w.write(text.encode())
    await w.drain()


async def ok(w, n):
    await say(w, head() + GOOD)


async def drip(w, n):
    await say(w, head())
    for c in chunk("slow") + chunk(finish="stop") + USAGE + DONE:
        await say(w, c)
        await asyncio.sleep(0.006)


async def silence(w, n):
    await say(w, head() + chunk("a word"))
    await asyncio.sleep(60)


async def nothing(w, n):
    await asyncio.sleep(60)


async def pings(w, n):  # comments are signs of life, and no answer
    await say(w, head())
    while True:
        await say(w, ": still here\n\n")
        await asyncio.sleep(0.05)


async def endless(w, n):
    await say(w, head())
    piece = chunk("x" * 4000)
    while True:
        await say(w, piece)


async def huge(w, n):
    await say(w, head() + chunk("y" * (10 << 20)) + chunk(finish="stop") + DONE)


async def line(w, n):  # a line that does not end
    await say(w, head() + "data: ")
    while True:
        await say(w, "z" * 65536)


async def reset(w, n):
    await say(w, head() + chunk("half"))
    sock = w.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    w.transport.abort()


async def error200(w, n):
    if n > 1:
        return await ok(w, n)
    await say(w, head() + chunk("half") + 'data: {"error":{"message":"overloaded","type":"overloaded_error","code":529}}\n\n')


async def invalid200(w, n):
    await say(w, head() + 'data: {"error":{"message":"no such thing","type":"invalid_request_error","code":null}}\n\n')


async def client500(w, n):
    await say(w, error(500, "'messages' is required"))


async def storm(w, n):
    await say(w, error(429, "slow down", retry_after_ms="20"))


async def once429(w, n):
    await (ok(w, n) if n > 1 else say(w, error(429, "slow down", retry_after="0.05")))


async def later(w, n):
    await say(w, error(429, "retry tomorrow", retry_after="86400"))


async def denied(w, n):
    await say(w, error(401, "wrong key", what="authentication_error"))


async def quota(w, n):
    await say(w, error(429, "no money", what="insufficient_quota"))


async def noretry(w, n):
    await say(w, error(503, "down for good", x_should_retry="false"))


async def empty(w, n):
    await say(w, head())


async def cut(w, n):
    await say(w, head() + chunk("half of it"))


async def garbage(w, n):
    await say(w, head() + "data: {nonsense\n\n")


async def redirect(w, n):
    await say(w, head(302, location="http://127.0.0.1:1/"))


async def length(w, n):
    await say(w, head() + chunk('{"a": [1, 2') + chunk(finish="length") + USAGE + DONE)


async def lingers(w, n):  # the answer is complete, and the connection stays open
    await say(w, head() + GOOD)
    await asyncio.sleep(60)


async def wait(w, n):  # until the client cancels
    await say(w, head() + chunk("begun"))
    await asyncio.sleep(20)


HOW = {f.__name__: f for f in (ok, drip, silence, nothing, pings, endless, huge, line, reset, error200, invalid200,
                               client500, storm, once429, later, denied, quota, noretry, empty, cut, garbage, redirect,
                               length, lingers, wait)}


async def serve(r, w):
    try:
        top = (await r.readuntil(b"\r\n\r\n")).decode()
        path = top.split()[1]
        size = [l.split(":")[1] for l in top.split("\r\n") if l.lower().startswith("content-length:")]
        body = await r.readexactly(int(size[0])) if size else b""
        if path.startswith("/count/"):
            name = path[7:]
            await say(w, head(kind="application/json") + json.dumps({"asked": asked.get(name, 0), "body": bodies.get(name)}))
        else:
            name = json.loads(body)["model"]
            asked[name] = asked.get(name, 0) + 1
            bodies[name] = {"path": path, "headers": top.split("\r\n")[1:], "body": json.loads(body)}
            await HOW[name.split("-")[0]](w, asked[name])
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        try:
            w.close()
        except Exception:
            pass


async def main():
    tls = None
    if len(sys.argv) > 3:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[2], sys.argv[3])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    with open(sys.argv[1] + ".new", "w") as f:
        f.write(str(server.sockets[0].getsockname()[1]))
    import os
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    async with server:
        await server.serve_forever()


asyncio.run(main())
