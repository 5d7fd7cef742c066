"""The engines of editors from npm, installed once into .deps/editors, and one question to them."""

import json
import os
import subprocess

import launch
import npm_packages

SOURCE = os.path.join(launch.ROOT, "tests/e2e/editors")
PROGRAM = os.path.join(launch.ROOT, ".deps/editors/ask.cjs")
SECONDS = 120


def install():
    """Makes the packages and our program ready."""
    place = npm_packages.install("editors")
    npm_packages.add_program(os.path.join(SOURCE, "ask.cjs"), place)


def ask(question, **order):
    """What ask.cjs answers."""
    done = subprocess.run([launch.NODE, PROGRAM, question],
                          input=json.dumps(order), capture_output=True, text=True, check=False,
                          timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
