"""capgate run: credentials inside of what is granted stay hidden, also while the host changes."""

import os
import signal
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python

SECRET = "the secret"
# For each path of a line of input: its text, or the error.
READER = """
import errno, os, sys
for line in sys.stdin:
    path = line.rstrip()
    try:
        text = open(path).read() if not os.path.isdir(path) else ",".join(sorted(os.listdir(path)))
        print("found " + text, flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""


def setUpModule():
    adopt_orphans()


class MaskCase(RunCase):
    def put(self, path, text=SECRET):
        """A file of the caller's with this absolute path, replaced at once if it is there."""
        at = self.tree.root
        for part in os.path.relpath(path, self.tree.root).split("/")[:-1]:
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.own(at, 0o700)
        fresh = os.path.join(self.tree.root, "fresh")
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(text)
        self.own(fresh, 0o600)
        os.rename(fresh, path)
        return path

    def config(self, name):
        return os.path.join(self.home, ".config", name)

    def in_work(self, name):
        return os.path.join(self.work, name)

    def reading(self, path):
        return f"open({path!r}).read()"

    def serve(self, words, **options):
        return self.start(words, python(READER), **options)

    def ask(self, server, path):
        server.stdin.write(path.encode() + b"\n")
        server.stdin.flush()
        return server.stdout.readline().decode().strip()

    def assert_told(self, words, link):
        report = self.report(words, ["/usr/bin/true"])
        self.assertIn(f"fs: {link} is a link; what it leads to is neither hidden nor protected",
                      report["notes"])

    def assert_hidden_again(self, server, path, now="found"):
        """The keeper says so, and then it is; the server has not noticed."""
        line = server.stderr.readline().decode()
        self.assertEqual(line, f"capgate: {path} was replaced on the host; it is hidden again\n")
        self.assertEqual(self.ask(server, path), now)
        self.assertIsNone(server.poll())

    def assert_runs_on(self, server, path, answer):
        self.assertEqual(self.ask(server, path), answer)
        out, said = server.communicate(timeout=launch.SECONDS)
        self.assertEqual((server.returncode, out, said), (0, b"", b""))


@started_by_root_and_user
class Hidden(MaskCase):
    def setUp(self):
        super().setUp()
        self.put(self.config("gh/hosts.yml"))
        self.put(self.config("hub"))
        self.put(self.config("git/credentials"))
        self.put(self.config("git/ignore"), "plain")
        self.put(self.config("tool/settings"), "plain")
        # Were it not there, nothing could hide it, and no server could be let write beside it.
        self.put(self.config("capgate/capgate.yaml"), "servers: {}")
        self.words = allow(f"fs:read:{self.home}/.config/**")

    def test_credentials_below_a_granted_parent(self):
        for path in (self.config("gh/hosts.yml"), self.config("hub"),
                     self.config("git/credentials")):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), SECRET)
        seen = self.attempt(self.words, self.reading(self.config("tool/settings")),
                            self.reading(self.config("git/ignore")),
                            f"os.listdir({self.config('gh')!r})",
                            self.reading(self.config("gh/hosts.yml")),
                            self.reading(self.config("hub")),
                            self.reading(self.config("git/credentials")))
        self.assertEqual(seen, ["'plain'", "'plain'", "[]", "ENOENT", "''", "''"])

    def test_credentials_among_the_entries_of_a_pattern(self):
        words = allow(f"fs:read:{self.home}/.config/*")
        seen = self.attempt(words, self.reading(self.config("gh/hosts.yml")),
                            self.reading(self.config("hub")),
                            self.reading(self.config("git/credentials")))
        self.assertEqual(seen, ["ENOENT", "ENOENT", "''"])

    def test_a_pattern_hides_what_the_directory_hides(self):
        """/d/* opens nothing that /d/** does not: names of secrets, and credentials by any name."""
        names = ["credentials.json", "id_rsa", "secrets.yaml", "terraform.tfstate", ".env", "plain.json"]
        paths = [self.put(self.in_work(name)) for name in names]
        seen = {grant: self.attempt(allow(*(f"fs:read:{self.work}/{each}" for each in grant.split())),
                                    *map(self.reading, paths)) for grant in ("**", "* .*", "*s* .e*")}
        self.assertEqual(seen["**"], ["''"] * 5 + [repr(SECRET)])
        self.assertEqual(seen["* .*"], ["ENOENT"] * 5 + [repr(SECRET)])
        self.assertEqual(seen["*s* .e*"], ["ENOENT"] * 5 + [repr(SECRET)])
        for path in paths:
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), SECRET, "the control")
        # Named, they are granted, beside the pattern as well.
        words = allow(f"fs:read:{self.work}/*", f"fs:read:{paths[1]}")
        self.assertEqual(self.attempt(words, *map(self.reading, paths[:2])), ["ENOENT", repr(SECRET)])

    def test_a_pattern_in_a_hidden_directory_does_not_open_it(self):
        self.put(self.config("gh/notes.md"), "plain")
        pattern = f"fs:read:{self.config('gh')}/*.md"
        self.assertEqual(self.attempt(allow(pattern), self.reading(self.config("gh/notes.md")),
                                      self.reading(self.config("gh/hosts.yml"))), ["'plain'", "ENOENT"])
        said = self.refusal(self.words + allow(pattern))
        self.assertIn(f"lies in {self.config('gh')}, which stays hidden in the grant of", said)

    def test_a_grant_to_read_them_does_not_let_the_one_above_write(self):
        path = self.config("gh/hosts.yml")
        words = allow(f"fs:write:{self.home}/.config/**", f"fs:read:{self.config('gh')}/**")
        self.assertEqual(self.attempt(words, self.reading(path), f"open({path!r}, 'a')",
                                      f"os.unlink({path!r})"), [repr(SECRET), "EROFS", "EROFS"])

    def test_a_grant_of_their_own_shows_them(self):
        words = self.words + allow(f"fs:read:{self.config('hub')}")
        seen = self.attempt(words, self.reading(self.config("hub")),
                            self.reading(self.config("gh/hosts.yml")))
        self.assertEqual(seen, [repr(SECRET), "ENOENT"])

    def test_a_stronger_grant_below_does_not_uncover_them(self):
        """The mount of the inner grant lies on top of what was covered in the outer one."""
        path = self.put(self.config("containers/auth.json"))
        words = self.words + allow(f"fs:write:{self.home}/.config/containers/**")
        self.assertEqual(self.attempt(self.words, self.reading(path)), ["''"])
        seen = self.attempt(words, self.reading(path), f"open({path!r}, 'w')", f"os.unlink({path!r})",
                            f"open({self.config('containers/other')!r}, 'w') and 1")
        self.assertEqual(seen, ["''", "EROFS", "EBUSY", "1"])

    def test_they_cannot_be_uncovered_from_inside(self):
        words = allow(f"fs:write:{self.home}/.config/**")
        move = "os.rename({!r}, {!r})".format
        seen = self.attempt(words, f"os.unlink({self.config('hub')!r})",
                            move(self.config("hub"), self.config("other")),
                            move(self.config("gh"), self.config("other")),
                            move(self.config("git"), self.config("other")),
                            f"os.link({self.config('hub')!r}, {self.config('other')!r})",
                            f"open({self.config('hub')!r}, 'w')",
                            f"open({self.config('gh/new')!r}, 'w')",
                            f"open({self.config('capgate/capgate.yaml')!r}, 'w')",
                            move(self.config("capgate"), self.config("other")))
        self.assertEqual(seen, [*["EBUSY"] * 4, "EXDEV", *["EROFS"] * 3, "EBUSY"])
        self.assertEqual(os.listdir(self.config("gh")), ["hosts.yml"])
        self.assertFalse(os.path.lexists(self.config("other")))

    def test_of_credentials_behind_a_link_the_link_is_hidden_and_the_file_is_told(self):
        """As people have it who keep their settings elsewhere, here in the grant as well."""
        real = self.config("tool/hub")
        os.rename(self.config("hub"), real)
        os.symlink("tool/hub", self.config("hub"))
        seen = self.attempt(self.words, self.reading(self.config("hub")), self.reading(real))
        self.assertEqual(seen, ["''", repr(SECRET)])
        self.assert_told(self.words, self.config("hub"))

    def test_nothing_is_made_on_the_host(self):
        before = self.tree.snapshot()
        self.output(self.words, ["/usr/bin/true"])
        self.output(allow(f"fs:write:{self.home}/.config/**"), ["/usr/bin/true"])
        self.assertEqual(self.tree.snapshot(), before)

    def test_the_report_names_them(self):
        report = self.report(self.words, ["/usr/bin/true"])
        held = " ".join(each["guarantee"] for each in report["guarantees"])
        for name in ("gh", "hub", "git/credentials"):
            self.assertIn(self.config(name), held)


@started_by_root_and_user
class WorkspaceSecrets(MaskCase):
    def setUp(self):
        super().setUp()
        self.env = self.put(self.in_work(".env"))
        self.put(self.in_work("note"), "plain")

    def test_they_are_hidden_at_the_root(self):
        for action in ("read", "write"):
            seen = self.attempt(allow(f"fs:{action}:{self.work}/**"), self.reading(self.env),
                                self.reading(self.in_work("note")))
            self.assertEqual(seen, ["''", "'plain'"])

    def test_named_on_their_own_they_are_seen(self):
        words = allow(f"fs:read:{self.work}/**", f"fs:read:{self.env}")
        self.assertEqual(self.attempt(words, self.reading(self.env)), [repr(SECRET)])

    def test_a_link_is_hidden_and_its_file_is_told(self):
        os.rename(self.env, self.in_work("real"))
        os.symlink("real", self.env)
        words = allow(f"fs:read:{self.work}/**")
        seen = self.attempt(words, self.reading(self.env), self.reading(self.in_work("real")))
        self.assertEqual(seen, ["''", repr(SECRET)])
        self.assert_told(words, self.env)


@started_by_root_and_user
class ChangedByTheHost(MaskCase):
    """What editors, git and package managers do while a server runs."""

    def setUp(self):
        super().setUp()
        self.env = self.put(self.in_work(".env"))
        self.note = self.put(self.in_work("note"), "plain")
        self.words = allow(f"fs:read:{self.work}/**")

    def started(self, words=None):
        """A server that has answered once, so that everything around it is set up."""
        server = self.serve(self.words if words is None else words)
        self.assertEqual(self.ask(server, self.note), "found plain")
        return server

    def test_a_file_replaced_by_renaming_is_hidden_again(self):
        server = self.started()
        self.assertEqual(self.ask(server, self.env), "found")
        before = sorted(os.listdir(self.work))
        for _ in range(3):
            self.put(self.env, "another secret")
            self.assert_hidden_again(server, self.env)
        self.assertEqual(sorted(os.listdir(self.work)), before)
        self.assert_runs_on(server, self.note, "found plain")
        self.assert_nothing_left(server.pid)

    def test_a_file_removed_and_made_again_is_hidden_again(self):
        server = self.started()
        os.unlink(self.env)
        self.put(self.env, "another secret")
        self.assert_hidden_again(server, self.env)
        self.assert_runs_on(server, self.note, "found plain")

    def test_a_directory_replaced_is_hidden_again(self):
        self.put(self.config("gh/hosts.yml"))
        words = self.words + allow(f"fs:read:{self.home}/.config/**")
        server = self.started(words)
        self.assertEqual(self.ask(server, self.config("gh")), "found")
        os.rename(self.config("gh"), self.config("gh.old"))
        self.assertEqual(self.ask(server, self.config("gh.old")), "found")
        self.put(self.config("gh/hosts.yml"))
        self.assert_hidden_again(server, self.config("gh"))

    def test_a_directory_on_the_way_replaced_is_hidden_again(self):
        """The cover goes away with the directory that it lies in."""
        self.put(self.config("git/credentials"))
        server = self.started(self.words + allow(f"fs:read:{self.home}/.config/**"))
        self.assertEqual(self.ask(server, self.config("git/credentials")), "found")
        os.rename(self.config("git"), self.config("git.old"))
        self.put(self.config("git/credentials"))
        self.assert_hidden_again(server, self.config("git/credentials"))

    def test_a_change_that_came_with_thousands_of_others_is_seen(self):
        """The kernel forgets events that wait for too long: it says that it did."""
        with open("/proc/sys/fs/inotify/max_queued_events", encoding="utf-8") as file:
            most = int(file.read())
        server = self.started()
        keeper = self.keeper_of(server)
        os.kill(keeper, signal.SIGSTOP)
        try:
            for _ in range(most // 2 + 1):
                self.put(self.in_work("busy"))
                os.unlink(self.in_work("busy"))
            self.put(self.env, "another secret")
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.assert_hidden_again(server, self.env)

    def test_without_its_keeper_a_sandbox_ends(self):
        server = self.started()
        os.kill(self.keeper_of(server), signal.SIGKILL)
        server.wait(timeout=launch.SECONDS)
        self.assertEqual((server.returncode, server.stderr.read().decode()),
                         (128 + signal.SIGKILL, "capgate: the keeper ended\n"))

    def keeper_of(self, server):
        """The child of capgate that is not init: it has capgate's own name."""
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        names = {}
        for child in children:
            with open(f"/proc/{child}/comm", encoding="utf-8") as file:
                names[file.read().strip()] = int(child)
        return names["capgate"]

    def test_a_file_written_in_place_stays_hidden(self):
        server = self.started()
        with open(self.env, "w", encoding="utf-8") as file:
            file.write("another secret")
        self.assertEqual(self.ask(server, self.env), "found")
        self.assert_runs_on(server, self.note, "found plain")

    def test_other_files_may_be_replaced(self):
        server = self.started()
        self.put(self.note, "new")
        self.put(self.in_work("x.env"), "new")
        os.unlink(self.in_work("x.env"))
        self.assert_runs_on(server, self.note, "found new")

    def test_the_same_name_in_another_granted_directory_is_another_file(self):
        other = self.own(self.tree.directory("other"), 0o700)
        self.put(os.path.join(other, ".env.local"))
        server = self.started(self.words + allow(f"fs:read:{other}/**"))
        os.mkdir(os.path.join(other, ".env.d"))
        self.assert_runs_on(server, self.note, "found plain")

    def test_one_that_appears_is_hidden(self):
        os.makedirs(self.config(""))
        self.own(self.config(""), 0o700)
        server = self.started(self.words + allow(f"fs:read:{self.home}/.config/**"))
        for path in (self.config("hub"), self.in_work(".env.local")):
            self.put(path)
            self.assertEqual(server.stderr.readline().decode(),
                             f"capgate: {path} appeared; it is hidden from the server\n")
            self.assertEqual(self.ask(server, path), "found")


if __name__ == "__main__":
    unittest.main()
