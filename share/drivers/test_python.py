"""test_python.py - runs the tests of a folder: test_python.py DIR [SOURCE].

pytest runs them where it is installed. Otherwise the runner below does: TestCase classes, functions test_*,
methods test_* of classes Test*, plain asserts, async tests, setup_* and teardown_* functions, tmp_path.
Tests are in files *test*.py, and in SOURCE if that has some. Exit status: 0 all passed, 1 some failed,
5 no test was found.
"""
import importlib.util
import os
import re
import sys

NOT_SEARCHED = {"node_modules", "__pycache__", "venv", "site-packages"}
HAS_TESTS = re.compile(rb"^\s*(?:async\s+)?def\s+test|^class\s+Test|\bTestCase\b", re.M)
CONFIGURED = ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
__unittest = True  # unittest leaves frames of modules with this name out of tracebacks


def find_files(folder, source):
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(d for d in folders if not d.startswith(".") and d not in NOT_SEARCHED)
        found += [os.path.join(at, n) for n in sorted(names) if n.endswith(".py") and "test" in n.lower()]
    if source and source not in found and os.path.isfile(source):
        with open(source, "rb") as f:
            if HAS_TESTS.search(f.read()):
                found.append(source)
    return found


def run_pytest(folder, files):
    import pytest

    words = ["-p", "no:cacheprovider", "--rootdir", folder]
    if any(os.path.exists(os.path.join(folder, n)) for n in CONFIGURED):
        return pytest.main(words + [folder])
    return pytest.main(words + files)


# ---- without pytest ----


def import_file(path):
    """As pytest does: below the first folder that is no package."""
    folder, name = os.path.dirname(path), os.path.basename(path)[:-3]
    while os.path.exists(os.path.join(folder, "__init__.py")) and os.path.basename(folder):
        folder, name = os.path.dirname(folder), os.path.basename(folder) + "." + name
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = sys.modules.get(name)
    if module and getattr(module, "__file__", None) != path:
        name = "%s_%x" % (name, abs(hash(path)))  # two folders have a file of this name
        module = None
    if module:
        return module
    if "." in name:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def call(function, *args):
    import inspect

    result = function(*args)
    if inspect.iscoroutine(result):
        import asyncio

        asyncio.run(result)


def arguments(function):
    """Values for its parameters: we have one fixture."""
    import inspect
    import pathlib
    import tempfile

    given = []
    for name, p in inspect.signature(function).parameters.items():
        if p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if name != "tmp_path":
            raise TypeError("%s() needs the fixture '%s', which takes pytest; ask for it with "
                            '"packages": {"pip": ["pytest"]}' % (function.__name__, name))
        given.append(pathlib.Path(tempfile.mkdtemp()))
    return given


def make_case(title, body, before, after):
    import unittest

    class Case(unittest.TestCase):
        def runTest(self):
            for f in before:
                call(f)
            try:
                call(body, *arguments(body))
            finally:
                for f in after:
                    call(f)

        def id(self):
            return title

        def __str__(self):
            return title

        def shortDescription(self):
            return None

    return Case()


def named(owner, *names):
    return [f for f in (getattr(owner, n, None) for n in names) if callable(f)]


def cases_of_class(module, cls):
    for name in dir(cls):
        if not name.startswith("test") or not callable(getattr(cls, name)):
            continue

        def body(cls=cls, name=name):
            one = cls()
            for f in named(one, "setup_method", "setUp"):
                f(*([getattr(one, name)] if f.__code__.co_argcount > 1 else []))
            try:
                method = getattr(one, name)
                call(method, *arguments(method))
            finally:
                for f in named(one, "teardown_method", "tearDown"):
                    f(*([getattr(one, name)] if f.__code__.co_argcount > 1 else []))

        yield make_case("%s.%s.%s" % (module.__name__, cls.__name__, name), body,
                        named(cls, "setup_class"), named(cls, "teardown_class"))


def plain_cases(module):
    """What unittest does not look for."""
    import inspect
    import unittest

    for name, value in list(vars(module).items()):
        if inspect.isclass(value):
            if (name.startswith("Test") and value.__module__ == module.__name__ and
                    not issubclass(value, unittest.TestCase) and value.__init__ is object.__init__):
                yield from cases_of_class(module, value)
        elif inspect.isfunction(value) and name.startswith("test"):
            fixed = [lambda f=f: f(*([value] if f.__code__.co_argcount else []))
                     for f in named(module, "setup_function")]
            after = [lambda f=f: f(*([value] if f.__code__.co_argcount else []))
                     for f in named(module, "teardown_function")]
            yield make_case("%s.%s" % (module.__name__, name), value, fixed, after)


def failed_import(path, error):
    def body():
        raise error
    return make_case("import of " + path, body, [], [])


def run_plain(files):
    import unittest

    suite, loader = unittest.TestSuite(), unittest.defaultTestLoader
    for path in files:
        try:
            module = import_file(path)
        except (Exception, SystemExit) as e:  # as any test that fails
            suite.addTest(failed_import(path, e))
            continue
        of_module = unittest.TestSuite([loader.loadTestsFromModule(module), *plain_cases(module)])
        before, after = named(module, "setup_module"), named(module, "teardown_module")
        if of_module.countTestCases():
            suite.addTests([make_case("setup_module", f, [], []) for f in before])
            suite.addTest(of_module)
            suite.addTests([make_case("teardown_module", f, [], []) for f in after])
    count = suite.countTestCases()
    if not count:
        return 5
    return 0 if unittest.TextTestRunner(verbosity=2, buffer=False).run(suite).wasSuccessful() else 1


def main(folder, source=None):
    folder = os.path.abspath(folder)
    sys.path[0] = folder  # in place of the folder of this file
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    files = find_files(folder, source and os.path.abspath(source))
    if not files:
        status = 5
    elif importlib.util.find_spec("pytest"):
        status = int(run_pytest(folder, files))
    else:
        status = run_plain(files)
    if status == 5:
        print("no tests were found in %s: files *test*.py with functions test_*, classes Test* or unittest's "
              "TestCase are looked for; %d such files are there" % (folder, len(files)), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
