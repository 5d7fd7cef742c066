"""private=true: names of one's own network, and what they still do not lead to."""

import unittest

from egress_cases import EgressCase, last_request, open_lab
from egress_lab import addresses

NAME = "git.corp.test"
RULE = f"net:connect:{NAME}:80"
PRIVATE = RULE + "?private=true"
OPEN = (addresses.PRIVATE, addresses.CARRIER, addresses.PRIVATE6)
# Each is answered on the lab's host, so that a mistake would show.
CLOSED = ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", addresses.METADATA, addresses.HOST4,
          addresses.HOST6)
ORDER = {"to": [NAME, 80], "send": last_request(NAME), "until": 1}


def setUpModule():
    open_lab()


class PrivateNames(EgressCase):
    def lead(self, *answers):
        """What the resolver says, one answer after the other."""
        self.lab.far.set_names({NAME: [list(answer) for answer in answers]})
        self.lab.far.clear()
        self.lab.near.clear()

    def reached(self):
        """The addresses of all that was connected to."""
        records = self.lab.far.all() + self.lab.near.all()
        return {record["at"].rsplit(":", 1)[0] for record in records if record["kind"] == "tcp"}

    def test_without_it_the_name_is_refused_and_the_rule_with_it_is_named(self):
        for place in OPEN:
            with self.subTest(place=place):
                self.lead([place])
                run, (talk,) = self.talk_inside(ORDER, allow=[RULE])
                self.assertEqual((talk["got"], self.reached()), ("", set()), run)
                denial = run.assert_denied(event="connect", host=NAME, reason="private-address")
                self.assertEqual(denial["remedy"], PRIVATE)
                self.assertIn(PRIVATE, run.said)

    def test_with_it_hosts_of_the_network_are_reached(self):
        for place in OPEN:
            for rule in (PRIVATE, "net:connect:*.corp.test:80?private=true",
                         f"net:connect:{NAME}?private=true"):
                with self.subTest(place=place, rule=rule):
                    self.lead([place])
                    run, (talk,) = self.talk_inside(ORDER, allow=[rule])
                    self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)
                    self.assertEqual(self.reached(), {place}, run)
                    run.assert_line(event="connect", host=NAME, verdict="allowed", rule=rule)

    def test_with_it_this_machine_and_metadata_stay_closed(self):
        for place in CLOSED:
            with self.subTest(place=place):
                self.lead([place])
                self.talk_outside(ORDER)
                self.lead([place])
                run, (talk,) = self.talk_inside(ORDER, allow=[PRIVATE])
                self.assertEqual((talk["got"], self.reached()), ("", set()), run)
                denial = run.assert_denied(event="connect", host=NAME,
                                           reason=("private-address", "own-address"))
                self.assertNotIn("remedy", denial)

    def test_a_name_that_turns_is_checked_each_time(self):
        for place in CLOSED:
            with self.subTest(place=place):
                self.lead([addresses.PRIVATE], [place])
                run, talks = self.talk_inside(ORDER, ORDER, allow=[PRIVATE])
                self.assertTrue(talks[0]["got"].startswith("HTTP/1.1 200"), run)
                self.assertEqual(self.reached(), {addresses.PRIVATE}, run)

    def test_closed_addresses_beside_an_open_one_are_left_out(self):
        self.lead([*CLOSED[:2], addresses.METADATA, addresses.PRIVATE])
        run, (talk,) = self.talk_inside(ORDER, allow=[PRIVATE])
        self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)
        self.assertEqual(self.reached(), {addresses.PRIVATE}, run)

    def test_it_opens_neither_other_names_nor_the_address(self):
        self.lead([addresses.PRIVATE])
        orders = [{**ORDER, "to": [host, 80]}
                  for host in ("private.example.test", addresses.PRIVATE)]
        self.talk_outside(*orders)
        self.lab.far.clear()
        run, talks = self.talk_inside(*orders, allow=[PRIVATE, "net:connect:*:80"])
        self.assertEqual([talk["got"] for talk in talks], ["", ""], run)
        self.assertEqual(self.reached(), set(), run)

    def test_another_name_in_the_request_is_refused(self):
        self.lead([addresses.PRIVATE])
        run, (talk,) = self.talk_inside({**ORDER, "send": last_request("victim.test")},
                                        allow=[PRIVATE])
        self.assertEqual((talk["got"], self.reached()), ("", set()), run)
        run.assert_denied(host=NAME, reason="other-name")

    def test_the_promise_not_to_reach_private_addresses_excludes_it(self):
        said = self.refusal(allow=[PRIVATE, "assert:fetch.block_rfc1918"])
        self.assertIn("POLICY_CONFLICT", said)


if __name__ == "__main__":
    unittest.main()
