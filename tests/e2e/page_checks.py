"""Checkers of pages from npm, installed once into .deps/pages: axe-core and html-validate."""

import json
import os
import subprocess

import launch
import npm_packages

PLACE = os.path.join(launch.ROOT, ".deps/pages")
SECONDS = 300


def install():
    npm_packages.install("pages")


def axe_violations(page):
    """What axe-core has against a page that is open in a browser, each in one line."""
    with open(os.path.join(PLACE, "node_modules/axe-core/axe.min.js"), encoding="utf-8") as file:
        page.evaluate(file.read() + "; 0")
    return page.evaluate("""axe.run(document).then(result => result.violations.map(
        one => one.id + ': ' + one.help + ' at ' + one.nodes.map(
            node => node.target.join(' ') + ' ' + node.failureSummary).slice(0, 3).join('; ')))""")


def html_mistakes(*paths):
    """What html-validate has against these files, each as (file, rule, message). It takes longer to start than
    to check a page, so one run checks all."""
    config = os.path.join(PLACE, "htmlvalidate.json")
    with open(f"{config}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump({"root": True, "extends": ["html-validate:standard", "html-validate:a11y"]}, file)
    os.replace(f"{config}.{os.getpid()}", config)
    done = subprocess.run(
        [launch.NODE, os.path.join(PLACE, "node_modules/html-validate/bin/html-validate.js"),
         "--config", config, "--formatter", "json", *paths],
        cwd=PLACE, capture_output=True, text=True, check=False, timeout=SECONDS)
    if not done.stdout.startswith("["):
        raise RuntimeError(f"html-validate failed: {done.stderr}")
    return [(result["filePath"], message["ruleId"], message["message"])
            for result in json.loads(done.stdout) for message in result["messages"]]
