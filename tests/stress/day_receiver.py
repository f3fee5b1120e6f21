#!/usr/bin/python3
"""day_receiver.py FILE - receives the webhooks of day.py, one connection at a time in one thread, so that FILE has the
events in the order of their arrival: team, number, box, type and run, separated by tabs. Prints its port."""

import json
import selectors
import socket
import sys


def take(data):
    """one request: its body and the rest, or None"""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return None
    length = 0
    for line in data[:head].split(b"\r\n")[1:]:
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    end = head + 4 + length
    return (data[head + 4:end], data[end:]) if len(data) >= end else None


def main():
    out = open(sys.argv[1], "w", buffering=1)
    wait = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    wait.register(listener, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    unread = {}
    while True:
        for key, _ in wait.select():
            if key.fileobj is listener:
                peer = listener.accept()[0]
                unread[peer] = b""
                wait.register(peer, selectors.EVENT_READ)
                continue
            peer = key.fileobj
            try:
                data = peer.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                wait.unregister(peer)
                del unread[peer]
                peer.close()
                continue
            unread[peer] += data
            while (found := take(unread[peer])):
                body, unread[peer] = found
                event = json.loads(body)
                out.write("%s\t%d\t%s\t%s\t%s\n" % (event["team"], event["seq"], event["box"], event["type"],
                                                    event["data"].get("run", "")))
                try:
                    peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                except OSError:
                    pass


main()
