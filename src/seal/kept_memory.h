// Memory for what is derived from secrets: locked if it can be, wiped when it ends in either case.
//
//   KeptMemory memory(sizeof(Tables), KeptMemory::Kind::locked);
//   auto* tables = std::construct_at(reinterpret_cast<Tables*>(memory.data()));
//
// Where nothing can be locked any more, an answer that is not searched would be worse: values pass
// through ordinary memory anyway on their way to the origin.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "secrets/secret.h"

namespace capgate::seal {

class KeptMemory {
 public:
  enum class Kind : unsigned char { ordinary, locked };

  KeptMemory(std::size_t size, Kind kind) {
    if (kind == Kind::locked) {
      if (auto room = secrets::Secret::room(size)) locked_ = std::move(*room);
    }
    if (locked_.bytes().data() == nullptr) ordinary_.resize(size);
  }
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  KeptMemory(KeptMemory&&) = delete;
  KeptMemory& operator=(KeptMemory&&) = delete;
  ~KeptMemory() { secrets::wipe(ordinary_); }

  // Aligned for any type; does not move.
  [[nodiscard]] char* data() {
    return locked_.bytes().data() != nullptr ? locked_.bytes().data() : ordinary_.data();
  }

 private:
  secrets::Secret locked_;
  std::string ordinary_;
};

}  // namespace capgate::seal
