#include "seal/origin_pool.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace capgate::seal {

bool is_silent(egress::Socket& socket, TlsStream& stream) {
  if (socket.has_ended || socket.has_failed) return false;
  if (SSL_has_pending(&stream.ssl()) == 1 || SSL_get_shutdown(&stream.ssl()) != 0) return false;
  char byte = 0;
  const ssize_t size = ::recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size >= 0 || errno != EAGAIN) return false;
  socket.is_readable = false;
  return true;
}

OriginPool::OriginPool(egress::Loop& loop, std::chrono::milliseconds idle)
    : loop_(loop), idle_(idle), look_(loop.every([this](Time now) { return close_idle(now); })) {}

void OriginPool::keep(KeptTlsPtr kept) {
  if (loop_.now() - kept->made >= longest_use || !is_silent(*kept->socket, *kept->stream)) return;
  const auto is_same = [&](const KeptTlsPtr& other) {
    return other->key.endpoint == kept->key.endpoint;
  };
  if (std::ranges::count_if(kept_, is_same) >= std::ptrdiff_t{most_of_one_endpoint}) {
    kept_.erase(std::ranges::find_if(kept_, is_same));
  }
  if (kept_.size() >= most) kept_.erase(kept_.begin());
  if (kept_.empty()) loop_.call_soon(look_);
  kept->left = loop_.now();
  kept->socket->owner = this;
  kept_.push_back(std::move(kept));
}

// The newest, which is the least likely to be closed in this moment.
KeptTlsPtr OriginPool::take(const KeptTls::Key& key) {
  for (;;) {
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(),
                                    [&](const KeptTlsPtr& kept) { return kept->key == key; });
    if (found == kept_.rend()) return nullptr;
    KeptTlsPtr taken = std::move(*found);
    kept_.erase(std::next(found).base());
    taken->socket->owner = nullptr;
    const bool is_late = loop_.now() - taken->left >= idle_;
    if (!is_late && is_silent(*taken->socket, *taken->stream)) return taken;
  }
}

bool OriginPool::has(const Tls::Endpoint& endpoint) const {
  return std::ranges::any_of(
      kept_, [&](const KeptTlsPtr& kept) { return kept->key.endpoint == endpoint; });
}

void OriginPool::on_event(egress::Socket& socket) {
  if (!socket.is_readable && !socket.has_ended && !socket.has_failed) return;
  std::erase_if(kept_, [&](const KeptTlsPtr& kept) { return kept->socket.get() == &socket; });
}

Time OriginPool::close_idle(Time now) {
  std::erase_if(kept_, [&](const KeptTlsPtr& kept) { return now - kept->left >= idle_; });
  return kept_.empty() ? egress::never : kept_.front()->left + idle_;
}

}  // namespace capgate::seal
