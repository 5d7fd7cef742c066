#include "egress/tunnel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "egress/io.h"

namespace capgate::egress {
namespace {

constexpr std::size_t most_idle_pipes = 32;
constexpr int pipe_bytes = 256 * 1024;
// Then another tunnel has its turn.
constexpr std::uint64_t bytes_in_a_row = 4U << 20U;

std::uint32_t in_seconds(Time time) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

std::string_view ending_name(Ending ending) {
  switch (ending) {
    case Ending::closed: return "closed";
    case Ending::failed: return "broken-off";
    case Ending::idle: return "idle";
    case Ending::denied: return "denied";
    case Ending::limited: return "limit";
    case Ending::stopped: return "stopped";
  }
  return "";
}

std::unique_ptr<Pipe> PipePool::take() {
  if (!idle_.empty()) {
    auto pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  // More than the default where the user may; a user has a budget of such memory.
  (void)::fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes);
  return std::make_unique<Pipe>(sys::Fd(ends[0]), sys::Fd(ends[1]));
}

void PipePool::give_back(std::unique_ptr<Pipe> pipe, bool is_empty) {
  if (pipe && is_empty && idle_.size() < most_idle_pipes) idle_.push_back(std::move(pipe));
}

Tunnel::Tunnel(Tunnels& tunnels, SocketPtr client, SocketPtr origin, FlowRecord record)
    : tunnels_(tunnels),
      client_(std::move(client)),
      origin_(std::move(origin)),
      record_(std::move(record)) {
  client_->owner = this;
  origin_->owner = this;
  for (Lane& lane : lanes_) lane.is_held = true;
}

void Tunnel::replace_origin(SocketPtr origin) {
  origin_ = std::move(origin);
  origin_->owner = this;
}

SocketPtr Tunnel::take_origin() {
  origin_->owner = nullptr;
  return std::move(origin_);
}

void Tunnel::touch() {
  const std::uint32_t now = in_seconds(tunnels_.loop_.now());
  if (now == last_active_) return;
  last_active_ = now;
  tunnels_.unlink(*this);
  tunnels_.link(*this);
}

void Tunnel::add_bytes(LaneName name, std::uint64_t count) {
  lane(name).bytes += count;
  tunnels_.bytes_ += count;
  touch();
}

void Tunnel::put_pipe_away(Lane& lane) {
  if (lane.pipe) tunnels_.pipes_.give_back(std::move(lane.pipe), lane.in_pipe == 0);
}

Tunnel::Pumped Tunnel::drain(Lane& lane, Socket& to) {
  while (lane.in_pipe > 0) {
    if (!to.is_writable) return Pumped::waits;
    const ssize_t size = ::splice(lane.pipe->read.get(), nullptr, to.fd(), nullptr, lane.in_pipe,
                                  SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (size > 0) {
      lane.in_pipe -= static_cast<std::uint32_t>(size);
    } else if (size < 0 && errno == EAGAIN) {
      to.is_writable = false;
    } else if (size == 0 || errno != EINTR) {
      return Pumped::broken;
    }
  }
  return Pumped::ended;
}

// The pipe is empty here, so EAGAIN can only mean that the socket is.
Tunnel::Pumped Tunnel::fill(Lane& lane, Socket& from, Socket& to) {
  if (!lane.pipe) lane.pipe = tunnels_.pipes_.take();
  if (!lane.pipe) return Pumped::broken;
  const std::size_t most = std::min<std::uint64_t>(pipe_bytes, tunnels_.left());
  const ssize_t size = ::splice(from.fd(), nullptr, lane.pipe->write.get(), nullptr, most,
                                SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (size > 0) {
    lane.in_pipe = static_cast<std::uint32_t>(size);
    lane.bytes += lane.in_pipe;
    tunnels_.bytes_ += lane.in_pipe;
    return Pumped::ended;
  }
  if (size < 0 && errno == EINTR) return Pumped::ended;
  if (size < 0 && errno == EAGAIN) {
    from.is_readable = false;
    return Pumped::waits;
  }
  if (size < 0) return Pumped::broken;
  lane.is_done = true;
  // Where the other lane is done as well, both are about to be closed.
  const bool is_last = lanes_[0].is_done && lanes_[1].is_done;
  if (is_last || ::shutdown(to.fd(), SHUT_WR) == 0 || errno == ENOTCONN) return Pumped::waits;
  return Pumped::broken;
}

Tunnel::Pumped Tunnel::pump(LaneName name) {
  Lane& current = lane(name);
  if (current.is_held || current.is_done) return Pumped::waits;
  Socket& from = name == LaneName::to_origin ? *client_ : *origin_;
  Socket& to = name == LaneName::to_origin ? *origin_ : *client_;
  std::uint64_t moved = 0;
  Pumped state = Pumped::ended;
  while (state == Pumped::ended) {
    const std::uint32_t before = current.in_pipe;
    state = drain(current, to);
    moved += before - current.in_pipe;
    if (state != Pumped::ended) break;
    if (!from.is_readable || tunnels_.left() == 0) {
      state = Pumped::waits;
    } else if (moved >= bytes_in_a_row) {
      tunnels_.loop_.look_again(from);
      state = Pumped::waits;
    } else {
      state = fill(current, from, to);
    }
  }
  if (current.in_pipe == 0) put_pipe_away(current);
  if (moved > 0) touch();
  return state;
}

void Tunnel::on_event(Socket& /*socket*/) {
  Pumped state = pump(LaneName::to_origin);
  if (state != Pumped::broken) state = pump(LaneName::to_client);
  (void)tunnels_.settle(*this, state);
}

Tunnels::Tunnels(Loop& loop, std::uint32_t idle_seconds, std::uint64_t most_bytes, OnEnd on_end)
    : loop_(loop),
      idle_seconds_(idle_seconds),
      most_bytes_(most_bytes),
      on_end_(std::move(on_end)),
      look_(loop.every([this](Time now) { return end_idle(now); })) {}

Tunnels::~Tunnels() { end_all(Ending::stopped); }

Tunnel& Tunnels::join(SocketPtr client, SocketPtr origin, FlowRecord record) {
  auto* tunnel = new Tunnel(*this, std::move(client), std::move(origin), std::move(record));
  tunnel->last_active_ = in_seconds(loop_.now());
  link(*tunnel);
  if (size_++ == 0) loop_.call_soon(look_);
  return *tunnel;
}

bool Tunnels::release(Tunnel& tunnel, LaneName name) {
  tunnel.lane(name).is_held = false;
  return settle(tunnel, tunnel.pump(name));
}

void Tunnels::release(Tunnel& tunnel) {
  for (auto& lane : tunnel.lanes_) lane.is_held = false;
  tunnel.on_event(tunnel.client());
}

void Tunnels::finish(Tunnel& tunnel, LaneName name) {
  tunnel.lane(name).is_done = true;
  (void)::shutdown((name == LaneName::to_origin ? tunnel.origin() : tunnel.client()).fd(), SHUT_WR);
  (void)settle(tunnel, Tunnel::Pumped::waits);
}

bool Tunnels::settle(Tunnel& tunnel, Tunnel::Pumped pumped) {
  const auto& [there, back] = tunnel.lanes_;
  if (pumped == Tunnel::Pumped::broken) {
    end(tunnel, Ending::failed);
  } else if (there.is_done && back.is_done) {
    end(tunnel, Ending::closed);
  } else if (is_used_up()) {
    end(tunnel, Ending::limited);
  } else {
    return true;
  }
  return false;
}

void Tunnels::end(Tunnel& tunnel, Ending ending) {
  unlink(tunnel);
  --size_;
  const std::unique_ptr<Tunnel> owned(&tunnel);
  for (Socket* socket : {tunnel.client_.get(), tunnel.origin_.get()}) {
    if (socket == nullptr) continue;
    if (ending != Ending::closed) reset_on_close(*socket);
    socket->owner = nullptr;
  }
  on_end_(tunnel, ending);
  // Whoever works on a held lane stops here.
  loop_.cancel(tunnel.client());
  if (tunnel.origin_) loop_.cancel(tunnel.origin());
}

void Tunnels::end_all(Ending ending) {
  while (oldest_ != nullptr) end(*oldest_, ending);
}

Time Tunnels::end_idle(Time now) {
  const std::uint32_t seconds = in_seconds(now);
  // Both are cut to whole seconds: a difference of one may be a moment.
  while (oldest_ != nullptr && seconds - oldest_->last_active_ > idle_seconds_) {
    end(*oldest_, Ending::idle);
  }
  return oldest_ == nullptr ? never : now + std::chrono::seconds(1);
}

void Tunnels::link(Tunnel& tunnel) {
  tunnel.older_ = newest_;
  tunnel.newer_ = nullptr;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = &tunnel;
  newest_ = &tunnel;
}

void Tunnels::unlink(Tunnel& tunnel) {
  (tunnel.older_ != nullptr ? tunnel.older_->newer_ : oldest_) = tunnel.newer_;
  (tunnel.newer_ != nullptr ? tunnel.newer_->older_ : newest_) = tunnel.older_;
}

}  // namespace capgate::egress
