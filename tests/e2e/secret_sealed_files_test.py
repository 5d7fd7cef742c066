"""The file of a sealed secret is not readable inside: what names the server may read decides it."""

import os
import unittest

from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python

VALUE = "tok_0123456789abcdef0123456789"
SEALED = ("net:connect:vault.example.test:443", "env:inject:TOKEN?to=vault.example.test:443")
READ = "import sys; sys.stdout.write(open(sys.argv[1]).read())"


def setUpModule():
    adopt_orphans()


@started_by_root_and_user
class SealedFiles(RunCase):
    def setUp(self):
        super().setUp()
        self.token = self.file("secrets/token", VALUE + "\n")

    def words(self, *grants, binding=None, sealed=SEALED):
        return ["--secret", f"TOKEN={binding or 'file:' + self.token}", *allow(*sealed, *grants)]

    def assert_refused(self, *grants, said="is granted", binding=None, **options):
        text = self.refusal(self.words(*grants, binding=binding), python(READ, self.token), **options)
        self.assertIn("holds the sealed secret TOKEN, and ", text)
        self.assertIn(said, text)
        self.assertIn("\nhelp: ", text)
        self.assertNotIn(VALUE, text)
        return text

    def assert_started(self, *grants, **options):
        self.assertEqual(self.output(self.words(*grants), ["/bin/echo", "started"], **options), "started\n")

    def test_control(self):
        """Outside, and injected instead of sealed, the same server reads the file."""
        plain = ["--secret", f"TOKEN=file:{self.token}", *allow("env:inject:TOKEN", f"fs:read:{self.work}/**")]
        self.assertEqual(self.output(plain, python(READ, self.token)).strip(), VALUE)

    def test_in_a_granted_directory(self):
        other = self.own(self.tree.directory("other"), 0o700)
        self.assert_started()
        self.assert_started(f"fs:read:{other}/**")
        text = self.assert_refused(f"fs:read:{self.work}/**")
        self.assertIn(f"{self.token} holds the sealed secret TOKEN, and the server could read it: "
                      f"{self.work} is granted", text)
        for rights in ("write", "create", "delete"):
            text = self.refusal(self.words(f"fs:{rights}:{self.work}/**"))
            self.assertIn("holds the secret TOKEN, and the server could write it", text)
        self.assert_refused(f"fs:read:{self.work}/secrets/**")

    def test_granted_itself(self):
        self.assert_refused(f"fs:read:{self.token}")
        self.assert_refused(f"fs:read:{self.work}/secrets/*")
        self.assert_refused(f"fs:read:{self.work}/*")

    def test_by_another_name(self):
        link = os.path.join(self.home, "link")
        os.symlink(self.token, link)
        os.lchown(link, self.uid, self.uid)
        way = os.path.join(self.home, "way")
        os.symlink(os.path.dirname(self.token), way)
        os.lchown(way, self.uid, self.uid)
        for name in (link, f"{way}/token", f"{self.home}/../work/secrets/token"):
            text = self.assert_refused(f"fs:read:{self.work}/**", binding="file:" + name)
            self.assertIn(name, text)
        self.assert_refused(f"fs:read:{self.work}/**", binding="file:secrets/token", cwd=self.work)

    def test_a_hard_link_in_a_granted_directory(self):
        other = self.own(self.tree.directory("other"), 0o700)
        os.link(self.token, os.path.join(other, "name"))
        text = self.assert_refused(f"fs:read:{other}/**", said="has several names (hard links)")
        self.assertIn(other, text)
        self.assert_refused(f"fs:read:{other}/name", said=f"{other}/name is granted")
        self.assert_started()

    def test_the_home_of_a_profile(self):
        state = self.tree.directory("state")
        self.own(state, 0o700)
        env = self.environment(XDG_STATE_HOME=state)
        words = ["--profile", "x", *self.words()]
        self.assertEqual(self.output(words, ["/bin/echo", "started"], env=env), "started\n")
        home = os.path.join(state, "capgate/x/home")
        path = os.path.join(home, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write(VALUE)
        self.own(path, 0o600)
        text = self.refusal(["--profile", "x", *self.words(binding="file:" + path)], env=env)
        self.assertIn("TOKEN, and the server could", text)

    def test_one_that_is_hidden_anyway(self):
        hidden = self.file(".env", VALUE)
        self.assertEqual(self.output(self.words(f"fs:read:{self.work}/**", binding="file:" + hidden),
                                     ["/bin/echo", "started"]), "started\n")
        self.assert_refused(f"fs:read:{self.work}/**", f"fs:read:{hidden}", binding="file:" + hidden)

    def test_a_dry_run_says_it_too(self):
        text = self.refusal(["--dry-run", *self.words(f"fs:read:{self.work}/**")])
        self.assertIn("holds the sealed secret TOKEN", text)

    def test_a_credential_of_systemd(self):
        env = self.environment(CREDENTIALS_DIRECTORY=f"{self.work}/secrets")
        self.assert_refused(f"fs:read:{self.work}/**", binding="systemd-credential:token", env=env)

    def test_the_key_of_the_store(self):
        config = self.own(self.tree.directory("config"), 0o700)
        os.mkdir(f"{config}/capgate")
        self.own(f"{config}/capgate", 0o700)
        with open(f"{config}/capgate/store.key", "wb") as file:
            file.write(b"k" * 32)
        self.own(f"{config}/capgate/store.key", 0o600)
        env = self.environment(XDG_CONFIG_HOME=config)
        text = self.refusal(["--dry-run", *self.words(f"fs:read:{config}/**", binding="store:TOKEN")], env=env)
        self.assertIn(f"{config}/capgate/store.key opens the store that holds the sealed secret TOKEN", text)


if __name__ == "__main__":
    unittest.main()
