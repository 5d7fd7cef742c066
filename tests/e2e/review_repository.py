"""A throw-away git repository, in which a pull request is played."""

import json
import os
import shutil
import subprocess

import launch

MANIFEST = {
    "name": "server-github", "version": "0.6.2",
    "tools": [
        {"name": "search_code", "capabilities": ["fs:read:/workspace/**",
                                                 "net:connect:api.github.com:443"]},
        {"name": "apply_patch", "capabilities": ["fs:write:/workspace/**"]},
    ],
}


def manifest(*more, **changes):
    """MANIFEST, with these capabilities more for its first tool."""
    value = json.loads(json.dumps(MANIFEST))
    value["tools"][0]["capabilities"] += more
    return {**value, **changes}


class Link:
    def __init__(self, target):
        self.target = target


class Repository:
    def __init__(self, directory, uid):
        self.directory = directory
        self.uid = uid
        self.environment = {
            "HOME": directory, "PATH": f"{os.path.dirname(launch.CAPGATE)}:/usr/local/bin:/usr/bin:/bin",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
        self.git("init", "-q", "-b", "main")

    def run(self, *words, env=None, check=False):
        return subprocess.run(words, cwd=self.directory, env={**self.environment, **(env or {})},
                              preexec_fn=lambda: launch.become(self.uid), capture_output=True,
                              text=True, errors="surrogateescape", timeout=120, check=check, stdin=subprocess.DEVNULL)

    def git(self, *words, check=True, env=None):
        done = self.run("/usr/bin/git", *words, env=env)
        if check and done.returncode != 0:
            raise RuntimeError(f"git {words}: {done.stderr}")
        return done

    def path(self, name):
        return os.path.join(os.fsencode(self.directory) if isinstance(name, bytes) else self.directory, name)

    def write(self, name, value):
        """A text, a JSON value, or a Link; a name of bytes is taken as it is."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        if isinstance(value, Link):
            os.symlink(value.target, path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(value if isinstance(value, str) else json.dumps(value, indent=2) + "\n")
        for at in (path, os.path.dirname(path)):
            os.chown(at, self.uid, self.uid, follow_symlinks=False)

    def copy(self, source, name):
        target = self.path(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)

    def commit(self, message="a change"):
        """Everything that is there; the commit's name."""
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").stdout.strip()
