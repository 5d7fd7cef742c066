"""Entries of a capgate.lock as `capgate approve` writes them, made by hand (docs/lock.md)."""

import hashlib
import json


def digest(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def tool(name="search", description="Searches the notes.", **more):
    said = {"name": name, "title": "", "description": description, **more}
    return {"hash": digest(said), **said}


def package(version="1.2.3", **more):
    return {"registry": "npm", "name": "notes-mcp", "version": version, "integrity": "sha512-abc",
            "tree": digest(version), **more}


def pin(server="notes", policy=("fs:read:/srv/notes/**",), **more):
    """All of `policy` is everybody's unless `more` says otherwise."""
    return {"server": server, "command": ["npx", "-y", "notes-mcp"], "manifestHash": digest("manifest"),
            "policyHash": digest(list(policy)), "policy": list(policy),
            "serverCapabilities": list(policy), "grants": [], "protocol": "2025-06-18", **more}


def lock(*pins):
    return {"schemaVersion": 1, "servers": list(pins)}
