"""Checkers of pages from npm, installed once into .deps/pages: axe-core and html-validate."""

import fcntl
import json
import os
import shutil
import subprocess

import launch

SOURCE = os.path.join(launch.ROOT, "tests/e2e/pages")
PLACE = os.path.join(launch.ROOT, ".deps/pages")
INSTALL_SECONDS = 300


def install():
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as file:
        wanted = file.read()
    stamp = os.path.join(PLACE, "installed")
    with open(os.path.join(PLACE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            with open(stamp, encoding="utf-8") as file:
                if file.read() == wanted:
                    return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(SOURCE, name), PLACE)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                              cwd=PLACE, capture_output=True, text=True, check=False,
                              timeout=INSTALL_SECONDS)
        if done.returncode != 0:
            raise RuntimeError(f"npm ci failed: {done.stderr}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)


def axe_violations(page):
    """What axe-core has against a page that is open in a browser, each in one line."""
    with open(os.path.join(PLACE, "node_modules/axe-core/axe.min.js"), encoding="utf-8") as file:
        page.evaluate(file.read() + "; 0")
    return page.evaluate("""axe.run(document).then(result => result.violations.map(
        one => one.id + ': ' + one.help + ' at ' + one.nodes.map(
            node => node.target.join(' ') + ' ' + node.failureSummary).slice(0, 3).join('; ')))""")


def html_mistakes(path):
    """What html-validate has against a file, each as (rule, message)."""
    config = os.path.join(PLACE, "htmlvalidate.json")
    with open(config + ".new", "w", encoding="utf-8") as file:
        json.dump({"root": True, "extends": ["html-validate:standard", "html-validate:a11y"]}, file)
    os.replace(config + ".new", config)
    done = subprocess.run(
        [launch.NODE, os.path.join(PLACE, "node_modules/html-validate/bin/html-validate.js"),
         "--config", config, "--formatter", "json", path],
        cwd=PLACE, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    if not done.stdout.startswith("["):
        raise RuntimeError(f"html-validate failed: {done.stderr}")
    return [(message["ruleId"], message["message"]) for result in json.loads(done.stdout)
            for message in result["messages"]]
