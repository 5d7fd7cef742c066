"""The files of --target egress that no program here reads: the spec and Envoy's bootstrap, each
with a schema, on every golden and on files that must not pass.

No Envoy can be installed here. envoy.schema.json holds the messages of Envoy's v3 API that capgate
writes, with nothing beside them.
"""

import copy
import glob
import json
import os
import unittest

import jsonschema
import yaml

import launch
from egress_target_cases import RULES, compile_egress

GOLDEN = os.path.join(launch.ROOT, "tests/golden")


def validator(path):
    with open(os.path.join(launch.ROOT, path), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def files(pattern, least):
    paths = sorted(glob.glob(os.path.join(GOLDEN, pattern)))
    if len(paths) < least:
        raise AssertionError(f"only {len(paths)} goldens are {pattern}")
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield path, yaml.safe_load(file)


class Spec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.validator = validator("docs/egress-spec.schema.json")
        (file,) = compile_egress("spec", *RULES, "net:listen:8081")["files"]
        cls.good = yaml.safe_load(file["contents"])

    def test_goldens_fit_the_schema(self):
        for path, document in files("*/egress/capgate-egress.yaml", 25):
            with self.subTest(path=path):
                self.validator.validate(document)
        self.validator.validate(self.good)

    def test_it_says_what_was_declared(self):
        rules = {rule["connect"]: rule for rule in self.good["rules"]}
        self.assertEqual(len(rules), len(RULES))
        self.assertEqual(rules["get.test:80"], {"connect": "get.test:80", "blockPrivate": True,
                                                "proto": "http", "methods": ["GET"]})
        self.assertFalse(rules["localhost:80"]["blockPrivate"])
        self.assertEqual((self.good["listen"], self.good["publicOnly"]), ([8081], False))

    def test_bad_ones_do_not_pass(self):
        def changed(change):
            document = copy.deepcopy(self.good)
            change(document)
            return document

        def rule(**fields):
            return changed(lambda spec: spec["rules"][0].update(fields))

        bad = [
            changed(lambda spec: spec.update(capgateEgress=2)),
            changed(lambda spec: spec.update(other=1)),
            changed(lambda spec: spec.update(policyHash="sha256:x")),
            changed(lambda spec: spec.update(listen=[0])),
            changed(lambda spec: spec.update(listen=[65536])),
            changed(lambda spec: spec.update(publicOnly="no")),
            changed(lambda spec: spec.update(rules={})),
            *(changed(lambda spec, key=key: spec.pop(key)) for key in self.good),
            changed(lambda spec: spec["rules"][0].pop("blockPrivate")),
            *(rule(connect=text) for text in (
                "", "a b", "https://x", "A.test:443", "a.test:0", "a.test:", "a.test:443x",
                "x\nhttp_access allow all", "*.*.test", "a.*", "::1", "[::1", "-a.test",
                "a..test")),
            rule(sni="match"), rule(proto="udp"), rule(methods=[]), rule(methods=["get"]),
            rule(paths=["x"]), rule(paths=["/a b"]), rule(private=False), rule(more=1),
        ]
        for document in bad:
            with self.subTest(document=json.dumps(document)[:200]):
                self.assertFalse(self.validator.is_valid(document))


class Envoy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.validator = validator("tests/e2e/egress/envoy.schema.json")

    def test_goldens_fit_the_schema(self):
        for path, document in files("*/egress-envoy/capgate-egress.envoy.yaml", 10):
            with self.subTest(path=path):
                self.validator.validate(document)

    def filters(self, document):
        (listener,) = document["static_resources"]["listeners"]
        (chain,) = listener["filter_chains"]
        (manager,) = chain["filters"]
        return manager["typed_config"]["http_filters"]

    def test_both_filters_stand_around_the_resolver(self):
        for path, document in files("*/egress-envoy/capgate-egress.envoy.yaml", 10):
            with self.subTest(path=path):
                names = [each["name"] for each in self.filters(document)]
                self.assertEqual(names, ["capgate.authority",
                                         "envoy.filters.http.dynamic_forward_proxy",
                                         "capgate.address", "envoy.filters.http.router"])

    def test_what_is_missing_or_beside_it_is_seen(self):
        for _, document in files("github/egress-envoy/*.yaml", 1):
            broken = copy.deepcopy(document)
            broken["admin"] = {}
            self.assertFalse(self.validator.is_valid(broken))
            broken = copy.deepcopy(document)
            self.filters(broken)[0]["typed_config"]["rules"]["action"] = "DENY"
            self.assertFalse(self.validator.is_valid(broken))
            broken = copy.deepcopy(document)
            del self.filters(broken)[2]
            self.assertFalse(self.validator.is_valid(broken))


if __name__ == "__main__":
    unittest.main()
