#!/usr/bin/env python3
"""run.py - the tests of all drivers as one TAP. Arguments choose by a part of a name."""
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from talk import report, run_tests  # noqa: E402


def everything():
    here = os.path.dirname(os.path.abspath(__file__))
    for name in sorted(os.listdir(here)):
        if name.endswith("_test.py"):
            module = importlib.import_module(name[:-3])
            for sentence, test in run_tests(vars(module)):
                yield name[:-len("_test.py")] + ": " + sentence, test


sys.exit(report(everything()))
