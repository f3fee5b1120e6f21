#!/usr/bin/python3
"""channel.py - writes to the channel of a guest stub, its only stream socket: tests/system/tier_channel.sh.

    channel.py PID size|hello|random|cut"""
import ctypes
import os
import signal
import socket
import struct
import sys

PIDFD_OPEN, PIDFD_GETFD = 434, 438  # of every architecture
HELLO, FRAME = 1, 4                 # enum packet_type


def packet(kind, stream, body, size=None, nfds=0):
    return struct.pack("=IHBB", len(body) if size is None else size, stream, kind, nfds) + body


HOSTILE = {
    "size": lambda: packet(FRAME, 1, b"", 0xffffffff),
    "hello": lambda: packet(HELLO, 0, struct.pack("=IIQ", 99, 7, 0)),
    "random": lambda: b"\xff" + os.urandom(4095),  # never a valid size
    "cut": lambda: packet(FRAME, 1, b"half", 100),
}


def main():
    pid, what = int(sys.argv[1]), sys.argv[2]
    libc = ctypes.CDLL(None, use_errno=True)
    of = libc.syscall(PIDFD_OPEN, pid, 0)
    channels = []
    for number in os.listdir("/proc/%d/fd" % pid):
        if os.readlink("/proc/%d/fd/%s" % (pid, number)).startswith("socket:"):
            copy = libc.syscall(PIDFD_GETFD, of, int(number), 0)
            if copy < 0:
                sys.exit("descriptor %s of %d: %s" % (number, pid, os.strerror(ctypes.get_errno())))
            s = socket.socket(fileno=copy)
            if s.type == socket.SOCK_STREAM:
                channels.append(s)
            else:
                s.close()
    if len(channels) != 1:
        sys.exit("%d has %d stream sockets" % (pid, len(channels)))
    channels[0].sendall(HOSTILE[what]())
    if what == "cut":
        os.kill(pid, signal.SIGKILL)


main()
