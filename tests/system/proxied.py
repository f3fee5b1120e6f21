"""What listens inside a box in proxy.sh: one server with good and bad manners.

127.0.0.1:8000 and [::1]:8001. The path says how it behaves.
"""
import asyncio, base64, hashlib, json, resource, struct, urllib.parse

left = 0  # clients that hung up while they were being served
begun = 0  # a /quiet one


async def body_of(r, headers):
    n, digest = 0, hashlib.sha256()
    if headers.get("transfer-encoding") == "chunked":
        while True:
            size = int((await r.readline()).split(b";")[0], 16)
            piece = await r.readexactly(size)
            await r.readexactly(2)
            if not size:
                break
            n += size
            digest.update(piece)
    else:
        to_go = int(headers.get("content-length", 0))
        while to_go:
            piece = await r.read(min(to_go, 1 << 20))
            if not piece:
                break
            to_go -= len(piece)
            n += len(piece)
            digest.update(piece)
    return n, digest.hexdigest()


def plain(w, text, status="200 OK", more=""):
    text = text.encode()
    w.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{more}\r\n".encode() + text)


async def echo(r, w, q, method, path, pairs):
    n, digest = await body_of(r, dict(pairs))
    plain(w, json.dumps({"method": method, "path": path, "headers": pairs, "n": n, "sha256": digest}),
          more="Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nKeep-Alive: timeout=5\r\nX-Here: yes\r\n")


async def manners(r, w, q, *_):
    plain(w, "", more="Set-Cookie: a=1; Domain=localhost; Path=/; HttpOnly\r\nSet-Cookie: b=domain=x;DOMAIN = .localhost; Secure\r\n"
          "Set-Cookie: c=1; domain;  Max-Age=5\r\nSet-Cookie: d=1\r\nSet-Cookie: e; path=/;domain=\r\n"
          "Clear-Site-Data: \"*\"\r\nX-Kept: yes\r\n")


async def big(r, w, q, *_):
    n = int(q["n"])
    w.write(f"HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n".encode())
    piece = bytes(range(256)) * 256
    while n:
        w.write(piece[:n])
        n -= min(n, len(piece))
        await w.drain()


async def events(r, w, q, *_):
    global left
    w.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n")
    await w.drain()
    i, most = 0, int(q.get("n", 0))
    while i + 1 < most:
        i += 1
        w.write(b"data: %d\n\n" % i)
        await w.drain()
    if not most:
        await r.read()  # until it hangs up
        left += 1


async def chunks(r, w, *_):
    w.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
            b"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-T: 1\r\n\r\n")


async def early(r, w, *_):
    w.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    plain(w, "at last")


async def interim(r, w, *_):  # never the final answer
    while True:
        w.write(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
        await w.drain()


async def none(r, w, q, *_):
    w.write(f"HTTP/1.1 {q['status']} X\r\nX-Here: yes\r\n\r\n".encode())


async def says(r, w, q, *_):  # whatever is wanted, and hangs up
    w.write(q["text"].encode("latin-1"))


async def quiet(r, w, *_):
    global left, begun
    begun = 1
    await r.read()
    left += 1


async def opens(r, w, q, *_):
    async def later():
        await asyncio.sleep(float(q["after"]))
        await asyncio.start_server(client, "127.0.0.1", int(q["port"]))
    asyncio.ensure_future(later())
    plain(w, "soon")


async def how_many_left(r, w, *_):
    plain(w, str(left))


async def has_begun(r, w, *_):
    plain(w, f"begun: {begun}\n")


async def websocket(r, w, q, method, path, pairs):
    key = dict(pairs)["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    w.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
             f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode() + b"\x81\x05hello")
    while True:
        first, second = await r.readexactly(2)
        n = second & 127
        if n == 126:
            n = struct.unpack(">H", await r.readexactly(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", await r.readexactly(8))[0]
        mask = await r.readexactly(4)
        text = bytes(b ^ mask[i & 3] for i, b in enumerate(await r.readexactly(n)))
        size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n)
        w.write(bytes([first]) + size + text)
        await w.drain()
        if first & 15 == 8:
            return


PATHS = {"/echo": echo, "/manners": manners, "/big": big, "/events": events, "/chunks": chunks, "/early": early, "/interim": interim,
         "/none": none, "/says": says, "/quiet": quiet, "/open": opens, "/left": how_many_left, "/begun": has_begun,
         "/ws": websocket}


async def client(r, w):
    try:
        head = (await r.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        pairs = [[a.lower(), b.strip()] for a, b in (x.split(":", 1) for x in head[1:] if x)]
        path, _, query = target.partition("?")
        q = dict(urllib.parse.parse_qsl(query, encoding="latin-1"))
        await PATHS[path](r, w, q, method, target, pairs)
        await w.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        w.close()


kept = 0


async def keeper(r, w):
    """Port 8030 keeps its connections: number of the connection, number of the request on it. /drop is answered only as the first
    request of a connection."""
    global kept
    kept += 1
    mine, n = kept, 0
    try:
        while True:
            head = (await r.readuntil(b"\r\n\r\n")).decode("latin-1")
            n += 1
            if head.split(" ")[1] == "/drop" and n > 1:
                return
            plain(w, f"{mine} {n}")
            await w.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        w.close()


async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    await asyncio.start_server(client, "127.0.0.1", 8000, backlog=1024)
    await asyncio.start_server(client, "::1", 8001)
    await asyncio.start_server(keeper, "127.0.0.1", 8030)
    print("serving", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
