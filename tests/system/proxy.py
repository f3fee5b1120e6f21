"""The client's side of proxy.sh, where curl is not enough: python3 proxy.py URL BOX SCRIPT"""
import base64, os, resource, selectors, socket, struct, sys
from urllib.parse import urlparse

u, box = urlparse(sys.argv[1]), sys.argv[2]
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))


def ask(path, method="GET", headers=(), port=8000, body=b""):
    s = socket.create_connection((u.hostname, u.port), timeout=120)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {port}-{box}.localhost:{u.port}", *headers]
    s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    return s


def until(s, text):
    got = b""
    while text not in got:
        more = s.recv(65536)
        if not more:
            return None
        got += more
    return got


def rest(s):
    """All that comes, and how it ended."""
    got = b""
    try:
        while more := s.recv(65536):
            got += more
        return got, "end"
    except ConnectionResetError:
        return got, "reset"


def websocket():
    return ask("/ws", headers=["Upgrade: websocket", "Connection: keep-alive, Upgrade",
                               "Sec-WebSocket-Version: 13",
                               "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode()])


def frame(opcode, text):
    n, mask = len(text), os.urandom(4)
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n)
    return bytes([0x80 | opcode]) + size + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(text))


exec(sys.argv[3])
