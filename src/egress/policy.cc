#include "egress/policy.h"

#include "text/json_write.h"

namespace capgate::egress {

std::string print_policy(const Policy& policy) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("server").string(policy.server).key("sandbox").string(policy.sandbox);
  json.key("policyHash").string(policy.hash).key("rules").begin_array();
  for (const Rule& rule : policy.rules) {
    json.begin_object().key("capability").string(rule.text).key("at").string(rule.position);
    json.end_object();
  }
  json.end_array().key("publicOnly").boolean(policy.public_only);
  json.key("limits").begin_object();
  json.key("connections").number(policy.limits.connections);
  json.key("perSecond").number(policy.limits.per_second);
  json.key("bytes").number(policy.limits.bytes);
  json.key("idleSeconds").number(policy.limits.idle_seconds);
  json.key("headBytes").number(policy.limits.head_bytes);
  json.key("helloSeconds").number(policy.limits.hello_seconds);
  json.key("dialSeconds").number(policy.limits.dial_seconds);
  json.end_object().end_object();
  return std::move(json).take();
}

}  // namespace capgate::egress
