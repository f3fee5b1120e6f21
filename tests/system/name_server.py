"""name_server.py FILE [PORT] - answers A questions on 127.0.0.1:53 or this port from FILE, lines `ADDRESS NAME`, which may
change at any time. Other
questions, and other names, have no answer. For engine_faults.sh and cluster_bucket_names.sh."""
import socket, sys


def address_of(name):
    with open(sys.argv[1]) as f:
        for line in f:
            words = line.split()
            if words[1:] == [name]:
                return socket.inet_aton(words[0])
    return None


s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 53))
while True:
    question, sender = s.recvfrom(2048)
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    asked = question[12 : at + 5]
    address = address_of(".".join(labels).lower()) if asked[-4:-2] == b"\0\1" else None
    answer = b"\xc0\x0c\0\1\0\1" + b"\0\0\0\0" + b"\0\4" + address if address else b""
    flags = b"\x84\0" if address_of(".".join(labels).lower()) else b"\x84\3"
    s.sendto(question[:2] + flags + b"\0\1" + (b"\0\1" if address else b"\0\0") + b"\0\0\0\0" + asked + answer, sender)
