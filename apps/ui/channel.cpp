#include "ui/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace assay::ui {

Channel::Channel(Channel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), unsent_(std::move(other.unsent_)), sent_(other.sent_) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(unsent_, other.unsent_);
  std::swap(sent_, other.sent_);
  return *this;
}

Channel::~Channel() {
  if (socket_ >= 0) ::close(socket_);
}

bool Channel::flush() {
  while (has_unsent()) {
    const ssize_t count = ::send(socket_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<std::size_t>(count);
  }
  unsent_.clear();
  if (unsent_.capacity() > (64 << 10)) unsent_.shrink_to_fit();  // one large answer does not stay in memory
  sent_ = 0;
  return true;
}

bool Channel::receive(std::string& to) {
  char buffer[64 << 10];
  const ssize_t count = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  to.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace assay::ui
