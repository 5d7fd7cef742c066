// The parts of the kubernetes target: names, what objects have in common, and the policies.
#pragma once

#include <string>
#include <string_view>

#include "lower/common.h"
#include "text/yaml_write.h"

namespace capgate::lower {

inline constexpr unsigned broker_port = 3128;

struct ObjectNames {
  std::string server;          // of the Deployment, its ServiceAccount and its policy
  std::string broker;          // the same for the broker
  std::string environment;     // of the Secret and the ConfigMap with the declared variables
  std::string token;           // of the Secret with the broker's token
  std::string seccomp_file;    // below profiles/ of the kubelet's seccomp folder
  std::string broker_address;  // the variable in which Kubernetes puts the broker's address
};
[[nodiscard]] ObjectNames object_names(std::string_view server);

// apiVersion, kind and metadata; the map stays open for the rest.
void begin_object(text::YamlWriter& yaml, std::string_view api, std::string_view kind,
                  std::string_view name);
void write_labels(text::YamlWriter& yaml, std::string_view name);

// Words and values in which Kubernetes puts variables for $(NAME): every $ is doubled.
[[nodiscard]] std::string literal(std::string_view text);

// The documents that decide who talks to whom, in the form that --network-policy names.
void write_network_policies(text::YamlWriter& yaml, const Input& input, const ObjectNames& names);
// Refuses rules that no policy can hold: the loopback would be the broker's.
void refuse_loopback(const Input& input, Support& support);

}  // namespace capgate::lower
