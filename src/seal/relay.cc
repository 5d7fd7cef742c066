#include "seal/relay.h"

#include <algorithm>

namespace capgate::seal {

void Admission::add(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::find(secrets, name) == secrets.end()) secrets.push_back(name);
  }
}

}  // namespace capgate::seal
