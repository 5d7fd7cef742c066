"""`capgate audit` on logs that are written here, with hashlib: the format has a second author."""

import hashlib
import json
import os
import select
import signal
import subprocess
import time
import unittest

import launch
from cases import Case

ZEROS = "0" * 64


def line(sequence, previous, event, *, sandbox="5f2c9a11", server="github", moment=None,
         **fields):
    """One line as docs/audit.md describes it; the caller gives the fields in their order."""
    usual = f"2026-11-15T12:00:{sequence // 1000:02}.{sequence % 1000:03}Z"
    record = {"seq": sequence, "time": moment or usual,
              "sandbox": sandbox, "server": server, "event": event, **fields, "prev": previous}
    return json.dumps(record, separators=(",", ":"))


def chain(*events, previous=ZEROS, first=1):
    """The lines of these events, each with the hash of the one before it."""
    lines = []
    for number, event in enumerate(events, first):
        lines.append(line(number, previous, **event))
        previous = hashlib.sha256(lines[-1].encode()).hexdigest()
    return lines


def text(lines):
    return "".join(each + "\n" for each in lines)


START = {"event": "start", "text": "sha256:0123"}
END = {"event": "end", "count": 1}
RESTART = {"event": "restart"}
DENIED = {"event": "dns", "host": "evil.test", "verdict": "denied", "reason": "no-rule",
          "remedy": "net:connect:evil.test:443"}
ALLOWED = {"event": "connect", "flow": 1, "host": "api.github.com", "port": 443,
           "address": "140.82.112.5", "serverName": "api.github.com", "protocol": "tls",
           "verdict": "allowed", "rule": "net:connect:api.github.com:443",
           "at": "github.json:12:7"}
CLOSE = {"event": "close", "flow": 1, "host": "api.github.com", "port": 443, "sent": 517,
         "received": 4096, "ms": 120}
REFUSED = {"event": "refused", "host": "10.0.0.1", "port": 22, "protocol": "tcp", "count": 3}
RUN = [START, DENIED, ALLOWED, CLOSE, REFUSED, END]


class AuditCase(Case):
    """Tests on logs in a tree, whose state directory is in it too."""

    def audit(self, *words, code=0):
        """What `capgate audit` prints; it must end with this exit code."""
        done = launch.capgate("audit", *words, env=self.environment())
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        return done

    def environment(self):
        return {**os.environ, "XDG_STATE_HOME": self.tree.path("state")}

    def log(self, lines, name="run.jsonl"):
        return self.tree.file(name, text(lines))

    def assert_rows(self, words, *events):
        """These events and no others are shown, in this order."""
        rows = [each.split()[2] for each in self.audit(*words).stdout.splitlines()]
        self.assertEqual(rows, list(events))


class Verify(AuditCase):
    """Whatever is changed is found, with its line."""

    def assert_broken(self, lines, number, what):
        path = self.log(lines)
        done = self.audit("verify", path, code=8)
        self.assertRegex(done.stdout, rf"^{path}:{number}: broken \({what}\): .+\n$")
        found = json.loads(self.audit("verify", "--json", path, code=8).stdout)
        self.assertFalse(found["whole"])
        broken = found["files"][0]["broken"]
        self.assertEqual((broken["line"], broken["what"]), (number, what))

    def verified(self, lines):
        return json.loads(self.audit("verify", "--json", self.log(lines)).stdout)["files"][0]

    def test_a_whole_log(self):
        lines = chain(*RUN)
        head = hashlib.sha256(lines[-1].encode()).hexdigest()
        done = self.audit("verify", self.log(lines))
        self.assertEqual(done.stdout,
                         f"{self.tree.path('run.jsonl')}: whole, 6 lines, 1 run, head {head}\n")
        self.assertEqual(self.verified(lines),
                         {"file": self.tree.path("run.jsonl"), "whole": True, "lines": 6,
                          "runs": 1, "head": head, "ended": True, "unendedRuns": 0,
                          "cutLines": [], "broken": None})

    def test_the_hashes_are_those_of_sha256sum(self):
        lines = chain(*RUN)
        done = subprocess.run("head -n 1 | tr -d '\\n' | sha256sum", shell=True, check=True,
                              input=text(lines), capture_output=True, text=True)
        self.assertEqual(json.loads(lines[1])["prev"], done.stdout.split()[0])

    def test_several_runs_are_one_chain(self):
        other = [dict(event, sandbox="00000002", server="other") for event in RUN]
        self.assertEqual(self.verified(chain(*RUN, *other))["runs"], 2)

    def test_a_missing_end_is_said(self):
        path = self.log(chain(*RUN[:-1]))
        self.assertIn("has no end: it is still running, or lines were cut off",
                      self.audit("verify", path).stdout)
        self.assertFalse(self.verified(chain(*RUN[:-1]))["ended"])
        killed = self.verified(chain(START, DENIED, *RUN))
        self.assertEqual((killed["ended"], killed["unendedRuns"]), (True, 1))

    def test_a_changed_line(self):
        lines = chain(*RUN)
        lines[1] = lines[1].replace("evil.test", "good.test")
        self.assert_broken(lines, 3, "hash")

    def test_missing_swapped_and_added_lines(self):
        lines = chain(*RUN)
        self.assert_broken(lines[1:], 1, "sequence")
        self.assert_broken(lines[:2] + lines[3:], 3, "sequence")
        self.assert_broken([lines[0], lines[2], lines[1], *lines[3:]], 2, "sequence")
        self.assert_broken([*lines[:2], *lines[1:]], 3, "sequence")
        self.assert_broken([], 1, "start")

    def test_a_forged_line_with_a_right_number(self):
        lines = chain(*RUN)
        lines[2] = line(3, ZEROS, **DENIED)
        self.assert_broken(lines, 3, "hash")

    def test_lines_outside_of_a_run(self):
        self.assert_broken(chain(DENIED, END), 1, "start")
        self.assert_broken(chain(*RUN, DENIED), 7, "start")
        self.assert_broken(chain(START, dict(DENIED, sandbox="another")), 2, "start")

    def test_lines_that_are_not_ours(self):
        good = chain(START, DENIED)
        for bad in ("", "x", "{}", good[1].replace(",", ", "), good[1][:-1] + ',"more":1}',
                    good[1].replace("evil", "\\u0065vil"), good[1].replace("evil", "\u00e4")):
            with self.subTest(line=bad):
                self.assert_broken([good[0], bad, *chain(END, first=3)], 2, "unreadable")

    def test_a_line_cut_by_a_crash(self):
        lines = chain(START)
        lines.append('{"seq":2,"time":"2026')
        cut = hashlib.sha256(lines[-1].encode()).hexdigest()
        lines += chain(RESTART, END, previous=cut, first=3)
        self.assertEqual(self.verified(lines)["cutLines"], [2])
        self.assertIn("line 2 was cut short", self.audit("verify", self.log(lines)).stdout)
        lines[1] += "-"
        self.assert_broken(lines, 3, "hash")

    def test_one_broken_log_among_others(self):
        good = self.log(chain(*RUN), "good.jsonl")
        bad = self.log(chain(*RUN)[1:], "bad.jsonl")
        done = self.audit("verify", good, bad, code=8)
        self.assertIn("good.jsonl: whole", done.stdout)
        self.assertIn("bad.jsonl:1: broken", done.stdout)

    def test_a_long_log(self):
        lines = chain(START, *[DENIED] * 5000, END)
        self.assertEqual(self.verified(lines)["lines"], 5002)
        lines[4000] = lines[4000].replace("evil.test", "good.test")
        self.assert_broken(lines, 4002, "hash")


class Tail(AuditCase):
    """The last lines, of all logs together."""

    def test_rows_say_what_happened(self):
        rows = self.audit("tail", self.log(chain(*RUN))).stdout.splitlines()
        self.assertEqual(len(rows), len(RUN))
        self.assertRegex(rows[1], r"^2026-11-15T12:00:00.002Z  github +dns +denied +evil.test +"
                                  r"no-rule, to allow it: net:connect:evil.test:443$")
        self.assertRegex(rows[2], r" allowed +api.github.com:443 +net:connect:api.github.com:443,")
        self.assertRegex(rows[3], r" 517 bytes sent, 4096 bytes received, 120 ms$")

    def test_the_last_ones(self):
        path = self.log(chain(*RUN))
        self.assert_rows(["tail", path, "-n", "2"], "refused", "end")
        self.assert_rows(["tail", path, "--lines=0"])
        self.assert_rows(["tail", path, "-n", "1", "--denied"], "refused")
        long = self.log(chain(START, *[DENIED] * 3000, END), "long.jsonl")
        self.assert_rows(["tail", long], *["dns"] * 19, "end")

    def test_several_logs_are_mixed_by_time(self):
        first = self.log([line(1, ZEROS, "start", moment="2026-11-15T12:00:00.000Z"),
                          line(2, ZEROS, "end", moment="2026-11-15T12:00:00.900Z")], "first.jsonl")
        second = self.log([line(1, ZEROS, "dns", moment="2026-11-15T12:00:00.500Z")], "second.jsonl")
        self.assert_rows(["tail", first, second], "start", "dns", "end")

    def test_json_is_the_lines_themselves(self):
        lines = chain(*RUN)
        self.assertEqual(self.audit("tail", "--json", self.log(lines)).stdout, text(lines))

    def test_without_a_file_the_logs_of_this_user(self):
        self.audit("tail", code=3)
        self.log(chain(START), "state/capgate/audit/a.jsonl")
        self.log(chain(DENIED), "state/capgate/audit/b.jsonl")
        self.log(chain(END), "state/capgate/audit/other.txt")
        self.assert_rows(["tail"], "start", "dns")
        self.assertIn("evil.test", self.audit("stats").stdout)

    def test_a_line_that_is_being_written_is_not_shown(self):
        path = self.tree.file("open.jsonl", text(chain(START)) + '{"seq":2')
        self.assert_rows(["tail", path], "start")
        self.assert_rows(["search", path], "start")

    def next_row(self, follower):
        """The next line that it prints. The pipe is unbuffered, so that select sees every byte."""
        row = b""
        while not row.endswith(b"\n"):
            ready, _, _ = select.select([follower.stdout], [], [], launch.SECONDS)
            self.assertTrue(ready, f"nothing after {row}")
            byte = follower.stdout.read(1)
            self.assertTrue(byte, f"it ended after {row}")
            row += byte
        return row.decode()

    def test_following(self):
        path = self.log(chain(START), "state/capgate/audit/a.jsonl")
        # Whoever runs the tests in the background of a shell ignores SIGINT, and so would this.
        with subprocess.Popen([launch.CAPGATE, "audit", "tail", "--follow"],
                              env=self.environment(), stdout=subprocess.PIPE, bufsize=0,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
                              ) as follower:
            self.addCleanup(follower.kill)
            self.assertIn(" start ", self.next_row(follower))
            lines = chain(START, DENIED, ALLOWED)
            with open(path, "a", encoding="utf-8") as file:
                file.write(lines[1] + "\n" + lines[2][:50])
                file.flush()
                self.assertIn(" dns ", self.next_row(follower))
                file.truncate(len(text(lines[:2])))
                file.write(lines[2] + "\n")
            self.assertIn(" connect ", self.next_row(follower))
            self.log(chain(REFUSED), "state/capgate/audit/b.jsonl")
            self.assertIn(" refused ", self.next_row(follower))
            follower.send_signal(signal.SIGINT)
            self.assertEqual(follower.wait(launch.SECONDS), -signal.SIGINT)

    def test_following_ends_with_its_reader(self):
        path = self.log(chain(START))
        with subprocess.Popen([launch.CAPGATE, "audit", "tail", "-f", path],
                              stdout=subprocess.PIPE, bufsize=0) as follower:
            self.addCleanup(follower.kill)
            self.next_row(follower)
            follower.stdout.close()
            self.assertEqual(follower.wait(launch.SECONDS), 0)


class Search(AuditCase):
    """Lines that match."""

    def test_filters(self):
        path = self.log(chain(*RUN))
        for words, events in ((["--host", "*.GITHUB.com"], ["connect", "close"]),
                              (["--port", "22"], ["refused"]),
                              (["--server", "other"], []),
                              (["--denied"], ["dns", "refused"]),
                              (["--allowed"], ["connect"]),
                              (["--event", "end"], ["end"]),
                              (["--since", "2026-11-15T12:00:00.005Z"], ["refused", "end"]),
                              (["--denied", "--host", "evil.*"], ["dns"])):
            with self.subTest(words=words):
                self.assert_rows(["search", path, *words], *events)

    def test_since_counts_back_from_now(self):
        moments = [time.time() - 7200, time.time() - 60]
        lines = [line(number, ZEROS, "dns", host=f"{number}.test",
                      moment=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds)))
                 for number, seconds in enumerate(moments, 1)]
        found = self.audit("search", "--since", "1h", "--json", self.log(lines)).stdout
        self.assertEqual(found, lines[1] + "\n")

    def test_unreadable_lines_are_said(self):
        lines = chain(START, DENIED, END)
        lines[1] = "{"
        done = self.audit("search", self.log(lines))
        self.assertEqual(len(done.stdout.splitlines()), 2)
        self.assertIn("run.jsonl:2: left out, byte 1:", done.stderr)

    def test_much_output(self):
        lines = chain(START, *[DENIED] * 12000)
        self.assertEqual(self.audit("search", "--json", self.log(lines)).stdout, text(lines))


class Stats(AuditCase):
    """Totals for each server and host."""

    def test_totals(self):
        found = json.loads(self.audit("stats", "--json", self.log(chain(*RUN))).stdout)
        self.assertEqual(found["hosts"], [
            {"server": "github", "host": "10.0.0.1", "connections": 0, "allowed": 0, "denied": 3,
             "sent": 0, "received": 0},
            {"server": "github", "host": "api.github.com", "connections": 1, "allowed": 1,
             "denied": 0, "sent": 517, "received": 4096},
            {"server": "github", "host": "evil.test", "connections": 0, "allowed": 0, "denied": 1,
             "sent": 0, "received": 0}])
        self.assertEqual(found["remedies"], [
            {"server": "github", "capability": "net:connect:evil.test:443", "times": 1}])

    def test_a_table(self):
        rows = self.audit("stats", self.log(chain(*RUN)), "--host", "api*").stdout.splitlines()
        self.assertEqual([each.split() for each in rows],
                         [["server", "host", "connections", "allowed", "denied", "sent",
                           "received"],
                          ["github", "api.github.com", "1", "1", "0", "517", "4096"]])


class Errors(AuditCase):
    """Every mistake is said, with what to do."""

    def test_files(self):
        for verb in ("tail", "verify", "search", "stats"):
            done = self.audit(verb, self.tree.path("missing"), code=3)
            self.assertIn("missing: No such file or directory", done.stderr)
            done = self.audit(verb, self.tree.root, code=3)
            self.assertIn("Is a directory", done.stderr)
            done = self.audit(verb, code=3)
            self.assertIn(f"no audit log in {self.tree.path('state/capgate/audit')}", done.stderr)

    def test_other_files(self):
        for content in ("notes\n", "notes\nmore\nlines\n", "\0" * 100_000 + "\n"):
            path = self.tree.file("notes", content)
            for verb in ("tail", "search", "stats"):
                self.assertIn("notes is not an audit log", self.audit(verb, path, code=3).stderr)
            self.assertIn("notes:1: broken (unreadable)",
                          self.audit("verify", path, code=8).stdout)

    def test_words(self):
        for words, said in ((["tial"], "did you mean tail?"), ([], "audit needs tail|verify"),
                            (["verify", "--denied"], "--denied does not go with verify"),
                            (["search", "-n", "3"], "it belongs to audit tail"),
                            (["tail", "-n", "many"], '--lines cannot be "many"'),
                            (["tail", "--port", "65536"], "--port cannot be"),
                            (["tail", "--since", "soon"], "write 90s, 15m"),
                            (["tail", "--event", "conect"], "did you mean connect?"),
                            (["tail", "--allowed", "--denied"], "leave nothing")):
            with self.subTest(words=words):
                done = self.audit(*words, code=2)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
