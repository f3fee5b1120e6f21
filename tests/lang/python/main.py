import sys
from other import greeting

mode, args = sys.argv[1], sys.argv[2:]
if mode == "talk":
    print(greeting())
    for a in args:
        print("arg:", a)
    for line in sys.stdin:
        print("stdin:", line.rstrip())
    sys.exit(7)
elif mode == "fault":
    raise ValueError("boom ä")
elif mode == "big":
    for _ in range(10):
        sys.stdout.write("x" * (1 << 20))
elif mode == "loop":
    while True:
        pass
elif mode == "memory":
    x = bytearray(4 << 30)
