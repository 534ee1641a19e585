// A socket that never makes the server wait: what cannot be sent yet is kept.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace assay::ui {

/// Owns a socket.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  int socket() const { return socket_; }

  void send(std::string_view bytes) { unsent_ += bytes; }
  /// Sends what the socket takes now; false if the other side is gone.
  bool flush();
  bool has_unsent() const { return sent_ < unsent_.size(); }

  /// Appends what has come to `to`, or a part of it; false if the other side is gone.
  bool receive(std::string& to);

 private:
  int socket_;
  std::string unsent_;
  std::size_t sent_ = 0;
};

}  // namespace assay::ui
