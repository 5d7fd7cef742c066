"""bwrap: credentials stay hidden inside a granted parent, and hiding them touches nothing."""

import unittest

from cases import BwrapCase, started_by_root_and_user


class HomeCase(BwrapCase):
    """A home directory with credentials in ~/.local/share and ~/.config."""

    def setUp(self):
        super().setUp()
        self.home = self.tree.directory("home")
        self.tree.file("home/.local/share/keyrings/login.keyring", "secret")
        self.tree.file("home/.local/share/keyrings/other.keyring", "other secret")
        self.tree.file("home/.local/share/fish/fish_history", "history")
        self.tree.file("home/.local/share/notes/a.txt", "note")
        self.tree.file("home/.config/gh/hosts.yml", "token")
        self.tree.file("home/.config/hub", "token")
        self.tree.file("home/.config/app/settings", "settings")

    def at(self, name):
        return f"{self.home}/{name}"

    def compile_at_home(self, *capabilities, options=()):
        scopes = [capability.replace("~", self.home) for capability in capabilities]
        return self.compile(*scopes, options=("--set", f"HOME={self.home}", *options))

    def attempt_at_home(self, artifact, *attempts):
        """The attempts on paths below the home directory; the host's tree must stay as it was."""
        before = self.tree.snapshot()
        results = self.attempt_with(artifact, *[(name, self.at(path), *rest)
                                                for name, path, *rest in attempts])
        self.assertEqual(self.tree.snapshot(), before)
        return results


@started_by_root_and_user
class HiddenCredentials(HomeCase):
    """A grant of a parent opens everything below it but the credentials."""

    def test_a_credential_directory_is_empty_and_its_sibling_is_not(self):
        self.assert_open_outside(("read", self.at(".local/share/keyrings/login.keyring")))
        for action in ("read", "write"):
            with self.subTest(action=action):
                artifact = self.compile_at_home(f"fs:{action}:~/.local/share/**")
                results = self.attempt_at_home(
                    artifact, ("read", ".local/share/notes/a.txt"),
                    ("names", ".local/share/keyrings"),
                    ("read", ".local/share/keyrings/login.keyring"))
                self.assertEqual(results, ["note", [], "ENOENT"])

    def test_a_credential_file_is_hidden_with_its_directory(self):
        artifact = self.compile_at_home("fs:read:~/.local/share/**")
        results = self.attempt_at_home(artifact, ("names", ".local/share/fish"),
                                       ("read", ".local/share/fish/fish_history"))
        self.assertEqual(results, [[], "ENOENT"])

    def test_a_hidden_directory_cannot_be_filled(self):
        artifact = self.compile_at_home("fs:write:~/.local/share/**")
        results = self.attempt_at_home(artifact, ("write", ".local/share/keyrings/planted"),
                                       ("make_directory", ".local/share/keyrings/planted"))
        self.assertEqual(results, ["ENOENT", "ENOENT"])

    def test_credentials_that_are_not_there_neither_block_nor_appear(self):
        """G6 and G8: no start fails and nothing is made for a credential that is absent."""
        self.tree.file("home/.local/state/app/log", "log")
        artifact = self.compile_at_home("fs:write:~/.local/state/**")
        self.assertIn(self.at(".local/state/capgate"), artifact["argv"])
        results = self.attempt_at_home(artifact, ("names", ".local/state"))
        self.assertEqual(results, [["app"]])

    def test_a_credential_file_directly_in_the_grant_is_refused_unless_accepted(self):
        """It could only be hidden with the whole grant."""
        with self.assertRaisesRegex(ValueError, r"ADAPTER_UNSUPPORTED.*\.config/hub"):
            self.compile_at_home("fs:read:~/.config/**")
        capability = f"fs:read:{self.home}/.config/**"
        artifact = self.compile_at_home(capability, options=("--accept-unenforced", capability))
        self.assertEqual(artifact["unenforced"], [capability])
        results = self.attempt_at_home(artifact, ("read", ".config/app/settings"),
                                       ("names", ".config/gh"), ("read", ".config/hub"))
        self.assertEqual(results, ["settings", [], "token"])

    def test_a_credential_of_an_unexpected_type_stops_the_start(self):
        """G19: what cannot be hidden is not shown."""
        self.tree.file("home/.local/share/bitwarden", "a file where a directory belongs")
        self.assert_refuses_to_start(self.compile_at_home("fs:read:~/.local/share/**"),
                                     self.at(".local/share/bitwarden"))

    def test_without_an_empty_directory_to_hide_with_nothing_starts(self):
        """bwrap leaves a --ro-bind-try out when its source is missing, which must not go unseen."""
        artifact = self.compile_at_home("fs:read:~/.local/share/**")
        elsewhere = [word.replace("proc/tty/ldisc", "proc/no-such-directory")
                     for word in artifact["argv"]]
        self.assertNotEqual(elsewhere, artifact["argv"])
        self.assert_refuses_to_start({**artifact, "argv": elsewhere}, "/proc/no-such-directory")

    def test_a_linked_credential_directory_is_hidden_or_stops_the_start(self):
        self.tree.file("home/.local/share/vault/key", "secret")
        self.tree.link("home/.local/share/bitwarden", "vault")
        artifact = self.compile_at_home("fs:read:~/.local/share/**")
        results = self.attempt_at_home(artifact, ("names", ".local/share/bitwarden"),
                                       ("names", ".local/share/vault"))
        self.assertEqual(results, [[], []])
        self.tree.link("home/.local/share/opencode", self.at(".local/share/vault"))
        self.assert_refuses_to_start(self.compile_at_home("fs:read:~/.local/share/**"), "opencode")


@started_by_root_and_user
class NamedCredentials(HomeCase):
    """A credential that is granted by its own name is there, and noted."""

    def assert_notes_credentials(self, artifact):
        self.assertTrue([note for note in artifact["notes"]
                         if "granted although it holds credentials" in note], artifact["notes"])

    def test_a_credential_alone(self):
        artifact = self.compile_at_home("fs:read:~/.config/gh/**")
        self.assert_notes_credentials(artifact)
        results = self.attempt_at_home(artifact, ("read", ".config/gh/hosts.yml"),
                                       ("names", ".config"), ("write", ".config/gh/hosts.yml"))
        self.assertEqual(results, ["token", ["gh"], "EROFS"])

    def test_a_credential_beside_its_parent(self):
        for action in ("read", "write"):
            with self.subTest(action=action):
                artifact = self.compile_at_home("fs:read:~/.local/share/**",
                                                f"fs:{action}:~/.local/share/keyrings")
                self.assert_notes_credentials(artifact)
                results = self.attempt_at_home(
                    artifact, ("read", ".local/share/keyrings/login.keyring"),
                    ("names", ".local/share/fish"))
                self.assertEqual(results, ["secret", []])

    def test_one_file_of_a_credential_beside_its_parent(self):
        for action in ("read", "write"):
            with self.subTest(action=action):
                artifact = self.compile_at_home(
                    "fs:read:~/.local/share/**",
                    f"fs:{action}:~/.local/share/keyrings/login.keyring")
                results = self.attempt_at_home(
                    artifact, ("read", ".local/share/keyrings/login.keyring"),
                    ("names", ".local/share/keyrings"), ("read", ".local/share/notes/a.txt"))
                self.assertEqual(results, ["secret", ["login.keyring"], "note"])


if __name__ == "__main__":
    unittest.main()
