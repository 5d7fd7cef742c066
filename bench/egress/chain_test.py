"""chain.py finds each mistake that it is there for."""

import hashlib
import json
import pathlib
import tempfile
import unittest

import chain

AT_ONCE = 4


def connect(flow, port=9200):
    return {"event": "connect", "flow": flow, "port": port, "verdict": "allowed"}


def close(flow, sent, received):
    return {"event": "close", "flow": flow, "sent": sent, "received": received}


WHOLE = [{"event": "start"}, connect(1), close(1, 10, 20), connect(2), {"event": "restart"},
         connect(3), close(3, 30, 40), {"event": "end"}]
RECORDS = ["9200 0 10 20 1 0", "9200 1 5 6 0 0", "9200 2 30 40 1 1"]


def chained(events):
    lines, previous = [], chain.FIRST
    for number, event in enumerate(events, 1):
        line = json.dumps({"seq": number, **event, "prev": previous})
        previous = hashlib.sha256(line.encode()).hexdigest()
        lines.append(line)
    return lines


class ChainTest(unittest.TestCase):
    def mistakes(self, lines, records=None, end="\n"):
        with tempfile.TemporaryDirectory() as directory:
            log, seen = pathlib.Path(directory, "log"), pathlib.Path(directory, "records")
            log.write_text("\n".join(lines) + end)
            seen.write_text("".join(record + "\n" for record in records or RECORDS))
            return " / ".join(chain.mistakes_of(log, seen, restarts=1, at_once=AT_ONCE))

    def without(self, *gone):
        return chained([event for event in WHOLE if event not in gone])

    def test_a_whole_log_has_no_mistake(self):
        self.assertEqual(self.mistakes(chained(WHOLE)), "")

    def test_a_changed_line(self):
        lines = chained(WHOLE)
        lines[2] = lines[2].replace('"sent": 10', '"sent": 11')
        self.assertIn("line 4 does not follow", self.mistakes(lines))

    def test_a_line_taken_out(self):
        lines = chained(WHOLE)
        del lines[3]
        self.assertIn("line 4 does not follow", self.mistakes(lines))

    def test_a_torn_line(self):
        self.assertIn("no JSON", self.mistakes(chained(WHOLE)[:-1] + ['{"seq": 8, "ev']))
        self.assertIn("the last line is cut", self.mistakes(chained(WHOLE), end=""))

    def test_a_connection_without_a_line(self):
        self.assertIn("the origin saw 3 connections, the log tells of 2",
                      self.mistakes(self.without(connect(2))))

    def test_a_denied_line_is_no_connection(self):
        events = [{**event, "verdict": "denied"} if event == connect(2) else event
                  for event in WHOLE]
        self.assertIn("the log tells of 2", self.mistakes(chained(events)))

    def test_a_flow_of_the_last_life_that_is_not_closed(self):
        self.assertIn("1 flows of the last life were never closed: [3]",
                      self.mistakes(self.without(close(3, 30, 40))))

    def test_wrong_sums_in_the_last_life(self):
        events = [close(3, 30, 41) if event == close(3, 30, 40) else event for event in WHOLE]
        self.assertIn("life 1: 1 whole connections", self.mistakes(chained(events)))

    def test_a_killed_life_owes_no_more_than_was_alive(self):
        self.assertEqual(self.mistakes(self.without(close(1, 10, 20))), "")
        flows = range(10, 10 + AT_ONCE + 1)
        events = WHOLE[:1] + [connect(flow) for flow in flows] + WHOLE[1:]
        records = RECORDS + [f"9200 {flow} {flow} 0 1 0" for flow in flows]
        self.assertIn("life 0: 5 whole connections", self.mistakes(chained(events), records))

    def test_a_missing_restart_and_end(self):
        self.assertIn("0 times restart", self.mistakes(self.without({"event": "restart"})))
        self.assertIn("0 times end", self.mistakes(self.without({"event": "end"})))


if __name__ == "__main__":
    unittest.main()
