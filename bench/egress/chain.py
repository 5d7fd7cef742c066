"""Reads an audit log without any code of capgate's: is the chain whole, and does it tell of every
connection that the origins saw?"""

import collections
import hashlib
import json

FIRST = "0" * 64


def read(path):
    """(events, mistakes). A mistake is a line that does not fit the one before it."""
    events, mistakes, previous = [], [], FIRST
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        mistakes.append("the last line is cut")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            event = json.loads(line)
        except ValueError:
            mistakes.append(f"line {number} is no JSON: {line[:100]!r}")
            event = {}
        if event.get("prev") != previous:
            mistakes.append(f"line {number} does not follow the line before it")
        if event.get("seq") != number:
            mistakes.append(f"line {number} has the number {event.get('seq')}")
        previous = hashlib.sha256(line).hexdigest()
        events.append(event)
    return events, mistakes


def lives(events):
    """The events by life of the broker."""
    result = [[]]
    for event in events:
        if event.get("event") == "restart":
            result.append([])
        result[-1].append(event)
    return result


def is_allowed(event):
    return event.get("event") == "connect" and event.get("verdict") == "allowed"


def frame_mistakes(events, restarts):
    kinds = [event.get("event") for event in events]
    wanted = {"start": 1, "restart": restarts, "end": 1}
    mistakes = [f"{kinds.count(kind)} times {kind}, not {count}"
                for kind, count in wanted.items() if kinds.count(kind) != count]
    if not kinds or kinds[0] != "start" or kinds[-1] != "end":
        mistakes.append("it does not begin with start and end with end")
    return mistakes


def flow_mistakes(events):
    """Each flow has one opening line and at most one closing line; all of the last life are closed."""
    opened = [event["flow"] for event in events if is_allowed(event)]
    closed = [event["flow"] for event in events if event.get("event") == "close"]
    mistakes = []
    if len(set(opened)) != len(opened) or len(set(closed)) != len(closed):
        mistakes.append("a flow is opened or closed twice")
    if not set(closed) <= set(opened):
        mistakes.append(f"closed but never opened: {sorted(set(closed) - set(opened))[:10]}")
    last = lives(events)[-1]
    never = ({event["flow"] for event in last if is_allowed(event)} - set(closed))
    if never:
        mistakes.append(f"{len(never)} flows of the last life were never closed: {sorted(never)[:10]}")
    return mistakes


Record = collections.namedtuple("Record", "port number received sent whole life")


def read_records(path):
    """What traffic wrote: the connections that reached an origin."""
    return [Record(*map(int, line.split())) for line in path.read_text().splitlines()]


def missing_connections(events, records):
    """Connections that an origin saw without an allowed line for its port."""
    seen = collections.Counter(record.port for record in records)
    told = collections.Counter(event.get("port") for event in events if is_allowed(event))
    return [f"port {port}: the origin saw {count} connections, the log tells of {told[port]}"
            for port, count in seen.items() if told[port] < count]


def missing_sums(events, records, restarts, at_once):
    """Whole connections without a closing line that has their bytes. A life that was killed may owe
    those that were alive then; the last may owe none."""
    port_of = {event["flow"]: event["port"] for event in events if is_allowed(event)}

    def missing_of(life):
        told = collections.Counter((port_of.get(event["flow"]), event.get("sent"), event.get("received"))
                                   for event in events if event.get("event") == "close")
        wanted = collections.Counter((one.port, one.received, one.sent) for one in records
                                     if one.whole and one.life == life)
        return list((wanted - told).elements())

    mistakes = []
    for life in range(restarts + 1):
        owed = missing_of(life)
        if len(owed) > (0 if life == restarts else at_once):
            mistakes.append(f"life {life}: {len(owed)} whole connections without a closing line of "
                            f"their (port, sent, received): {owed[:5]}")
    return mistakes


def mistakes_of(path, records_path, restarts, at_once):
    events, mistakes = read(path)
    records = read_records(records_path)
    return (mistakes[:10] + frame_mistakes(events, restarts) + flow_mistakes(events)
            + missing_connections(events, records)
            + missing_sums(events, records, restarts, at_once))
