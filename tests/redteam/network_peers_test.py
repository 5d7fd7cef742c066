"""Attack 45 and the broker itself: one sandbox and another, a sandbox and what serves it."""

import json
import unittest

from network_cases import (API, STUB, NetworkAttack, addresses, last_request, launch, open_lab,
                           wait_until)

HOLDER = ("import os, socket, sys\n"
          "kept = []\n"
          "for family, host in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):\n"
          "    listener = socket.socket(family)\n"
          "    if family == socket.AF_INET6:\n"
          "        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)\n"
          "    listener.bind((host, 9100))\n"
          "    listener.listen()\n"
          "    kept.append(listener)\n"
          "try: name = socket.gethostbyname('stub.example.test')\n"
          "except OSError: name = ''\n"
          "proxy = os.environ.get('HTTP_PROXY', '').rpartition(':')[2].strip('/')\n"
          "print(name, proxy, flush=True)\n"
          "sys.stdin.read()\n")
# What a process can see of others: programs, named Unix sockets, and its own descriptors.
LOOK = ("import json, os\n"
        "def text(path):\n"
        "    try: return open(path).read()\n"
        "    except OSError: return ''\n"
        "pids = [pid for pid in os.listdir('/proc') if pid.isdigit()]\n"
        "print(json.dumps({\n"
        "    'programs': sorted(text(f'/proc/{pid}/comm').strip() for pid in pids),\n"
        "    'unix': [line for line in text('/proc/net/unix').splitlines()[1:] "
        "if len(line.split()) > 7],\n"
        "    'descriptors': sorted(int(fd) for fd in os.listdir('/proc/self/fd'))}))\n")


def setUpModule():
    open_lab()


class Sandboxes(NetworkAttack):
    """Two sandboxes with different grants."""

    def start_holder(self, *allow, sandboxed=True):
        command = [launch.PYTHON, "-I", "-c", HOLDER]
        if sandboxed:
            command = self.sandboxed(command, allow, ["--proxy-env"], self.new_audit())
        process = self.start(command)
        words = process.stdout.readline().decode().rstrip("\n").split(" ")
        self.assertEqual(len(words), 2, process.stderr.read() if words == [""] else words)
        return process, words[0], words[1]

    def test_45_two_plain_processes_reach_each_other(self):
        """The control of the next one."""
        self.start_holder(sandboxed=False)
        orders = [{"to": [host, 9100], "seconds": 0.2} for host in ("127.0.0.1", "::1")]
        outside = self.outside(self.talk(*orders)).talks()
        self.assertEqual([talk.get("error") for talk in outside], ["silence"] * 2, "connected")

    def test_45_listeners_of_another_sandbox_are_out_of_reach(self):
        self.start_holder(STUB)
        orders = [{"to": [host, 9100], "seconds": 1}
                  for host in ("127.0.0.1", "::1", "28.18.0.1", addresses.HOST4, addresses.HOST6)]
        run, talks = self.talk_inside(*orders, allow=[API])
        self.assertEqual([talk.get("error") for talk in talks], ["ECONNREFUSED"] * len(orders), run)

    def test_45_grants_of_another_sandbox(self):
        """Its synthetic addresses and its proxy lead to nothing but what this one may reach."""
        _, synthetic, proxy = self.start_holder(STUB)
        self.assertRegex(synthetic, r"^28\.1[89]\.")
        send = last_request("stub.example.test")
        orders = [{"to": [synthetic, 80], "send": send, "seconds": 1},
                  {"to": ["127.0.0.1", int(proxy)], "seconds": 1,
                   "send": last_request("stub.example.test", target="http://stub.example.test/")}]
        self.clear()
        run, talks = self.talk_inside(*orders, allow=[API], options=["--proxy-env"])
        for talk in talks:
            self.assertNotIn("stub\n", talk["got"], run)
        self.assertEqual(self.seen(), [], run)
        # The control: with the rule the same conversations arrive.
        named = {**orders[0], "to": ["stub.example.test", 80]}
        run, talks = self.talk_inside(
            *({**order, "until": "stub\n", "seconds": 25} for order in (named, orders[1])),
            allow=[STUB], options=["--proxy-env"])
        self.assertEqual([talk["got"].endswith("stub\n") for talk in talks], [True] * 2, run)

    def test_45_the_hosts_network_cannot_enter_either(self):
        self.start_holder(STUB)
        _, _, proxy = self.start_holder(API)
        orders = [{"to": ["127.0.0.1", port], "seconds": 1} for port in (9100, int(proxy))]
        talks = self.outside(self.talk(*orders)).talks()
        self.assertEqual([talk.get("error") for talk in talks], ["ECONNREFUSED"] * 2)

    def test_45_neither_sees_the_others_processes(self):
        self.start_holder(STUB)
        look = [launch.PYTHON, "-I", "-c", LOOK]
        outside = json.loads(self.outside(look).output)
        self.assertIn("capgate-broker", outside["programs"])
        self.assertGreater(outside["programs"].count("python3"), 1)
        inside = json.loads(self.inside(look, [API]).output)
        self.assertEqual(inside["programs"].count("python3"), 1, inside)
        self.assertNotIn("capgate-broker", inside["programs"])


class Broker(NetworkAttack):
    def test_no_descriptor_and_no_socket_of_the_broker_is_inside(self):
        look = [launch.PYTHON, "-I", "-c", LOOK]
        run = self.inside(look, ["net:connect:*", "net:listen:8123"], ["--proxy-env"])
        found = json.loads(run.output)
        # 3 is the directory that is being listed.
        self.assertEqual((found["descriptors"], found["unix"]), ([0, 1, 2, 3], []), run)

    def test_the_broker_is_confined(self):
        process = self.start(self.sandboxed(["/usr/bin/cat"], ["net:connect:*"],
                                            audit=self.new_audit()))
        process.stdin.write(b"x")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(1), b"x")
        status = self.lab.run_as_root("/bin/sh", "-c",
                                      "cat /proc/$(pidof capgate-broker)/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual((fields["Seccomp"], fields["NoNewPrivs"], fields["CapEff"]),
                         ("2", "1", "0" * 16))

    def programs(self):
        return json.loads(self.outside([launch.PYTHON, "-I", "-c", LOOK]).output)["programs"]

    def test_a_killed_supervisor_leaves_no_broker(self):
        process = self.start(self.sandboxed(["/usr/bin/cat"], [API], audit=self.new_audit()))
        process.stdin.write(b"x")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(1), b"x")
        self.assertIn("capgate-broker", self.programs())
        self.lab.run_as_root("/bin/sh", "-c", "kill -9 $(pidof capgate)")
        process.wait(launch.SECONDS)
        self.assertTrue(wait_until(lambda: not {"capgate", "capgate-broker", "cat"}
                                   & set(self.programs())), self.programs())

    def test_nothing_of_a_run_is_left(self):
        self.talk_inside({"to": ["stub.example.test", 80], "until": 1,
                          "send": last_request("stub.example.test")}, allow=[STUB])
        self.assertEqual([name for name in self.programs() if "capgate" in name], [])


if __name__ == "__main__":
    unittest.main()
