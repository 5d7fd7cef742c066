"""capgate run --profile: a home that stays, which a server may have filled with anything."""

import os
import unittest

from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python


def setUpModule():
    adopt_orphans()


@started_by_root_and_user
class Profile(RunCase):
    """The home of a name is kept from run to run, and nothing else is."""

    def setUp(self):
        super().setUp()
        self.state = self.own(self.tree.directory("state"), 0o700)

    def environment(self, **changes):
        return super().environment(XDG_STATE_HOME=self.state, **changes)

    def in_home(self, code):
        return python(f"import os\nos.chdir(os.environ['HOME'])\n{code}")

    def test_what_a_run_leaves_the_next_one_of_that_name_finds(self):
        self.output(["--profile", "one"], self.in_home("open('note', 'w').write('kept')"))
        listing = self.in_home("print(os.listdir('.'))")
        self.assertEqual(self.output(["--profile", "one"], listing), "['note']\n")
        self.assertEqual(self.output(["--profile", "two"], listing), "[]\n")
        self.assertEqual(self.output([], listing), "[]\n")
        self.assertEqual(os.listdir(self.home), [])

    def test_it_is_for_its_owner_alone(self):
        self.output(["--profile", "one"], ["/usr/bin/true"])
        for name in ("capgate", "capgate/one", "capgate/one/home"):
            self.assertEqual(os.stat(os.path.join(self.state, name)).st_mode & 0o777, 0o700, name)

    def test_a_grant_inside_the_home_is_seen_there(self):
        granted = os.path.join(self.home, "in/granted")
        os.makedirs(granted)
        self.assertEqual(self.attempt(["--profile", "one", *allow(f"fs:read:{granted}/**")],
                                      f"os.listdir({granted!r})"), ["[]"])

    def test_a_dry_run_makes_nothing(self):
        self.dry_run(["--profile", "one"], ["/usr/bin/true"])
        self.assertEqual(os.listdir(self.state), [])

    def test_a_link_that_a_server_left_leads_nowhere(self):
        """The place of a grant is made in that home by capgate, outside of any sandbox."""
        victim = self.own(self.tree.directory("victim"), 0o700)
        self.output(["--profile", "one"], self.in_home(f"os.symlink({victim!r}, 'in')"))
        granted = os.path.join(self.home, "in/granted")
        os.makedirs(granted)
        self.run_server(["--profile", "one", *allow(f"fs:read:{granted}/**")], ["/usr/bin/true"])
        self.assertEqual(os.listdir(victim), [])

    def test_names_that_would_leave_the_directory_are_refused(self):
        for name in ("..", ".", "a/b", "", "a" * 65):
            self.refusal(["--profile", name])
        self.assertEqual(os.listdir(self.state), [])


if __name__ == "__main__":
    unittest.main()
