"""What decides the policy of any server is no place that a sandboxed one can write."""

import json
import os
import unittest

import launch
from cases import started_by_root_and_user
from config_test import ConfigCase
from run_cases import adopt_orphans, allow, python


def setUpModule():
    adopt_orphans()


# Whatever the run itself is told by, with an entry and without.
RUNS = ([], ["--profile", "x"])


@started_by_root_and_user
class PlacesOfOthers(ConfigCase):
    """What decides the policy of other servers, or of this one later, is no place to write."""

    def assert_refused(self, grant, place, words=(), **options):
        for run in RUNS:
            with self.subTest(grant=grant, run=run):
                said = self.refusal([*run, *words, *allow(grant)], **options)
                self.assertIn(f"{place} ", said)
                self.assertIn("the server could write it: ", said)
                self.assertIn(f"by {grant}\n", said)
                self.assertIn("\nhelp: ", said)
        return said

    def assert_started(self, *grants, **options):
        for run in RUNS:
            with self.subTest(grants=grants, run=run):
                words = [*run, *allow(*grants)]
                self.assertEqual(self.output(words, ["/bin/echo", "started"], **options),
                                 "started\n")

    def test_a_server_makes_no_config_for_the_next_run(self):
        os.rmdir(self.config)
        parent = os.path.dirname(self.config)
        text = json.dumps({"servers": {"x": self.reads_other}})
        code = ("import os, sys\nos.makedirs(sys.argv[1])\n"
                "open(sys.argv[1] + '/capgate.yaml', 'w').write(sys.argv[2])")
        said = self.refusal(allow(f"fs:write:{parent}/**"), python(code, self.config, text))
        self.assertIn(self.config, said)
        self.assertIn(f"fs:write:{parent}/**", said)
        self.assertFalse(os.path.exists(self.config))
        self.assertEqual(self.seen(), ["-", "-"])

    def test_the_help_is_right(self):
        """What is to be made is hidden from then on."""
        os.rmdir(self.config)
        self.made("home/.local")
        grants = [f"fs:write:{self.home}/.config/**", f"fs:write:{self.home}/.local/**"]
        said = self.refusal(allow(*grants))
        made = said.split(": mkdir -p ")[1].split()
        self.assertEqual(len(made), 3, said)
        for path in made:
            self.made(os.path.relpath(path, self.tree.root))
        self.assert_started(*grants)
        before = self.tree.snapshot()
        tries = [f"open({path + '/new'!r}, 'w')" for path in made]
        tries += [f"os.rename({path!r}, {path + '-'!r})" for path in made]
        tries += [f"os.rename({os.path.dirname(made[1])!r}, {made[1] + '-'!r})"]
        self.assertEqual(self.attempt(allow(*grants), *tries),
                         [*["EROFS"] * 3, *["EBUSY"] * 3, "EXDEV"])
        self.assertEqual(self.tree.snapshot(), before)

    def test_the_systems(self):
        said = self.refusal(allow("fs:write:/etc/capgate/capgate.yaml?unsafe=true"))
        self.assertIn("/etc/capgate decides what servers may do, and the server could write", said)

    def test_where_they_lie_by_the_environment(self):
        for name, inner in (("XDG_CONFIG_HOME", "capgate"), ("XDG_STATE_HOME", "capgate/approved"),
                            ("XDG_DATA_HOME", "capgate/packages")):
            for made in ("", "capgate", inner):
                base = self.made(f"{name}-{len(made)}")
                self.made(f"{name}-{len(made)}/{made}".rstrip("/"))
                env = self.environment(**{name: base})
                self.assert_refused(f"fs:write:{base}/**", os.path.join(base, inner), env=env)

    def test_the_usual_ones_count_though_the_environment_names_others(self):
        """Another client may start the next server without those variables."""
        other = self.made("elsewhere")
        env = self.environment(XDG_CONFIG_HOME=other, XDG_STATE_HOME=other, XDG_DATA_HOME=other)
        os.rmdir(self.config)
        self.assert_refused(f"fs:create:{self.home}/.config/**", self.config, env=env)

    def test_a_part_of_them(self):
        servers = self.made("home/.config/capgate/servers")
        packages = self.made("home/.local/share/capgate/packages/npm/x")
        approved = self.made("home/.local/state/capgate/approved")
        self.assert_refused(f"fs:write:{servers}/**", self.config)
        self.assert_refused(f"fs:delete:{servers}/**", self.config)
        self.assert_refused(f"fs:write:{packages}/**", os.path.dirname(os.path.dirname(packages)))
        self.assert_refused(f"fs:write:{approved}/**", approved)
        staging = self.made("home/.local/share/capgate/staging")
        self.assert_refused(f"fs:write:{staging}/**", f"{staging}/next")
        self.assert_started(f"fs:write:{self.made('home/.local/share/capgate/staging/one')}/**")
        # A file that is not there would be made for the server.
        self.assert_refused(f"fs:write:{servers}/y.yaml", self.config)
        self.assertEqual(os.listdir(servers), [])
        lock = os.path.join(self.home, ".local/share/capgate/capgate.lock")
        self.assert_refused(f"fs:write:{lock}", lock)
        self.assertFalse(os.path.exists(lock))

    def test_links_to_what_can_be_written(self):
        real = self.made("work/dotfiles")
        grant = f"fs:write:{self.work}/**"
        self.assert_started(grant)
        os.symlink(real, os.path.join(self.config, "servers"))
        self.assert_refused(grant, os.path.join(self.config, "servers"))
        os.unlink(os.path.join(self.config, "servers"))
        one = os.path.join(self.made("home/.config/capgate/servers"), "y.yaml")
        os.symlink(self.write_config(os.path.join(real, "y.yaml"), y={}), one)
        self.assert_refused(grant, one)
        os.unlink(one)
        os.rmdir(os.path.dirname(one))
        os.rmdir(self.config)
        os.symlink(real, self.config)
        self.assert_refused(grant, self.config)

    def test_another_servers_manifest(self):
        grant = f"fs:write:{self.work}/**"
        manifest = os.path.join(self.work, "b.json")
        config = self.user(b={"manifest": manifest})
        said = self.assert_refused(grant, manifest)
        self.assertIn(f"is the manifest of b in {config}", said)
        # Where it is there, too, and by one of several files.
        self.file("b.json", json.dumps(launch.server()))
        os.unlink(config)
        servers = self.made("home/.config/capgate/servers")
        self.write_config(os.path.join(servers, "b.yaml"), b={"manifest": manifest})
        self.written(os.path.join(servers, "a.yaml"), "servers: [")
        self.assert_refused(grant, manifest)
        os.unlink(os.path.join(servers, "b.yaml"))
        self.assert_started(grant, f"fs:write:{self.other}/**")
        self.assertEqual(self.output([], ["/bin/echo", "started"]), "started\n")

    def test_another_manifest_of_the_flags_file(self):
        manifest = self.file("b.json", json.dumps(launch.server()))
        given = self.write_config(os.path.join(self.other, "given.yaml"), b={"manifest": manifest},
                                  x={"capabilities": [f"fs:write:{self.work}/**"]})
        self.assertIn("is the manifest of b", self.refused("--config", given))

    def test_the_program_and_the_file_of_a_secret(self):
        """The program would run outside the next time, whatever the server wrote into it."""
        program = self.made("work/tool/get-token")
        for binding in (f"cmd:{program}/run", f"file:{program}/token"):
            place = binding.split(":", 1)[1]
            said = self.refusal(["--secret", f"TOKEN={binding}",
                                 *allow("env:inject:TOKEN", f"fs:write:{program}/**")])
            self.assertIn(f"{place} ", said)
            self.assertIn("the server could write it: ", said)

    def test_a_broken_config_is_kept_as_well(self):
        real = self.written(os.path.join(self.work, "broken.yaml"), "servers: [")
        link = os.path.join(self.config, "capgate.yaml")
        os.symlink(real, link)
        said = self.refusal(allow(f"fs:write:{self.work}/**"))
        self.assertIn(link, said)
        words = allow(f"fs:write:{self.other}/**")
        self.assertEqual(self.output(words, ["/bin/echo", "started"]), "started\n")

    def test_a_projects_file_may_lie_there(self):
        self.of_project(y={"manifest": "m.json"})
        self.assertEqual(self.output(allow(f"fs:write:{self.project}/**"), ["/bin/echo", "started"],
                                     cwd=self.project), "started\n")

    def test_init_starts_nothing_there(self):
        os.rmdir(self.config)
        mark = os.path.join(self.home, ".config/mark")
        done = self.capgate("init", *allow(f"fs:write:{self.home}/.config/**"), "--",
                            "/usr/bin/touch", mark)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the server could write it", done.stderr)
        self.assertFalse(os.path.exists(mark))


if __name__ == "__main__":
    unittest.main()
