# Imported by python3 at its start, by way of PYTHONPATH, when a program is started through the row of Python
# (runtimes/python.toml). Makes stdout line-buffered, as it is on a terminal, so that output arrives when it is
# printed and is not lost with a program that is killed. Leaves no other trace: the path, the variable and this
# module are gone before the program starts, and the installation's own sitecustomize is imported.
import os
import sys


def begin(here="/opt/atoll/python"):
    rest = [folder for folder in os.environ.pop("PYTHONPATH", "").split(":") if folder not in ("", here)]
    if rest:
        os.environ["PYTHONPATH"] = ":".join(rest)
    while here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    try:
        sys.stdout.reconfigure(line_buffering=True)
    except (AttributeError, OSError, ValueError):  # None, or closed by the parent process
        pass


begin()
del sys.modules["sitecustomize"]
import sitecustomize  # the installation's; site.py passes over an ImportError that bears this name
