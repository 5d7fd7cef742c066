// Two sockets joined: what one says, the other hears, unchanged and uncopied (splice).
//
//   Tunnel& tunnel = tunnels.join(std::move(client), std::move(origin), std::move(record), held);
//
// A lane that a coroutine still works on (it reads a hello, it checks HTTP requests) is held; the
// tunnel moves the bytes of the other one and takes over when the lane is released. A tunnel ends
// when both lanes have, when one fails, or when it was idle too long; then whoever waits on its
// sockets is woken as cancelled and must touch nothing of it.
//
// An idle tunnel is two descriptors and a few hundred bytes: pipes come from a pool and are held
// only while bytes are in flight.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "egress/decide.h"
#include "egress/loop.h"

namespace capgate::egress {

// What the audit log says of a flow when it closes.
struct FlowRecord {
  std::uint64_t number = 0;
  std::string host;
  std::uint16_t port = 0;
  std::string address;  // that was dialled
  const Rule* rule = nullptr;
  std::string_view protocol;
  Time started;
  bool is_reused = false;  // `address` was dialled for an earlier flow
};

enum class Ending : unsigned char {
  closed,  // both sides said all they had to say
  failed,  // one of them broke it off
  idle,
  denied,  // it said something that no rule allows
  limited,
  stopped,  // the sandbox ends
};
[[nodiscard]] std::string_view ending_name(Ending ending);

struct Pipe {
  sys::Fd read;
  sys::Fd write;
};

class PipePool {
 public:
  // Null if there are no descriptors left.
  [[nodiscard]] std::unique_ptr<Pipe> take();
  // Only an empty one can serve another tunnel.
  void give_back(std::unique_ptr<Pipe> pipe, bool is_empty);

 private:
  std::vector<std::unique_ptr<Pipe>> idle_;
};

enum class LaneName : unsigned char { to_origin, to_client };

class Tunnels;

class Tunnel final : public Owner {
 public:
  [[nodiscard]] Socket& client() { return *client_; }
  [[nodiscard]] Socket& origin() { return *origin_; }
  [[nodiscard]] FlowRecord& record() { return record_; }
  [[nodiscard]] std::uint64_t bytes(LaneName name) const { return lane(name).bytes; }

  // Another connection to the origin, in place of one that nothing was passed on from.
  void replace_origin(SocketPtr origin);
  // Its connection outlives the tunnel, which is to be ended next, as closed.
  [[nodiscard]] SocketPtr take_origin();

  // For a coroutine that moves bytes of a held lane itself.
  void add_bytes(LaneName name, std::uint64_t count);
  void on_event(Socket& socket) override;

 private:
  friend class Tunnels;
  struct Lane {
    std::unique_ptr<Pipe> pipe;
    std::uint64_t bytes = 0;
    std::uint32_t in_pipe = 0;
    bool is_held = false;
    bool is_done = false;
  };
  enum class Pumped : unsigned char { waits, ended, broken };

  Tunnel(Tunnels& tunnels, SocketPtr client, SocketPtr origin, FlowRecord record);
  [[nodiscard]] Lane& lane(LaneName name) { return lanes_[static_cast<std::size_t>(name)]; }
  [[nodiscard]] const Lane& lane(LaneName name) const {
    return lanes_[static_cast<std::size_t>(name)];
  }
  [[nodiscard]] Pumped pump(LaneName name);
  [[nodiscard]] Pumped fill(Lane& lane, Socket& from, Socket& to);
  [[nodiscard]] static Pumped drain(Lane& lane, Socket& to);
  void put_pipe_away(Lane& lane);
  void touch();

  Tunnels& tunnels_;
  SocketPtr client_;
  SocketPtr origin_;
  std::array<Lane, 2> lanes_;
  FlowRecord record_;
  std::uint32_t last_active_ = 0;  // seconds
  Tunnel* older_ = nullptr;
  Tunnel* newer_ = nullptr;
};

class Tunnels {
 public:
  using OnEnd = std::function<void(Tunnel& tunnel, Ending ending)>;

  // `most_bytes`: of all tunnels together; 0: any number.
  Tunnels(Loop& loop, std::uint32_t idle_seconds, std::uint64_t most_bytes, OnEnd on_end);
  ~Tunnels();
  Tunnels(const Tunnels&) = delete;
  Tunnels& operator=(const Tunnels&) = delete;
  Tunnels(Tunnels&&) = delete;
  Tunnels& operator=(Tunnels&&) = delete;

  // Both lanes are held until they are released.
  Tunnel& join(SocketPtr client, SocketPtr origin, FlowRecord record);
  // The tunnel moves the lane's bytes from here on. False: it has ended within this call.
  [[nodiscard]] bool release(Tunnel& tunnel, LaneName name);
  // Both lanes, by somebody who has nothing more to do with it.
  void release(Tunnel& tunnel);
  // A held lane has come to its end: its reader hears so. The tunnel may end with it.
  void finish(Tunnel& tunnel, LaneName name);
  void end(Tunnel& tunnel, Ending ending);
  void end_all(Ending ending);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool is_used_up() const { return left() == 0; }
  [[nodiscard]] std::uint64_t left() const {
    if (most_bytes_ == 0) return UINT64_MAX;
    return most_bytes_ - std::min(bytes_, most_bytes_);
  }

 private:
  friend class Tunnel;
  [[nodiscard]] Time end_idle(Time now);
  void link(Tunnel& tunnel);
  void unlink(Tunnel& tunnel);
  bool settle(Tunnel& tunnel, Tunnel::Pumped pumped);  // false: it has ended

  Loop& loop_;
  std::uint32_t idle_seconds_;
  std::uint64_t most_bytes_;
  OnEnd on_end_;
  Loop::LookId look_;
  PipePool pipes_;
  Tunnel* oldest_ = nullptr;
  Tunnel* newest_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace capgate::egress
