"""A WebSocket client in a few lines of the standard library, for tests of /v1/socket.

    python3 wsclient.py URL KEY SCRIPT

SCRIPT is Python, run with: send(dict), raw(bytes), next_text(), next_any(), until(op, ch), frames().
"""
import base64, json, os, socket, struct, sys
from urllib.parse import urlparse


class Ws:
    def __init__(self, url, key, protocols=("atoll.v1",), header=True):
        u = urlparse(url)
        self.s = socket.create_connection((u.hostname, u.port), timeout=120)
        lines = [f"GET {u.path} HTTP/1.1", f"Host: {u.hostname}:{u.port}", "Upgrade: websocket",
                 "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode()]
        if protocols:
            lines.append("Sec-WebSocket-Protocol: " + ", ".join(protocols))
        if header:
            lines.append("X-API-Key: " + key)
        self.s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.buf = b""
        while b"\r\n\r\n" not in self.buf:
            more = self.s.recv(4096)
            if not more:
                break
            self.buf += more
        self.head, _, self.buf = self.buf.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])

    def frame(self, opcode, payload):
        mask = os.urandom(4)
        n = len(payload)
        size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 \
            else b"\xff" + struct.pack(">Q", n)
        self.s.sendall(bytes([0x80 | opcode]) + size + mask +
                       bytes(b ^ mask[i & 3] for i, b in enumerate(payload)))

    def send(self, doc):
        self.frame(1, json.dumps(doc).encode())

    def stdin(self, ch, data):
        self.frame(2, struct.pack(">IB", ch, 0) + data)

    def need(self, n):
        while len(self.buf) < n:
            more = self.s.recv(65536)
            if not more:
                raise EOFError
            self.buf += more
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def next(self):
        """('text', dict) | ('bytes', ch, stream, offset, data) | ('close', code)"""
        while True:
            first, second = self.need(2)
            n = second & 127
            if n == 126:
                n = struct.unpack(">H", self.need(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.need(8))[0]
            data = self.need(n)
            op = first & 15
            if op == 9:
                self.frame(10, data)
            elif op == 8:
                return ("close", struct.unpack(">H", data[:2])[0] if data else 1005)
            elif op == 1:
                return ("text", json.loads(data))
            elif op == 2:
                ch, stream, offset = struct.unpack(">IBQ", data[:13])
                return ("bytes", ch, stream, offset, data[13:])

    def until(self, op, ch=None):
        """All frames up to the text frame with this op (and channel), that one last."""
        seen = []
        while True:
            f = self.next()
            seen.append(f)
            if f[0] == "close":
                raise EOFError(f"closed {f[1]} while waiting for {op}: {seen}")
            if f[0] == "text" and f[1].get("op") == op and (ch is None or f[1].get("ch") == ch):
                return seen


def joined(frames, ch, stream=0):
    """The bytes of one stream; fails when an offset does not follow the one before."""
    out, at = b"", None
    for f in frames:
        if f[0] == "bytes" and f[1] == ch and f[2] == stream:
            assert at is None or f[3] == at, f"offset {f[3]} after {at}"
            out += f[4]
            at = f[3] + len(f[4])
    return out


if __name__ == "__main__":
    URL, KEY = sys.argv[1], sys.argv[2]
    exec(compile(sys.argv[3], "script", "exec"))
