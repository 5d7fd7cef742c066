// Where the store lies: a directory of this user alone, with secrets.json and a lock.
//
//   const StoreDirectory directory = TRY(StoreDirectory::open(path, Missing::is_made));
//   const Lock lock = TRY(directory.lock());
//   const auto file = TRY(directory.read());      // none: there is no store yet
//   TRY(directory.replace(text));                 // the old one or the new one, never a part
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/store_file.h"
#include "sys/fd.h"

namespace capgate::store {

// $XDG_DATA_HOME/capgate, else ~/.local/share/capgate.
[[nodiscard]] Outcome<std::string> store_directory();

class StoreDirectory {
 public:
  enum class Missing : unsigned char { is_none, is_made };
  // None: there is no such directory. Refused: one that others can use, or that is not ours.
  [[nodiscard]] static Outcome<std::optional<StoreDirectory>> open(std::string path,
                                                                   Missing missing);

  // Held until the descriptor is closed. Readers need none: a file is replaced, never changed.
  [[nodiscard]] Outcome<sys::Fd> lock() const;
  [[nodiscard]] Outcome<std::optional<StoreFile>> read() const;
  [[nodiscard]] Outcome<void> replace(std::string_view text) const;  // with the lock held

  [[nodiscard]] std::string path_of(std::string_view file) const;

 private:
  StoreDirectory(std::string path, sys::Fd place)
      : path_(std::move(path)), place_(std::move(place)) {}

  std::string path_;
  sys::Fd place_;
};

}  // namespace capgate::store
