"""Who starts capgate where privileges do not matter: an ordinary user, and root for a few tests.

Use `cases.started_by_root_and_user` where privileges matter: run, bwrap, install, images, attacks.
"""

import sys

import launch


def started_by_user(*also_by_root):
    """Replaces a class of tests by two: all of its tests started by an ordinary user, and those that
    are named here started by root, too."""
    def define(cases):
        tests = [name for name in dir(cases) if name.startswith("test_")]
        unknown = set(also_by_root) - set(tests)
        if unknown or not also_by_root:
            raise TypeError(f"{cases.__name__}: name the tests that root starts, too; unknown: {unknown}")
        others = {name: None for name in tests if name not in also_by_root}  # unittest leaves None out
        _define(cases, "StartedByUser", launch.ORDINARY, {})
        _define(cases, "StartedByRoot", 0, others)
        return None  # under its own name it would run a third time, started by nobody
    return define


def _define(cases, suffix, uid, body):
    name = cases.__name__ + suffix
    body = {"uid": uid, "__module__": cases.__module__, "__qualname__": name, **body}
    setattr(sys.modules[cases.__module__], name, type(name, (cases,), body))
