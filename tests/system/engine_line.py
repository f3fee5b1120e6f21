"""engine_line.py MODE PORT TARGET - the line between a gateway and an engine, for engine_faults.sh: listens on 127.0.0.1 and
127.0.0.2, port PORT, and passes bytes on to TARGET (a unix socket, or HOST:PORT). The file MODE says how, and may change at
any time: "pass"; "slow N", each answer N seconds late; "cut ADDRESS", connections to that address end, and new ones are refused."""
import os, socket, sys, threading, time

mode_file, port, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def mode():
    with open(mode_file) as f:
        return (f.read() or "pass").split()


def is_cut(address):
    return mode()[0] == "cut" and mode()[1] == address


def engine():
    if target.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(target)
        return s
    host, at = target.rsplit(":", 1)
    return socket.create_connection((host, int(at)))


def end(*both):
    for s in both:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def copy(source, to, address, is_answer):
    source.settimeout(0.1)
    while True:
        try:
            data = source.recv(65536)
        except socket.timeout:
            if is_cut(address):
                break
            continue
        except OSError:
            break
        if is_answer and mode()[0] == "slow":
            time.sleep(float(mode()[1]))
        try:
            if not data:
                break
            to.sendall(data)
        except OSError:
            break
    end(source, to)


def serve(address):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(64)
    while True:
        client = listener.accept()[0]
        try:
            if is_cut(address):
                raise OSError
            server = engine()
        except OSError:
            client.close()
            continue
        threading.Thread(target=copy, args=(client, server, address, False), daemon=True).start()
        threading.Thread(target=copy, args=(server, client, address, True), daemon=True).start()


threading.Thread(target=serve, args=("127.0.0.2",), daemon=True).start()
serve("127.0.0.1")
