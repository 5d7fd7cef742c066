// Objects as JSON on stdin, one list; on stdout, for each, what the schema of its kind refuses.
import * as cilium from "@kubernetes-models/cilium/cilium.io/v2";
import * as apps from "kubernetes-models/apps/v1";
import * as networking from "kubernetes-models/networking.k8s.io/v1";
import * as core from "kubernetes-models/v1";
import { readFileSync } from "node:fs";

const kinds = {
  "v1": core,
  "apps/v1": apps,
  "networking.k8s.io/v1": networking,
  "cilium.io/v2": cilium,
};

function mistake(Kind, object) {
  try {
    new Kind(object).validate();
    return null;
  } catch (error) {
    return error.message;
  }
}

// The schemas pass over keys that they do not know. But a key that they know has a type, and
// nothing has the type of a symbol: where one is accepted, the key is unknown.
function* unknownKeys(Kind, object, inside = object, path = "") {
  for (const key of Object.keys(inside)) {
    const value = inside[key];
    inside[key] = Symbol();
    if (mistake(Kind, object) === null) yield `unknown key ${path}/${key}`;
    inside[key] = value;
    if (value !== null && typeof value === "object") {
      yield* unknownKeys(Kind, object, value, `${path}/${key}`);
    }
  }
}

function refusal(object) {
  const Kind = kinds[object.apiVersion]?.[object.kind];
  if (!Kind) return `unknown kind ${object.apiVersion} ${object.kind}`;
  return mistake(Kind, object) ?? unknownKeys(Kind, object).next().value ?? null;
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(refusal)));
