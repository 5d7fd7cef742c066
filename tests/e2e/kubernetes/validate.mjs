// Objects as JSON on stdin, one list; on stdout, for each, what the schema of its kind refuses.
import * as cilium from "@kubernetes-models/cilium/cilium.io/v2/index.js";
import * as apps from "kubernetes-models/apps/v1/index.js";
import * as networking from "kubernetes-models/networking.k8s.io/v1/index.js";
import * as core from "kubernetes-models/v1/index.js";
import { readFileSync } from "node:fs";

const kinds = {
  "v1": core,
  "apps/v1": apps,
  "networking.k8s.io/v1": networking,
  "cilium.io/v2": cilium,
};

function refusal(object) {
  const Kind = kinds[object.apiVersion]?.[object.kind];
  if (!Kind) return `unknown kind ${object.apiVersion} ${object.kind}`;
  try {
    new Kind(object).validate();
    return null;
  } catch (error) {
    return error.message;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(refusal)));
