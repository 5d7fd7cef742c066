"""The kubernetes target: every golden object by the schemas of Kubernetes and Cilium, by the rules of
the Pod Security level "restricted", and by what its policies let through."""

import copy
import glob
import ipaddress
import json
import os
import subprocess
import unittest

import yaml

import launch
import npm_packages

GOLDEN = os.path.join(launch.ROOT, "tests/golden")
SOURCE = os.path.join(launch.ROOT, "tests/e2e/kubernetes")
PROGRAM = os.path.join(launch.ROOT, ".deps/kubernetes/validate.mjs")


def setUpModule():
    place = npm_packages.install("kubernetes")
    npm_packages.add_program(os.path.join(SOURCE, "validate.mjs"), place)


def cases():
    """The objects of each golden, by the name of its case."""
    out = {}
    for path in sorted(glob.glob(os.path.join(GOLDEN, "*/kubernetes/*.yaml"))):
        with open(path, encoding="utf-8") as file:
            out[path.split(os.sep)[-3]] = list(yaml.safe_load_all(file))
    return out


def refusals(objects):
    """For each object what its schema says against it, or None."""
    done = subprocess.run([launch.NODE, PROGRAM], check=True,
                          input=json.dumps(objects), capture_output=True, text=True,
                          timeout=launch.SECONDS)
    return json.loads(done.stdout)


def of_kind(objects, kind):
    return [item for item in objects if item["kind"] == kind]


class Schemas(unittest.TestCase):
    """What the API server would refuse."""

    def test_every_object_is_valid_and_has_no_unknown_key(self):
        named = [(case, item) for case, objects in cases().items() for item in objects]
        said = zip(named, refusals([item for _, item in named]))
        self.assertEqual([(case, item["kind"], text) for (case, item), text in said if text], [])

    def test_a_wrong_type_and_an_unknown_key_would_be_refused(self):
        deployment = of_kind(cases()["github"], "Deployment")[0]
        policy = of_kind(cases()["brave-search"], "CiliumNetworkPolicy")[1]
        wrong = copy.deepcopy([deployment, deployment, policy, policy])
        wrong[0]["spec"]["replicas"] = "one"
        wrong[1]["spec"]["template"]["spec"]["containers"][0]["privilegd"] = False
        wrong[2]["spec"]["egress"][1]["toPorts"][0]["ports"][0]["port"] = 443
        wrong[3]["spec"]["egress"][1]["toFQDN"] = []
        self.assertNotIn(None, refusals(wrong))

    def test_names_are_names_of_objects_and_of_services(self):
        for case, objects in cases().items():
            seen = set()
            for item in objects:
                name = item["metadata"]["name"]
                self.assertRegex(name, r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", case)
                self.assertNotIn((item["kind"], name), seen, case)
                seen.add((item["kind"], name))


ALLOWED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
                   "persistentVolumeClaim", "projected", "secret"}
SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes"}


def restricted(pod):
    """The controls of the Pod Security Standards, baseline and restricted, that a pod fails."""
    context = pod.get("securityContext", {})
    containers = [*pod.get("containers", []), *pod.get("initContainers", []),
                  *pod.get("ephemeralContainers", [])]
    failed = set()

    def require(control, condition):
        if not condition:
            failed.add(control)

    def unset(options):
        return not any(options.values()) if options else True

    require("host process", not context.get("windowsOptions", {}).get("hostProcess"))
    require("host namespaces",
            not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")))
    require("sysctls", all(entry["name"] in SAFE_SYSCTLS for entry in context.get("sysctls", [])))
    for volume in pod.get("volumes", []):
        require("volume types", set(volume) - {"name"} <= ALLOWED_VOLUMES)
    require("selinux", context.get("seLinuxOptions", {}).get("type", "") in
            ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"))
    require("apparmor", context.get("appArmorProfile", {}).get("type", "RuntimeDefault") in
            ("RuntimeDefault", "Localhost"))
    require("non-root user", context.get("runAsUser", 1) != 0)
    for container in containers:
        own = container.get("securityContext", {})
        capabilities = own.get("capabilities", {})
        profile = own.get("seccompProfile", context.get("seccompProfile", {}))
        require("host process", not own.get("windowsOptions", {}).get("hostProcess"))
        require("privileged", not own.get("privileged"))
        require("capabilities", capabilities.get("drop") == ["ALL"] and
                set(capabilities.get("add", [])) <= {"NET_BIND_SERVICE"})
        require("host ports", not any(port.get("hostPort") for port in container.get("ports", [])))
        require("proc mount", own.get("procMount", "Default") == "Default")
        require("seccomp", profile.get("type") in ("RuntimeDefault", "Localhost"))
        require("privilege escalation", own.get("allowPrivilegeEscalation") is False)
        require("non-root", own.get("runAsNonRoot", context.get("runAsNonRoot")) is True)
        require("non-root user", own.get("runAsUser", 1) != 0)
        require("selinux", unset({key: own.get("seLinuxOptions", {}).get(key)
                                  for key in ("user", "role")}))
        require("probes", not any("host" in container.get(probe, {}).get(kind, {})
                                  for probe in ("livenessProbe", "readinessProbe", "startupProbe")
                                  for kind in ("httpGet", "tcpSocket")))
    return failed


def pods(objects):
    return [item["spec"]["template"]["spec"] for item in of_kind(objects, "Deployment")]


class PodSecurity(unittest.TestCase):
    """The level "restricted", and what we promise beyond it."""

    def test_every_pod_is_restricted(self):
        for case, objects in cases().items():
            self.assertGreaterEqual(len(pods(objects)), 1, case)
            for pod in pods(objects):
                self.assertEqual(restricted(pod), set(), case)

    def test_each_control_can_fail(self):
        good = pods(cases()["github"])[1]

        def changed(change):
            pod = copy.deepcopy(good)
            change(pod, pod["securityContext"], pod["containers"][0],
                   pod["containers"][0]["securityContext"])
            return restricted(pod)
        for control, change in {
                "host namespaces": lambda p, c, k, s: p.update(hostPID=True),
                "sysctls": lambda p, c, k, s: c.update(sysctls=[{"name": "kernel.msgmax"}]),
                "volume types": lambda p, c, k, s: p["volumes"].append(
                    {"name": "x", "hostPath": {"path": "/"}}),
                "non-root user": lambda p, c, k, s: c.update(runAsUser=0),
                "privileged": lambda p, c, k, s: s.update(privileged=True),
                "capabilities": lambda p, c, k, s: s["capabilities"].update(add=["SYS_ADMIN"]),
                "host ports": lambda p, c, k, s: k.update(ports=[{"hostPort": 80}]),
                "proc mount": lambda p, c, k, s: s.update(procMount="Unmasked"),
                "seccomp": lambda p, c, k, s: c.update(seccompProfile={"type": "Unconfined"}),
                "privilege escalation": lambda p, c, k, s: s.pop("allowPrivilegeEscalation"),
                "non-root": lambda p, c, k, s: c.pop("runAsNonRoot"),
                "apparmor": lambda p, c, k, s: c.update(appArmorProfile={"type": "Unconfined"}),
                "host process": lambda p, c, k, s: c.update(windowsOptions={"hostProcess": True}),
                "selinux": lambda p, c, k, s: c.update(seLinuxOptions={"type": "spc_t"}),
                "probes": lambda p, c, k, s: k.update(
                    livenessProbe={"httpGet": {"host": "10.0.0.1"}})}.items():
            self.assertEqual(changed(change), {control})

    def test_every_pod_is_closed_beyond_that(self):
        for case, objects in cases().items():
            for pod in pods(objects):
                self.assertIs(pod["automountServiceAccountToken"], False, case)
                for container in pod["containers"]:
                    self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True)
                    self.assertIn("memory", container["resources"]["limits"])
                for volume in pod["volumes"]:
                    if "emptyDir" in volume:
                        self.assertIn("sizeLimit", volume["emptyDir"])
            server = pods(objects)[-1]
            self.assertEqual(server["securityContext"]["seccompProfile"]["type"], "Localhost")
            self.assertEqual(server["dnsConfig"], {"nameservers": ["127.0.0.1"]}, case)

    def test_no_value_of_a_declared_variable_is_written_down(self):
        written, declared = 0, 0
        for case, objects in cases().items():
            for pod in pods(objects):
                for entry in pod["containers"][0]["env"]:
                    if "value" in entry:
                        self.assertRegex(entry["name"], "^(HOME|TMPDIR|NODE_USE_ENV_PROXY|"
                                         "HTTPS?_PROXY|https?_proxy|NO_PROXY|no_proxy)$", case)
                        written += 1
                    else:
                        declared += 1
        self.assertGreater(written, 20)
        self.assertGreater(declared, 5)


def admits(policy, address, port):
    """Whether a NetworkPolicy lets its pods connect to an address outside of the cluster."""
    address = ipaddress.ip_address(address)
    for rule in policy["spec"]["egress"]:
        ports = rule.get("ports")
        if ports and not any(entry["protocol"] == "TCP" and entry["port"] == port
                             for entry in ports):
            continue
        for peer in rule.get("to", [{"ipBlock": {"cidr": "0.0.0.0/0"}}]):
            block = peer.get("ipBlock")
            if block and address in ipaddress.ip_network(block["cidr"]) and not any(
                    address in ipaddress.ip_network(hole) for hole in block.get("except", [])):
                return True
    return False


class Policies(unittest.TestCase):
    """Who may talk to whom, in every golden."""

    def by_pod(self, objects, kind, selector):
        return {item["spec"][selector]["matchLabels"]["app.kubernetes.io/name"]: item
                for item in of_kind(objects, kind)}

    def test_every_deployment_has_a_policy_that_selects_its_pods(self):
        for case, objects in cases().items():
            labels = {item["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
                      for item in of_kind(objects, "Deployment")}
            policies = {**self.by_pod(objects, "NetworkPolicy", "podSelector"),
                        **self.by_pod(objects, "CiliumNetworkPolicy", "endpointSelector")}
            self.assertEqual(set(policies), labels, case)

    def test_servers_are_denied_everything_but_their_broker(self):
        for case, objects in cases().items():
            policies = self.by_pod(objects, "NetworkPolicy", "podSelector")
            for name, policy in policies.items():
                self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"], case)
                if name.startswith("egress-"):
                    continue
                self.assertEqual(policy["spec"]["ingress"], [], case)
                broker = "egress-" + name.removeprefix("mcp-")
                allowed = [{"to": [{"podSelector": {"matchLabels": {
                    "app.kubernetes.io/name": broker}}}],
                    "ports": [{"protocol": "TCP", "port": 3128}]}]
                self.assertEqual(policy["spec"]["egress"],
                                 allowed if broker in policies else [], case)

    def test_a_broker_reaches_declared_ports_of_the_public_internet(self):
        github = self.by_pod(cases()["github"], "NetworkPolicy", "podSelector")
        policy = github["egress-modelcontextprotocol-server-github"]
        for address, port, expected in (
                ("140.82.121.6", 443, True), ("2606:50c0:8000::154", 443, True),
                ("140.82.121.6", 22, False), ("169.254.169.254", 443, False),
                ("10.96.0.1", 443, False), ("192.168.1.1", 443, False), ("fd00::1", 443, False),
                ("::1", 443, False), ("127.0.0.1", 443, False)):
            self.assertIs(admits(policy, address, port), expected, (address, port))

    def test_cilium_holds_the_broker_to_the_declared_names(self):
        objects = cases()["brave-search"]
        policies = self.by_pod(objects, "CiliumNetworkPolicy", "endpointSelector")
        server, broker = sorted(policies, reverse=True)
        self.assertEqual(policies[server]["spec"]["ingress"], [{}])
        rules = policies[broker]["spec"]["egress"]
        names = [entry["matchName"] for rule in rules for entry in rule.get("toFQDNs", [])]
        self.assertEqual(names, ["api.search.brave.com"])
        asked = rules[0]["toPorts"][0]["rules"]["dns"]
        self.assertEqual(asked, [{"matchName": "api.search.brave.com"}])
        denied = policies[broker]["spec"]["egressDeny"][0]["toCIDR"]
        for block in denied:
            ipaddress.ip_network(block)
        for address in ("169.254.169.254", "10.0.0.1", "::1", "fd00::1", "fe80::1",
                        "::ffff:10.0.0.1"):
            self.assertTrue(any(ipaddress.ip_address(address) in ipaddress.ip_network(block)
                                for block in denied), address)

    def test_the_broker_is_given_what_the_server_declares(self):
        given = 0
        for case, objects in cases().items():
            for item in of_kind(objects, "ConfigMap"):
                spec = yaml.safe_load(item["data"]["egress.yaml"])
                self.assertEqual(spec["capgateEgress"], 1, case)
                self.assertTrue(spec["rules"], case)
                given += 1
        self.assertGreater(given, 5)


if __name__ == "__main__":
    unittest.main()
